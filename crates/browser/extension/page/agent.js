// The part that touches the elements of a page. It runs in the extension's isolated world, where the
// page's own scripts and policies do not reach. Waiting is done by the caller.

globalThis.raincheckAgent ??= (() => {
  const { Missing, NOT_TYPED, FRAMES, fits, nearest, rootOf, rectsOf, rectOf, tagOf, typeOf, documentOf, viewOf, inside, find, innerOf, isVisible, focused, hasFocus, indexOf, describe, valueOf, isEditable, counter } = globalThis.raincheckDom;
  const { textOf, says } = globalThis.raincheckText;
  const { document_id, keep, recall, begin, quiet, unwatch } = globalThis.raincheckKept;

  const realms = new Map();

  // ---- acting ------------------------------------------------------------------------------

  /** Whether an element can be acted on now, and where. `why` says what is missing. */
  function locate(args) {
    const element = find(args);
    const what = describe(element);
    if (!isVisible(element)) return { why: `${what} is not visible` };
    if (args.enabled && fits(element, ":disabled, [aria-disabled=true]")) return { why: `${what} is disabled` };
    if (args.editable && (element.readOnly || !takesText(element))) return { why: `${what} cannot be edited` };
    const has_scrolled = bringIntoView(element, args.hit);
    const box = boxOf(element);
    const cover = args.hit ? coverOf(element) : null;
    if (cover) return { why: `${what} is covered by ${describe(cover)}`, has_scrolled };
    return { x: box.x + box.width / 2, y: box.y + box.height / 2, width: box.width, height: box.height, has_scrolled, what, tag: element.localName, type: typeOf(element), href: linkOf(element)?.href, is_secret: isSecret(element), origin: originOf(element) };
  }

  function linkOf(element) {
    return nearest(element, "a[href], area[href]");
  }

  /** The next click on a link does what the page does with it, but does not follow it. */
  function holdLink(args) {
    const view = viewOf(find(args));
    view.addEventListener("click", (event) => event.preventDefault(), { once: true });
    return {};
  }

  /** What can be hit already is not scrolled: that would close a menu which closes on scroll. Tells whether it was. */
  function bringIntoView(element, is_hit) {
    if (isInView(element) && (!is_hit || coverOf(element) === null)) return false;
    element.scrollIntoView({ block: "center", inline: "center", behavior: "instant" });
    return true;
  }

  /** Whether the middle of an element is within its view, and within those of the frames around it. */
  function isInView(element) {
    const { x, y, width, height } = firstRect(element);
    let [at_x, at_y] = [x + width / 2, y + height / 2];
    for (let view = viewOf(element); ; view = view.parent) {
      if (at_x < 0 || at_y < 0 || at_x > view.innerWidth || at_y > view.innerHeight) return false;
      const frame = view.frameElement;
      if (!frame) break;
      const outer = rectOf(frame);
      at_x += outer.x + frame.clientLeft;
      at_y += outer.y + frame.clientTop;
    }
    // What scrolls may hide it also within the view.
    const top = topAt(element);
    return top !== null && (top === element || inside(element, top) || inside(top, element) || !isClipped(element));
  }

  function isClipped(element) {
    const { x, y, width, height } = firstRect(element);
    for (let at = element.parentElement; at; at = at.parentElement) {
      if (getComputedStyle(at).overflow === "visible") continue;
      const box = rectOf(at);
      if (x + width / 2 < box.left || x + width / 2 > box.right || y + height / 2 < box.top || y + height / 2 > box.bottom) return true;
    }
    return false;
  }

  function firstRect(element) {
    return [...rectsOf(element)].find((rect) => rect.width > 0 && rect.height > 0) ?? rectOf(element);
  }

  /** The box in the coordinates of the outermost document that this world reaches. */
  function boxOf(element) {
    let { x, y, width, height } = firstRect(element);
    for (let frame = viewOf(element).frameElement; frame; frame = viewOf(frame).frameElement) {
      const outer = rectOf(frame);
      x += outer.x + frame.clientLeft;
      y += outer.y + frame.clientTop;
    }
    return { x, y, width, height };
  }

  function topAt(element) {
    const rect = firstRect(element);
    return rootOf(element).elementFromPoint?.(rect.x + rect.width / 2, rect.y + rect.height / 2) ?? null;
  }

  function coverOf(element) {
    const top = topAt(element);
    if (!top || top === element || inside(element, top) || inside(top, element)) return null;
    if (nearest(top, "label")?.control === element || inside(nearest(element, "label") ?? element, top)) return null;
    // A part of the element that is shown through a slot, or the host that it is in.
    for (let host = rootOf(element).host; host; host = rootOf(host).host) if (host === top) return null;
    return top;
  }

  /**
   * Where a frame inside this document is, for what is at a point in it: `{x, y, levels}` in the coordinates
   * of the outermost document that this world reaches, `levels` frames further out.
   */
  function place({ index, url, x, y, hit }) {
    const frame = frameAt(index, url);
    if (!frame) return { why: "its frame is not found" };
    if (!isVisible(frame)) return { why: "its frame is not visible" };
    if (!isInWindow(frame, pointIn(frame, x, y))) frame.scrollIntoView({ block: "center", inline: "center", behavior: "instant" });
    const inner = pointIn(frame, x, y);
    const top = rootOf(frame).elementFromPoint?.(inner.x, inner.y);
    if (hit && top && top !== frame && !inside(top, frame)) return { why: `its frame is covered by ${describe(top)}` };
    let { x: at_x, y: at_y } = inner;
    let levels = 0;
    for (let outer = viewOf(frame).frameElement; outer; outer = viewOf(outer).frameElement, levels++) {
      const rect = rectOf(outer);
      at_x += rect.x + outer.clientLeft;
      at_y += rect.y + outer.clientTop;
    }
    return { x: at_x, y: at_y, levels };
  }

  function frameAt(index, url) {
    const inner = index >= 0 ? window[index] : null;
    const known = framesIn(document);
    const by_window = inner && known.find((frame) => frame.contentWindow === inner);
    if (by_window) return by_window;
    const by_url = known.filter((frame) => indexOf(frame) < 0 && frame.src === url);
    return by_url.length === 1 ? by_url[0] : null;
  }

  function framesIn(root) {
    const found = [];
    for (const element of root.querySelectorAll("*")) {
      if (FRAMES.has(tagOf(element))) found.push(element);
      else {
        const inner = innerOf(element);
        if (inner) found.push(...framesIn(inner));
      }
    }
    return found;
  }

  /** A frame that is shown smaller or larger than it is has all in it shown so. */
  function pointIn(frame, x, y) {
    const rect = rectOf(frame);
    const scale = { x: frame.offsetWidth ? rect.width / frame.offsetWidth : 1, y: frame.offsetHeight ? rect.height / frame.offsetHeight : 1 };
    return { x: rect.x + (frame.clientLeft + x) * scale.x, y: rect.y + (frame.clientTop + y) * scale.y };
  }

  function isInWindow(frame, { x, y }) {
    const view = viewOf(frame);
    return x >= 0 && y >= 0 && x <= view.innerWidth && y <= view.innerHeight;
  }

  function takesText(element) {
    const tag = tagOf(element);
    return isEditable(element) || tag === "TEXTAREA" || tag === "SELECT" || (tag === "INPUT" && (!NOT_TYPED.has(element.type) || element.type === "checkbox" || element.type === "radio"));
  }

  function focus(args) {
    const element = find(args);
    element.focus({ preventScroll: true });
    const selection = viewOf(element).getSelection();
    if (isEditable(element)) selection.selectAllChildren(element), selection.collapseToEnd();
    else if (typeof element.selectionStart === "number") element.selectionStart = element.selectionEnd = element.value.length;
    // The focus may have gone to a part inside: to what the element delegates it to.
    const root = rootOf(element);
    return { what: describe(element), is_focused: hasFocus(element) || inside(element, root.activeElement) || root.host === element };
  }

  /** Whether what is typed into an element is to be hidden, also while the page shows it. */
  function isSecret(element) {
    return typeOf(element) === "password" || /password|one-time-code|cc-(number|csc)/.test(element.getAttribute("autocomplete") ?? "");
  }

  function originOf(element) {
    return viewOf(element)?.origin ?? "null";
  }

  function fill(args) {
    const element = find(args);
    if (args.origin !== undefined && args.origin !== originOf(element)) throw new Missing("the page has changed meanwhile");
    const text = String(args.text);
    if (tagOf(element) === "SELECT") return select({ ...args, value: text });
    element.focus({ preventScroll: true });
    if (isEditable(element) && !typeOf(element)) {
      viewOf(element).getSelection().selectAllChildren(element);
      documentOf(element).execCommand("insertText", false, text) || (element.textContent = text);
    } else {
      if (element.type === "checkbox" || element.type === "radio") throw new Missing(`${describe(element)} is not filled; click it`);
      // By the setter of the prototype: frameworks that watch the own property hear the event, too.
      const view = viewOf(element);
      const type = tagOf(element) === "TEXTAREA" ? view.HTMLTextAreaElement : view.HTMLInputElement;
      const { set } = Object.getOwnPropertyDescriptor(type.prototype, "value");
      const before = element.value;
      set.call(element, text);
      const is_taken = element.value === text || (text !== "" && element.value !== "");
      if (!is_taken) set.call(element, before);
      if (!is_taken) throw new Missing(`${describe(element)} (type ${element.type}) does not take ${isSecret(element) ? "it" : JSON.stringify(text.slice(0, 100))}`);
    }
    element.dispatchEvent(new InputEvent("input", { bubbles: true, composed: true, inputType: "insertReplacementText", data: text }));
    element.dispatchEvent(new Event("change", { bubbles: true }));
    return { what: describe(element), value: valueOf(element) };
  }

  function insert(args) {
    const element = find(args);
    focus(args);
    if (isEditable(element) && !typeOf(element)) {
      documentOf(element).execCommand("insertText", false, args.text);
      return { what: describe(element), value: valueOf(element) };
    }
    return fill({ ...args, text: element.value + args.text });
  }

  function select(args) {
    const element = find(args);
    if (tagOf(element) !== "SELECT") throw new Missing(`${describe(element)} is not a list to select from; click it`);
    const wanted = (Array.isArray(args.value) ? args.value : [args.value]).map(String);
    const options = [...element.options];
    const chosen = wanted.map((one) => options.find((option) => option.value === one) ?? options.find((option) => option.label.trim() === one.trim()));
    const lacking = wanted.filter((_, n) => !chosen[n]);
    if (lacking.length > 0) throw new Missing(`${describe(element)} has no option ${JSON.stringify(lacking[0])}; it has ${options.slice(0, 30).map((one) => JSON.stringify(one.label.trim())).join(", ")}`);
    if (chosen.some((one) => fits(one, ":disabled"))) throw new Missing("the option is disabled");
    for (const option of options) option.selected = chosen.includes(option);
    element.dispatchEvent(new Event("input", { bubbles: true, composed: true }));
    element.dispatchEvent(new Event("change", { bubbles: true }));
    return { what: describe(element), value: chosen.map((one) => one.value), label: chosen.map((one) => one.label.trim()) };
  }

  function mouse({ kinds, init: given, ...args }) {
    const element = find(args);
    const box = firstRect(element);
    const init = { bubbles: true, cancelable: true, composed: true, view: viewOf(element), clientX: box.x + box.width / 2, clientY: box.y + box.height / 2, detail: 1, ...given };
    const is_plain = !given?.altKey && !given?.ctrlKey && !given?.metaKey && !given?.shiftKey;
    for (const kind of kinds) {
      if (kind === "click" && is_plain && element.click) element.click();
      else element.dispatchEvent(new (kind.startsWith("pointer") ? PointerEvent : MouseEvent)(kind, init));
    }
    return { what: describe(element) };
  }

  function key({ key: name, code, modifiers = 0 }) {
    const element = focused() ?? document.body;
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
    const box = element && (x !== undefined || y !== undefined) ? element : document.scrollingElement ?? document.documentElement;
    return { x: Math.round(box.scrollLeft), y: Math.round(box.scrollTop), max_x: box.scrollWidth - box.clientWidth, max_y: box.scrollHeight - box.clientHeight };
  }

  // ---- reading -------------------------------------------------------------------------------

  /** Whether what `wait_for` waits for is so now. */
  function check({ selector, ref, text: wanted, state = "visible" }) {
    if (wanted !== undefined) {
      const is_there = document.body !== null && says(document.body, wanted);
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

  function text({ selector, ref }) {
    const element = selector !== undefined || ref !== undefined ? find({ selector, ref }) : document.body;
    return { ...about(), parts: element ? textOf(element) : [] };
  }

  /** `watches`: the document is watched for changes from now on, by this name. `part`: it is kept as the snapshot of that. */
  async function snapshot({ watches, part, ...args }) {
    const { inners, ...told } = await globalThis.raincheckOutline(args);
    if (watches) begin(inners, watches);
    const kept = part ? keep({ text: told.text, part, is_cut: told.is_cut }) : {};
    return { ...about(), ...told, ...kept, document_id, last_ref: counter.last };
  }

  function about() {
    return { url: location.href, title: document.title, origin: location.origin === "null" ? "null" : location.origin };
  }

  function size() {
    // Of a page in quirks mode the body scrolls.
    const [outer, inner] = [document.documentElement, document.scrollingElement ?? document.documentElement];
    return { width: innerWidth, height: innerHeight, ratio: devicePixelRatio, full_height: Math.max(outer.scrollHeight, inner.scrollHeight), full_width: Math.max(outer.scrollWidth, inner.scrollWidth), scroll_x: scrollX, scroll_y: scrollY };
  }

  function value(args) {
    return { value: valueOf(find(args)) };
  }

  /** An empty document of its own, whose built-ins no script of the page has touched. */
  function openRealm({ name }) {
    const frame = document.createElement("iframe");
    frame.name = name;
    frame.style.display = "none";
    frame.setAttribute("aria-hidden", "true");
    document.documentElement.append(frame);
    realms.set(name, frame);
    return { index: indexOf(frame) };
  }

  function closeRealm({ name }) {
    realms.get(name)?.remove();
    realms.delete(name);
    return {};
  }

  const methods = { holdLink, openRealm, closeRealm, locate, place, focus, value, fill, insert, select, mouse, key, scroll, check, text, size, snapshot, keep, recall, quiet, unwatch, ...globalThis.raincheckFields({ fill, select, isSecret, originOf }), ...globalThis.raincheckTargets({ ...globalThis.raincheckDom, isSecret, originOf }) };

  // A page that prints stands still until its preview is closed.
  for (const name of ["beforeprint", "afterprint"]) addEventListener(name, ({ isTrusted }) => isTrusted && chrome.runtime.sendMessage({ kind: "print", is_open: name === "beforeprint" }).catch(() => {}));

  /** Answers `{value}`, or `{missing, acted?}` for what is not in the page, or `{error}` for what cannot be asked. */
  return async (method, args) => {
    try {
      return { value: await methods[method](args) };
    } catch (error) {
      return error instanceof Missing ? { missing: error.message, acted: error.acted } : { error: error.message };
    }
  };
})();
