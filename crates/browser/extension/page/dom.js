// What the elements of a page are: how they are found, and their roles, names and values. It runs in
// the extension's isolated world, where the built-ins are the browser's own. A form may hide members
// of its element behind fields of the same name, so members are read by the prototypes.

globalThis.raincheckDom ??= (() => {
  const refs = new Map();
  const numbers = new WeakMap();
  const counter = { last: 0 };

  const INTERACTIVE = new Set(["button", "link", "textbox", "searchbox", "checkbox", "radio", "combobox", "listbox", "option", "slider", "spinbutton", "switch", "tab", "menuitem", "menuitemcheckbox", "menuitemradio", "treeitem"]);
  const NAME_FROM_CONTENT = new Set(["button", "link", "heading", "option", "tab", "menuitem", "menuitemcheckbox", "menuitemradio", "treeitem", "checkbox", "radio", "switch", "cell", "columnheader", "rowheader", "tooltip"]);
  const CHECKABLE = new Set(["checkbox", "radio", "switch", "menuitemcheckbox", "menuitemradio"]);
  const TAG_ROLES = { A: "link", ARTICLE: "article", ASIDE: "complementary", BUTTON: "button", DETAILS: "group", DIALOG: "dialog", FIELDSET: "group", FIGURE: "figure", FORM: "form", H1: "heading", H2: "heading", H3: "heading", H4: "heading", H5: "heading", H6: "heading", HR: "separator", IFRAME: "iframe", FRAME: "iframe", IMG: "img", LI: "listitem", MAIN: "main", MENU: "list", METER: "meter", NAV: "navigation", OL: "list", OPTION: "option", OUTPUT: "status", P: "paragraph", PROGRESS: "progressbar", SUMMARY: "button", TABLE: "table", TD: "cell", TEXTAREA: "textbox", TH: "columnheader", TR: "row", UL: "list", VIDEO: "video", AUDIO: "audio", CANVAS: "canvas" };
  const INPUT_ROLES = { button: "button", submit: "button", reset: "button", image: "button", checkbox: "checkbox", radio: "radio", range: "slider", number: "spinbutton", search: "searchbox", file: "button", color: "button", hidden: null };
  const NOT_TYPED = new Set(["checkbox", "radio", "button", "submit", "reset", "image", "file", "hidden"]);
  const FRAMES = new Set(["IFRAME", "FRAME"]);
  const HOSTS = new Set(["ARTICLE", "ASIDE", "BLOCKQUOTE", "BODY", "DIV", "FOOTER", "H1", "H2", "H3", "H4", "H5", "H6", "HEADER", "MAIN", "NAV", "P", "SECTION", "SPAN"]);
  const TARGETS = "a[href], button, input, select, textarea, [tabindex], [role=button], [role=link], [role=checkbox]";
  const HOLDS_TEXT = "select, textarea";
  const MAX_NAME = 200;
  const MAX_LOOKED_AT = 400;
  const MAX_REFS = 100_000;

  /** What is not in the page, or cannot be done with what is there. `acted`: that was seen only after something was done to it. */
  class Missing extends Error {
    constructor(message, { acted } = {}) {
      super(message);
      this.acted = acted;
    }
  }

  // ---- members, whatever a form's fields are called ----------------------------------------

  const uncurried = (of) => Function.prototype.call.bind(of);
  const getter = (type, name) => uncurried(Object.getOwnPropertyDescriptor(type.prototype, name).get);
  const attr = uncurried(Element.prototype.getAttribute);
  const has = uncurried(Element.prototype.hasAttribute);
  const fits = uncurried(Element.prototype.matches);
  const nearest = uncurried(Element.prototype.closest);
  const one = uncurried(Element.prototype.querySelector);
  const rootOf = uncurried(Node.prototype.getRootNode);
  const rectsOf = uncurried(Element.prototype.getClientRects);
  const rectOf = uncurried(Element.prototype.getBoundingClientRect);
  const checkVisibility = uncurried(Element.prototype.checkVisibility);
  const tagOf = getter(Element, "tagName");
  const kindOf = getter(Node, "nodeType");
  const documentOf = getter(Node, "ownerDocument");
  const childNodesOf = getter(Node, "childNodes");
  const parentOf = getter(Node, "parentElement");
  const isConnected = getter(Node, "isConnected");
  const textOf = getter(Node, "textContent");
  const isEditableHtml = getter(HTMLElement, "isContentEditable");
  const allIn = uncurried(Element.prototype.getElementsByTagName);
  const inside = uncurried(Node.prototype.contains);

  const isHtml = (element) => element.namespaceURI === "http://www.w3.org/1999/xhtml";
  const viewOf = (element) => documentOf(element).defaultView;

  /** A field's `type`, as the browser understands it; of other elements nothing. */
  function typeOf(element) {
    const tag = tagOf(element);
    return tag === "INPUT" || tag === "BUTTON" || tag === "SELECT" || tag === "TEXTAREA" ? element.type : "";
  }

  // ---- finding -----------------------------------------------------------------------------

  function find({ ref, selector }) {
    if (ref !== undefined) {
      const element = refs.get(String(ref).replace(/^@?(?:f\d+)?/, ""))?.deref();
      if (!element || !isConnected(element)) throw new Missing(`ref ${ref} is not on this page any more; take a new snapshot`);
      return element;
    }
    const all = query(document, selector);
    if (all.length === 0) throw new Missing(`no element matches \`${selector}\``);
    return all.find(isVisible) ?? all[0];
  }

  /** The document, then shadow roots and frames of the same origin. */
  function query(root, selector) {
    const found = [...root.querySelectorAll(selector)];
    if (found.length > 0) return found;
    for (const inner of innersOf(root)) {
      const deeper = query(inner, selector);
      if (deeper.length > 0) return deeper;
    }
    return [];
  }

  /** The shadow roots and the documents of frames that are directly below a root. */
  function innersOf(root) {
    const inners = [];
    for (const element of root.querySelectorAll("*")) {
      const inner = innerOf(element);
      if (inner) inners.push(inner);
    }
    return inners;
  }

  /** What is shown in the place of an element's children: its shadow root, or the document in a frame. */
  function innerOf(element) {
    const tag = tagOf(element);
    if (FRAMES.has(tag)) {
      try {
        return element.contentDocument;
      } catch {
        return null;
      }
    }
    if (!(HOSTS.has(tag) || tag.includes("-")) || !isHtml(element)) return null;
    return chrome.dom?.openOrClosedShadowRoot?.(element) ?? element.shadowRoot ?? null;
  }

  function isVisible(element) {
    return checkVisibility(element, { visibilityProperty: true }) && rectsOf(element).length > 0;
  }

  /** The element that has the focus, inside shadow roots and frames of the same origin too. */
  function focused() {
    let at = document.activeElement;
    for (;;) {
      const inner = at && innerOf(at);
      if (!inner?.activeElement) return at;
      at = inner.activeElement;
    }
  }

  function hasFocus(element) {
    return rootOf(element).activeElement === element;
  }

  function refOf(element) {
    let number = numbers.get(element);
    if (!number) {
      number = ++counter.last;
      numbers.set(element, number);
      if (refs.size >= MAX_REFS) forgetGone();
      refs.set(`e${number}`, new WeakRef(element));
    }
    return `e${number}`;
  }

  function forgetGone() {
    for (const [ref, held] of refs) if (!held.deref()?.isConnected) refs.delete(ref);
  }

  // ---- frames --------------------------------------------------------------------------------

  /** The place of a frame among its siblings; -1 for one that is in a shadow root. */
  function indexOf(frame) {
    const { contentWindow } = frame;
    const view = viewOf(frame);
    for (let n = 0; n < view.length; n++) if (view[n] === contentWindow) return n;
    return -1;
  }

  /** The way from this document to a frame inside it: the places from frame to frame. */
  function pathTo(frame) {
    const path = [indexOf(frame)];
    for (let view = viewOf(frame); view !== window; ) {
      const { frameElement } = view;
      path.unshift(indexOf(frameElement));
      view = viewOf(frameElement);
    }
    return path;
  }

  // ---- roles, names, values ------------------------------------------------------------------

  function describe(element) {
    const role = roleOf(element) ?? element.localName;
    const name = nameOf(element, role);
    return name ? `${role} ${JSON.stringify(name)}` : role;
  }

  function roleOf(element) {
    const given = attr(element, "role")?.trim().split(/\s+/)[0];
    if (given) return given === "presentation" || given === "none" || given === "generic" ? null : given;
    const tag = tagOf(element);
    if (isEditingRoot(element)) return "textbox";
    if (tag === "INPUT") return element.type in INPUT_ROLES ? INPUT_ROLES[element.type] : "textbox";
    if (tag === "SELECT") return element.multiple || element.size > 1 ? "listbox" : "combobox";
    if (tag === "A" && !has(element, "href")) return null;
    if (tag === "IMG" && attr(element, "alt") === "") return null;
    if (tag === "HEADER" || tag === "FOOTER") return nearest(element, "article, aside, main, nav, section") ? null : tag === "HEADER" ? "banner" : "contentinfo";
    if (tag === "SECTION") return has(element, "aria-label") || has(element, "aria-labelledby") ? "region" : null;
    if (tag === "svg") return has(element, "aria-label") || one(element, ":scope > title") ? "img" : null;
    return TAG_ROLES[tag] ?? null;
  }

  function isEditingRoot(element) {
    if (!isHtml(element)) return false;
    if (has(element, "contenteditable")) return isEditableHtml(element) && !isEditable(parentOf(element));
    return tagOf(element) === "BODY" && documentOf(element).designMode === "on";
  }

  function isEditable(element) {
    return element !== null && isHtml(element) && isEditableHtml(element);
  }

  /** `labelsOf` finds the labels of a control; the browser's own list looks through the whole page each time. */
  function nameOf(element, role, labelsOf = (control) => control.labels) {
    const by = attr(element, "aria-labelledby");
    const root = rootOf(element);
    const labelled = by && by.split(/\s+/).map((id) => squeeze((id && root.getElementById?.(id)?.textContent) || "")).join(" ").trim();
    if (labelled) return clip(labelled);
    const label = attr(element, "aria-label")?.trim();
    if (label) return clip(label);
    const tag = tagOf(element);
    const labels = typeOf(element) || tag === "METER" || tag === "PROGRESS" || tag === "OUTPUT" ? labelsOf(element) : null;
    if (labels?.length > 0) return clip([...labels].map((each) => squeeze(saidBy(each))).join(" "));
    if (tag === "INPUT" && ["button", "submit", "reset"].includes(element.type)) return clip(element.value || element.type);
    if (tag === "FIELDSET") return clip(squeeze(one(element, "legend")?.textContent ?? ""));
    if (tag === "TABLE") return clip(squeeze(element.caption?.textContent ?? ""));
    if (tag === "svg") return clip(squeeze(one(element, ":scope > title")?.textContent ?? ""));
    const alt = attr(element, "alt");
    if (alt) return clip(squeeze(alt));
    if (NAME_FROM_CONTENT.has(role)) {
      const content = contentOf(element) || squeeze([...element.querySelectorAll("img[alt], svg title, [aria-label]")].slice(0, 20).map((each) => each.alt || attr(each, "aria-label") || textOf(each)).join(" "));
      if (content) return clip(content);
    }
    return clip(squeeze(attr(element, "title") ?? attr(element, "placeholder") ?? ""));
  }

  /** What a label says, without the choices and the text that the controls in it hold. */
  function saidBy(label) {
    if (!one(label, HOLDS_TEXT)) return textOf(label);
    const walk = (node) => (kindOf(node) === 3 ? node.data : kindOf(node) !== 1 || fits(node, HOLDS_TEXT) ? " " : [...childNodesOf(node)].map(walk).join(""));
    return walk(label);
  }

  /** The text that is shown in an element, as far as a name needs it. */
  function contentOf(element) {
    let said = "";
    let n_left = MAX_LOOKED_AT;
    const walk = (node) => {
      if (said.length > MAX_NAME || n_left-- <= 0) return;
      const kind = kindOf(node);
      if (kind === 3) return void (said += node.data);
      if (kind !== 1) return;
      if (node !== element) {
        if (attr(node, "aria-hidden") === "true") return;
        const { display, visibility } = getComputedStyle(node);
        if (display === "none" || visibility !== "visible") return;
        if (display !== "inline" && display !== "contents") said += " ";
      }
      for (const child of shownIn(node)) walk(child);
    };
    walk(element);
    return squeeze(said);
  }

  /** What is shown inside an element: of a frame its body, of a shadow host its tree, of a slot what it was given. */
  function shownIn(element) {
    const tag = tagOf(element);
    const inner = innerOf(element);
    if (FRAMES.has(tag)) return inner?.body ? [inner.body] : [];
    if (inner) return inner.childNodes;
    if (tag === "SLOT") {
      const assigned = element.assignedNodes();
      if (assigned.length > 0) return assigned;
    }
    return childNodesOf(element);
  }

  function valueOf(element) {
    const type = typeOf(element);
    if (type === "password") return element.value ? "••••" : "";
    const tag = tagOf(element);
    if (tag === "SELECT") return [...element.selectedOptions].map((each) => each.label.trim()).join(", ").slice(0, 500);
    if (tag === "TEXTAREA" || (tag === "INPUT" && !NOT_TYPED.has(type))) return squeeze(element.value).slice(0, 500);
    return isEditable(element) ? squeeze(element.innerText ?? "").slice(0, 500) : "";
  }

  function squeeze(said) {
    return said.replace(/\s+/g, " ").trim();
  }

  function clip(said) {
    return said.length > MAX_NAME ? `${said.slice(0, MAX_NAME)}…` : said;
  }

  return {
    Missing, INTERACTIVE, NAME_FROM_CONTENT, CHECKABLE, FRAMES, TARGETS, NOT_TYPED, counter,
    attr, has, fits, nearest, one, rootOf, rectsOf, rectOf, tagOf, parentOf, typeOf, kindOf, documentOf, viewOf, isConnected, inside, allIn, isHtml,
    find, query, innersOf, innerOf, shownIn, isVisible, focused, hasFocus, refOf, indexOf, pathTo,
    describe, roleOf, nameOf, valueOf, isEditable, squeeze,
  };
})();
