// The part that looks at a page and touches its elements. It runs in the extension's isolated world,
// where the page's own scripts and policies do not reach; it keeps the refs of a snapshot until the
// page is left. Each method answers at once; waiting is done by the caller.

globalThis.raincheckAgent ??= (() => {
  const refs = new Map();
  const numbers = new WeakMap();
  let last_ref = 0;

  const INTERACTIVE = new Set(["button", "link", "textbox", "searchbox", "checkbox", "radio", "combobox", "listbox", "option", "slider", "spinbutton", "switch", "tab", "menuitem", "menuitemcheckbox", "menuitemradio", "treeitem"]);
  const NAME_FROM_CONTENT = new Set(["button", "link", "heading", "option", "tab", "menuitem", "menuitemcheckbox", "menuitemradio", "treeitem", "checkbox", "radio", "switch", "cell", "columnheader", "rowheader", "tooltip"]);
  const TAG_ROLES = { A: "link", ARTICLE: "article", ASIDE: "complementary", BUTTON: "button", DETAILS: "group", DIALOG: "dialog", FIELDSET: "group", FIGURE: "figure", FORM: "form", H1: "heading", H2: "heading", H3: "heading", H4: "heading", H5: "heading", H6: "heading", HR: "separator", IFRAME: "iframe", IMG: "img", LI: "listitem", MAIN: "main", MENU: "list", METER: "meter", NAV: "navigation", OL: "list", OPTION: "option", OUTPUT: "status", P: "paragraph", PROGRESS: "progressbar", SUMMARY: "button", TABLE: "table", TD: "cell", TEXTAREA: "textbox", TH: "columnheader", TR: "row", UL: "list", VIDEO: "video", AUDIO: "audio", CANVAS: "canvas" };
  const INPUT_ROLES = { button: "button", submit: "button", reset: "button", image: "button", checkbox: "checkbox", radio: "radio", range: "slider", number: "spinbutton", search: "searchbox", file: "button", color: "button", hidden: null };
  const SILENT = new Set(["SCRIPT", "STYLE", "NOSCRIPT", "TEMPLATE", "HEAD", "META", "LINK"]);

  class Missing extends Error {}

  // ---- finding -------------------------------------------------------------------------

  function find({ ref, selector }) {
    if (ref !== undefined) {
      const element = refs.get(String(ref).replace(/^@/, ""))?.deref();
      if (!element?.isConnected) throw new Missing(`ref ${ref} is not on this page any more; take a new snapshot`);
      return element;
    }
    const all = query(document, selector);
    if (all.length === 0) throw new Missing(`no element matches \`${selector}\``);
    return all.find(isVisible) ?? all[0];
  }

  /** The document, then open shadow roots and frames of the same origin. */
  function query(root, selector) {
    const found = [...root.querySelectorAll(selector)];
    if (found.length > 0) return found;
    for (const element of root.querySelectorAll("*")) {
      const inner = innerOf(element);
      const deeper = inner ? query(inner, selector) : [];
      if (deeper.length > 0) return deeper;
    }
    return [];
  }

  function innerOf(element) {
    if (element.tagName === "IFRAME") {
      try {
        return element.contentDocument;
      } catch {
        return null;
      }
    }
    return chrome.dom?.openOrClosedShadowRoot?.(element) ?? element.shadowRoot;
  }

  function isVisible(element) {
    return element.checkVisibility({ visibilityProperty: true }) && element.getClientRects().length > 0;
  }

  function describe(element) {
    const role = roleOf(element) ?? element.localName;
    const name = nameOf(element, role);
    return name ? `${role} ${JSON.stringify(name)}` : role;
  }

  // ---- acting --------------------------------------------------------------------------

  /** Whether an element can be acted on now, and where. `why` says what is missing. */
  async function locate(args) {
    const element = find(args);
    const what = describe(element);
    if (!isVisible(element)) return { why: `${what} is not visible` };
    if (args.enabled && element.matches(":disabled, [aria-disabled=true]")) return { why: `${what} is disabled` };
    if (args.editable && (element.readOnly || !isEditable(element))) return { why: `${what} cannot be edited` };
    element.scrollIntoView({ block: "center", inline: "center", behavior: "instant" });
    const before = boxOf(element);
    await nextFrame();
    const box = boxOf(element);
    if (Math.abs(box.x - before.x) > 1 || Math.abs(box.y - before.y) > 1) return { why: `${what} is moving` };
    const x = box.x + box.width / 2;
    const y = box.y + box.height / 2;
    const cover = args.hit ? coverOf(element) : null;
    if (cover) return { why: `${what} is covered by ${describe(cover)}` };
    return { x, y, width: box.width, height: box.height, what, tag: element.localName };
  }

  function nextFrame() {
    return new Promise((done) => {
      setTimeout(done, 60);
      requestAnimationFrame(() => requestAnimationFrame(done));
    });
  }

  /** The box in the coordinates of the top page. */
  function boxOf(element) {
    const rects = [...element.getClientRects()].filter((one) => one.width > 0 && one.height > 0);
    const rect = rects[0] ?? element.getBoundingClientRect();
    let { x, y, width, height } = rect;
    for (let frame = element.ownerDocument.defaultView.frameElement; frame; frame = frame.ownerDocument.defaultView.frameElement) {
      const outer = frame.getBoundingClientRect();
      x += outer.x + frame.clientLeft;
      y += outer.y + frame.clientTop;
    }
    return { x, y, width, height };
  }

  function coverOf(element) {
    const rect = [...element.getClientRects()].find((one) => one.width > 0 && one.height > 0) ?? element.getBoundingClientRect();
    const top = element.getRootNode().elementFromPoint?.(rect.x + rect.width / 2, rect.y + rect.height / 2);
    if (!top || top === element || element.contains(top) || top.contains(element)) return null;
    if (top.closest("label")?.control === element || element.closest("label")?.contains(top)) return null;
    return top;
  }

  function isEditable(element) {
    return element.isContentEditable || element.tagName === "TEXTAREA" || element.tagName === "SELECT" || (element.tagName === "INPUT" && !["button", "submit", "reset", "image", "hidden", "file"].includes(element.type));
  }

  function focus(args) {
    const element = find(args);
    element.focus({ preventScroll: true });
    if (element.isContentEditable) getSelection().selectAllChildren(element), getSelection().collapseToEnd();
    else if (typeof element.selectionStart === "number") element.selectionStart = element.selectionEnd = element.value.length;
    return { what: describe(element), is_focused: element.ownerDocument.activeElement === element };
  }

  function fill(args) {
    const element = find(args);
    const text = String(args.text);
    element.focus({ preventScroll: true });
    if (element.isContentEditable) {
      getSelection().selectAllChildren(element);
      document.execCommand("insertText", false, text) || (element.textContent = text);
    } else {
      if (element.type === "checkbox" || element.type === "radio") throw new Missing(`${describe(element)} is not filled; click it`);
      // By the setter of the prototype: frameworks that watch the own property hear the event, too.
      const proto = element.tagName === "TEXTAREA" ? HTMLTextAreaElement.prototype : HTMLInputElement.prototype;
      const { set } = Object.getOwnPropertyDescriptor(proto, "value");
      const before = element.value;
      set.call(element, text);
      const is_taken = element.value === text || (text !== "" && element.value !== "");
      if (!is_taken) set.call(element, before);
      if (!is_taken) throw new Missing(`${describe(element)} (type ${element.type}) does not take ${JSON.stringify(text.slice(0, 100))}`);
    }
    element.dispatchEvent(new InputEvent("input", { bubbles: true, composed: true, inputType: "insertReplacementText", data: text }));
    element.dispatchEvent(new Event("change", { bubbles: true }));
    return { what: describe(element), value: valueOf(element) };
  }

  function insert(args) {
    const element = find(args);
    focus(args);
    if (element.isContentEditable) {
      document.execCommand("insertText", false, args.text);
      return { what: describe(element), value: valueOf(element) };
    }
    return fill({ ...args, text: element.value + args.text });
  }

  function select(args) {
    const element = find(args);
    if (element.tagName !== "SELECT") throw new Missing(`${describe(element)} is not a list to select from; click it`);
    const wanted = (Array.isArray(args.value) ? args.value : [args.value]).map(String);
    const options = [...element.options];
    const chosen = wanted.map((one) => options.find((option) => option.value === one) ?? options.find((option) => option.label.trim() === one.trim()));
    const lacking = wanted.filter((_, n) => !chosen[n]);
    if (lacking.length > 0) throw new Missing(`${describe(element)} has no option ${JSON.stringify(lacking[0])}; it has ${options.slice(0, 30).map((one) => JSON.stringify(one.label.trim())).join(", ")}`);
    if (chosen.some((one) => one.disabled)) throw new Missing("the option is disabled");
    for (const option of options) option.selected = chosen.includes(option);
    element.dispatchEvent(new Event("input", { bubbles: true, composed: true }));
    element.dispatchEvent(new Event("change", { bubbles: true }));
    return { what: describe(element), value: chosen.map((one) => one.value), label: chosen.map((one) => one.label.trim()) };
  }

  function mouse({ kinds, ...args }) {
    const element = find(args);
    const box = boxOf(element);
    const init = { bubbles: true, cancelable: true, composed: true, view: window, clientX: box.x + box.width / 2, clientY: box.y + box.height / 2, detail: 1 };
    for (const kind of kinds) {
      if (kind === "click") element.click();
      else element.dispatchEvent(new (kind.startsWith("pointer") ? PointerEvent : MouseEvent)(kind, init));
    }
    return { what: describe(element) };
  }

  function key({ key: name, code, modifiers = 0 }) {
    const element = document.activeElement ?? document.body;
    const init = { key: name, code, bubbles: true, cancelable: true, composed: true, altKey: !!(modifiers & 1), ctrlKey: !!(modifiers & 2), metaKey: !!(modifiers & 4), shiftKey: !!(modifiers & 8) };
    const goes_on = element.dispatchEvent(new KeyboardEvent("keydown", init));
    if (goes_on && name === "Enter" && element.form) element.form.requestSubmit();
    element.dispatchEvent(new KeyboardEvent("keyup", init));
    return { what: describe(element) };
  }

  function scroll({ x, y, ...args }) {
    const element = args.ref !== undefined || args.selector !== undefined ? find(args) : null;
    const by = { left: Number(x ?? 0), top: Number(y ?? 0), behavior: "instant" };
    if (element && x === undefined && y === undefined) element.scrollIntoView({ block: "center", behavior: "instant" });
    else if (element) element.scrollBy(by);
    else window.scrollBy(by);
    const box = element && (x !== undefined || y !== undefined) ? element : document.scrollingElement;
    return { x: Math.round(box.scrollLeft), y: Math.round(box.scrollTop), max_x: box.scrollWidth - box.clientWidth, max_y: box.scrollHeight - box.clientHeight };
  }

  /** Whether what `wait_for` waits for is so now. */
  function check({ selector, ref, text, state = "visible" }) {
    if (text !== undefined) {
      const is_there = (document.body?.innerText ?? "").includes(text);
      return { is_met: state === "hidden" ? !is_there : is_there };
    }
    let element = null;
    try {
      element = find({ selector, ref });
    } catch (error) {
      if (!(error instanceof Missing)) throw error;
    }
    if (state === "attached") return { is_met: element !== null };
    const is_visible = element !== null && isVisible(element);
    return { is_met: state === "hidden" ? !is_visible : is_visible, what: element ? describe(element) : undefined };
  }

  // ---- reading -------------------------------------------------------------------------

  function text({ selector, ref, max_chars = 1_000_000 }) {
    const element = selector !== undefined || ref !== undefined ? find({ selector, ref }) : document.body;
    const all = element?.innerText ?? "";
    return { ...place(), text: all.length > max_chars ? `${all.slice(0, max_chars)}\n[cut: ${all.length - max_chars} more characters]` : all };
  }

  function size() {
    return { width: innerWidth, height: innerHeight, ratio: devicePixelRatio, full_height: document.documentElement.scrollHeight, full_width: document.documentElement.scrollWidth, scroll_x: scrollX, scroll_y: scrollY };
  }

  function snapshot({ selector, ref, after_ref = 0, max_chars = 400_000 }) {
    last_ref = Math.max(last_ref, after_ref);
    const lines = [];
    const budget = { left: max_chars, cut: 0 };
    const root = selector !== undefined || ref !== undefined ? find({ selector, ref }) : document.body;
    if (root) outline(root, 0, lines, budget, false);
    if (budget.cut > 0) lines.push(`[cut: ${budget.cut} more elements; pass a selector to see a part]`);
    return { ...place(), text: lines.join("\n"), last_ref };
  }

  function place() {
    return { url: location.href, title: document.title, origin: location.origin };
  }

  /** Writes one element and what is in it; what has no role of its own leaves only its children. */
  function outline(element, depth, lines, budget, in_pointer) {
    if (SILENT.has(element.tagName) || element.getAttribute("aria-hidden") === "true") return;
    const style = element.ownerDocument.defaultView?.getComputedStyle(element);
    if (!style || style.display === "none") return;
    const is_shown = style.visibility === "visible";
    const is_pointer = style.cursor === "pointer";
    const role = roleOf(element);
    const is_target = INTERACTIVE.has(role) || element.tabIndex >= 0 && element.hasAttribute("tabindex") || is_pointer && !in_pointer;
    const name = role || is_target ? nameOf(element, role) : "";
    const is_told = is_shown && (is_target || (role !== null && role !== "paragraph" && (name !== "" || !["group", "form", "figure", "img"].includes(role))));
    let next = depth;
    if (is_told) {
      if (budget.left <= 0) return void budget.cut++;
      const line = `${"  ".repeat(Math.min(depth, 30))}- ${lineOf(element, role ?? "generic", name, is_target)}`;
      budget.left -= line.length + 1;
      lines.push(line);
      next = depth + 1;
      if (NAME_FROM_CONTENT.has(role) && !hasTargets(element)) return;
    }
    if (role === "textbox" || role === "combobox" || role === "img") return;
    const is_name = element.tagName === "LABEL" && element.control !== null;
    for (const child of childrenOf(element)) {
      if (child.nodeType === 1) outline(child, next, lines, budget, in_pointer || is_pointer);
      else if (child.nodeType === 3 && is_shown && !is_name) tellText(child, next, lines, budget);
    }
  }

  function tellText(node, depth, lines, budget) {
    const said = squeeze(node.data);
    if (said === "") return;
    if (budget.left <= 0) return void budget.cut++;
    const line = `${"  ".repeat(Math.min(depth, 30))}- text: ${said.slice(0, 2000)}`;
    budget.left -= line.length + 1;
    lines.push(line);
  }

  function childrenOf(element) {
    const inner = innerOf(element);
    if (element.tagName === "IFRAME") return inner?.body ? [inner.body] : [];
    if (inner) return inner.childNodes;
    if (element.tagName === "SLOT") {
      const assigned = element.assignedNodes();
      if (assigned.length > 0) return assigned;
    }
    return element.childNodes;
  }

  function hasTargets(element) {
    return element.querySelector("a[href], button, input, select, textarea, [tabindex], [role=button], [role=link], [role=checkbox]") !== null;
  }

  function lineOf(element, role, name, is_target) {
    const marks = [];
    if (role === "heading") marks.push(`level=${element.getAttribute("aria-level") ?? element.tagName.slice(1)}`);
    if (element.matches(":disabled, [aria-disabled=true]")) marks.push("disabled");
    if (["checkbox", "radio", "switch", "menuitemcheckbox", "menuitemradio"].includes(role) && (element.checked ?? element.getAttribute("aria-checked") === "true")) marks.push("checked");
    if (element.getAttribute("aria-expanded")) marks.push(element.getAttribute("aria-expanded") === "true" ? "expanded" : "collapsed");
    if (element.selected || element.getAttribute("aria-selected") === "true") marks.push("selected");
    if (element.required) marks.push("required");
    if (element.ownerDocument.activeElement === element && element !== document.body) marks.push("focused");
    if (is_target) marks.push(`ref=${refOf(element)}`);
    const value = valueOf(element);
    const link = role === "link" && element.getAttribute("href") ? ` -> ${element.getAttribute("href").slice(0, 200)}` : "";
    const frame = role === "iframe" && !innerOf(element) ? ` (of another origin: ${element.src.slice(0, 200)})` : "";
    return `${role}${name ? ` ${JSON.stringify(name)}` : ""}${marks.map((one) => ` [${one}]`).join("")}${value ? `: ${value}` : ""}${link}${frame}`;
  }

  function refOf(element) {
    let number = numbers.get(element);
    if (!number) {
      number = ++last_ref;
      numbers.set(element, number);
      refs.set(`e${number}`, new WeakRef(element));
    }
    return `e${number}`;
  }

  function valueOf(element) {
    if (element.type === "password") return element.value ? "••••" : "";
    if (element.tagName === "SELECT") return [...element.selectedOptions].map((one) => one.label.trim()).join(", ").slice(0, 500);
    if (element.tagName === "TEXTAREA" || (element.tagName === "INPUT" && !["checkbox", "radio", "button", "submit", "reset", "image", "file", "hidden"].includes(element.type))) return squeeze(element.value).slice(0, 500);
    return element.isContentEditable ? squeeze(element.innerText ?? "").slice(0, 500) : "";
  }

  function roleOf(element) {
    const given = element.getAttribute("role")?.trim().split(/\s+/)[0];
    if (given) return given === "presentation" || given === "none" || given === "generic" ? null : given;
    const { tagName } = element;
    if (isEditingRoot(element)) return "textbox";
    if (tagName === "INPUT") return element.type in INPUT_ROLES ? INPUT_ROLES[element.type] : "textbox";
    if (tagName === "SELECT") return element.multiple || element.size > 1 ? "listbox" : "combobox";
    if (tagName === "A" && !element.hasAttribute("href")) return null;
    if (tagName === "IMG" && element.getAttribute("alt") === "") return null;
    if (tagName === "HEADER" || tagName === "FOOTER") return element.closest("article, aside, main, nav, section") ? null : tagName === "HEADER" ? "banner" : "contentinfo";
    if (tagName === "SECTION") return element.hasAttribute("aria-label") || element.hasAttribute("aria-labelledby") ? "region" : null;
    return TAG_ROLES[tagName] ?? null;
  }

  function isEditingRoot(element) {
    return element.isContentEditable === true && element.parentElement?.isContentEditable !== true;
  }

  function nameOf(element, role) {
    const by = element.getAttribute("aria-labelledby");
    const root = element.getRootNode();
    const labelled = by && by.split(/\s+/).map((id) => squeeze(root.getElementById?.(id)?.textContent ?? "")).join(" ").trim();
    if (labelled) return clip(labelled);
    const label = element.getAttribute("aria-label")?.trim();
    if (label) return clip(label);
    if (element.labels?.length > 0) return clip([...element.labels].map((one) => squeeze(one.textContent)).join(" "));
    if (element.tagName === "INPUT" && ["button", "submit", "reset"].includes(element.type)) return clip(element.value || element.type);
    if (element.tagName === "FIELDSET") return clip(squeeze(element.querySelector("legend")?.textContent ?? ""));
    if (element.tagName === "TABLE") return clip(squeeze(element.caption?.textContent ?? ""));
    const alt = element.getAttribute("alt");
    if (alt) return clip(squeeze(alt));
    if (NAME_FROM_CONTENT.has(role)) {
      const content = squeeze(element.innerText || element.textContent || "") || squeeze([...element.querySelectorAll("img[alt], svg title, [aria-label]")].map((one) => one.alt || one.getAttribute("aria-label") || one.textContent).join(" "));
      if (content) return clip(content);
    }
    return clip(squeeze(element.getAttribute("title") ?? element.getAttribute("placeholder") ?? ""));
  }

  function squeeze(said) {
    return said.replace(/\s+/g, " ").trim();
  }

  function clip(said) {
    return said.length > 200 ? `${said.slice(0, 200)}…` : said;
  }

  function value(args) {
    return { value: valueOf(find(args)) };
  }

  const methods = { locate, focus, value, fill, insert, select, mouse, key, scroll, check, text, size, snapshot };

  /** Answers `{value}`, or `{missing}` for what is not in the page, or `{error}` for what cannot be asked. */
  return async (method, args) => {
    try {
      return { value: await methods[method](args) };
    } catch (error) {
      return error instanceof Missing ? { missing: error.message } : { error: error.message };
    }
  };
})();
