// Fields of forms: what sets one of any kind, and what gives files to one. It runs in the world of the
// agent, with the agent's own ways to type and to select.

globalThis.raincheckFields ??= ({ fill, select, isSecret, originOf }) => {
  const { Missing, find, nearest, fits, tagOf, typeOf, attr, documentOf, viewOf, describe, isVisible, squeeze } = globalThis.raincheckDom;
  const TOGGLES = new Set(["checkbox", "switch", "menuitemcheckbox", "radio", "menuitemradio"]);
  const TRUE = new Set([true, "true"]);
  const FALSE = new Set([false, "false"]);

  /** Files on their way into a field, by the name of their upload. */
  const parts = new Map();
  let drag_start = null;
  let stopWatching = () => {};

  /** Sets a field to a value of its kind; `why` says what it still waits for, `asks` whose field it is that text would go into. */
  function put({ value, names_origin = false, ...args }) {
    const element = find(args);
    const kind = typeOf(element) || attr(element, "role") || "";
    if (kind === "file") throw new Missing(`${describe(element)} takes files: use upload`);
    const is_toggle = TOGGLES.has(kind);
    const shown = is_toggle ? (labelOf(element) ?? element) : element;
    if (!isVisible(element) && !isVisible(shown)) return { why: `${describe(element)} is not visible` };
    if (fits(element, ":disabled, [aria-disabled=true]")) return { why: `${describe(element)} is disabled` };
    if (is_toggle) return toggle(element, kind, value);
    if (tagOf(element) === "SELECT") return withOptions(element, args, value);
    if (element.readOnly) return { why: `${describe(element)} cannot be edited` };
    if (typeof value === "boolean" || Array.isArray(value)) throw new Missing(`${describe(element)} takes a text`);
    const is_secret = isSecret(element);
    if (args.origin === undefined && (is_secret || names_origin)) return { asks: { is_secret, origin: originOf(element) } };
    return fill({ ...args, text: String(value) });
  }

  /** Options may come only once another field is set. */
  function withOptions(element, args, value) {
    if (typeof value === "boolean") throw new Missing(`${describe(element)} takes the value or the label of an option`);
    const wanted = (Array.isArray(value) ? value : [value]).map(String);
    const labels = new Set([...element.options].flatMap((option) => [option.value, option.label.trim()]));
    const lacking = wanted.find((each) => !labels.has(each) && !labels.has(each.trim()));
    if (lacking !== undefined) return { why: `${describe(element)} has no option ${JSON.stringify(lacking.slice(0, 100))}` };
    return select({ ...args, value: wanted });
  }

  function toggle(element, kind, value) {
    const member = kind === "radio" && typeof value === "string" && !TRUE.has(value) ? radioOf(element, value) : element;
    if (!TRUE.has(value) && !FALSE.has(value) && member === element && kind !== "radio") throw new Missing(`${describe(element)} takes true or false`);
    const wanted = !FALSE.has(value);
    const is_on = () => member.checked ?? attr(member, "aria-checked") === "true";
    if (!wanted && kind.endsWith("radio")) throw new Missing(`${describe(element)} cannot be taken back; choose another one`);
    if (is_on() !== wanted) (isVisible(member) ? member : (labelOf(member) ?? member)).click();
    if (is_on() !== wanted) throw new Missing(`${describe(member)} did not become ${wanted}`, { acted: true });
    return { what: describe(member), value: wanted };
  }

  /** Of the radio buttons with the same name the one with a value, or a label. */
  function radioOf(element, value) {
    const group = [...(element.form ?? documentOf(element)).querySelectorAll("input[type=radio]")].filter((each) => each.name === element.name);
    const named = (each) => squeeze(labelOf(each)?.textContent ?? attr(each, "aria-label") ?? "") === squeeze(value);
    const found = group.find((each) => each.value === value) ?? group.find(named);
    if (!found) throw new Missing(`no radio button of ${JSON.stringify(element.name)} has the value ${JSON.stringify(value.slice(0, 100))}`);
    return found;
  }

  function labelOf(element) {
    return element.labels?.[0] ?? nearest(element, "label");
  }

  // ---- files -------------------------------------------------------------------------------

  /** What takes the files: the field itself, that of a label, that in the element, or the only one of its form. */
  function fieldOf(element) {
    const is_field = (each) => each && tagOf(each) === "INPUT" && each.type === "file";
    if (is_field(element)) return element;
    const { control } = nearest(element, "label") ?? {};
    if (is_field(control)) return control;
    for (const root of [element, nearest(element, "form")]) {
      const fields = root ? [...root.querySelectorAll("input[type=file]")] : [];
      if (fields.length === 1) return fields[0];
    }
    throw new Missing(`${describe(element)} takes no files; give the input[type=file], a selector reaches it also where it is hidden`);
  }

  function fileField({ n_files, ...args }) {
    const field = fieldOf(find(args));
    if (fits(field, ":disabled")) return { why: `${describe(field)} is disabled` };
    if (n_files > 1 && !field.multiple && !field.webkitdirectory) throw new Missing(`${describe(field)} takes one file`);
    return { what: describe(field) };
  }

  /** Takes a piece of a file, in base64. */
  function receive({ key, n, name, type, data }) {
    const files = parts.get(key) ?? [];
    parts.set(key, files);
    files[n] ??= { name, type, pieces: [] };
    files[n].pieces.push(Uint8Array.from(atob(data), (one) => one.charCodeAt(0)));
    return {};
  }

  function attach({ key, ...args }) {
    const files = parts.get(key) ?? [];
    parts.delete(key);
    const field = fieldOf(find(args));
    const { DataTransfer, File } = viewOf(field);
    const transfer = new DataTransfer();
    for (const { name, type, pieces } of files) transfer.items.add(new File(pieces, name, { type }));
    field.files = transfer.files;
    field.dispatchEvent(new Event("input", { bubbles: true, composed: true }));
    field.dispatchEvent(new Event("change", { bubbles: true }));
    return { what: describe(field), n_files: field.files.length };
  }

  function drop({ key }) {
    parts.delete(key);
    return {};
  }

  // ---- dragging ----------------------------------------------------------------------------

  /** Looks out for the browser's own drag and drop to begin. */
  function watchDrag() {
    stopWatching();
    drag_start = null;
    const hear = (event) => (drag_start = event);
    window.addEventListener("dragstart", hear, { capture: true });
    stopWatching = () => window.removeEventListener("dragstart", hear, { capture: true });
    return {};
  }

  /** Whether it began, and the page did not take it over. */
  function dragBegan() {
    stopWatching();
    return { began: drag_start !== null && !drag_start.defaultPrevented };
  }

  // ---- what the page keeps -----------------------------------------------------------------

  const MAX_STORED_CHARS = 400_000;

  /** The storages of this origin; what there is no room for is named. */
  function stored() {
    let left = MAX_STORED_CHARS;
    const left_out = [];
    const read = (kind, storage) => Object.fromEntries(Object.keys(storage).flatMap((name) => {
      const value = storage.getItem(name) ?? "";
      left -= name.length + value.length;
      if (left >= 0) return [[name, value]];
      left_out.push(`${kind} ${name.slice(0, 100)}: ${value.length} characters`);
      return [];
    }));
    try {
      const told = { url: location.href, origin: location.origin, local: read("local", localStorage), session: read("session", sessionStorage) };
      return left_out.length > 0 ? { ...told, left_out: left_out.slice(0, 100) } : told;
    } catch {
      return { is_closed: true };
    }
  }

  return { put, stored, fileField, receive, attach, drop, watchDrag, dragBegan };
};
