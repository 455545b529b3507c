// A target for an element that means it also after a reload: a selector by what the page's author called it, that
// matches this one element and no other. It runs in the world of the agent, with the agent's own way to find elements,
// so that what matches here is what `find` finds: in the document, else in shadow roots and frames of the same origin.

globalThis.raincheckTargets ??= ({ find, query, attr, tagOf, typeOf, parentOf, rootOf, focused, innerOf, pathTo, describe, isSecret, originOf, FRAMES }) => {
  const TEST_IDS = ["data-testid", "data-test-id", "data-test", "data-qa", "data-cy"];
  const NAMES = ["aria-label", "placeholder", "alt", "title", "for"];
  /** Such ids are made anew at each load, or may be. */
  const MADE_ID = /\d{3}|[0-9a-f]{8}|:|^_|(^|[-_])(ember|radix|react|mui|headlessui|ext-gen)/i;
  const MAX_VALUE = 120;
  const MAX_LEVELS = 12;
  const MAX_FOUND = 4;
  const MAX_TRIED = 60;
  const PLUGINS = new Set(["OBJECT", "EMBED"]);
  /** Fields that keys were pressed in, by number. */
  const fields = new WeakMap();
  let n_fields = 0;

  /** `{selectors, what, is_secret, origin, field}`: the best first; none where nothing means this element alone. */
  function stable(args) {
    const element = find(args);
    const told = { selectors: [], what: describe(element), is_secret: isSecret(element), origin: originOf(element), field: attr(element, "name") || attr(element, "id") || attr(element, "autocomplete") || "" };
    let n_tried = 0;
    for (const selector of candidates(element)) {
      if (told.selectors.length >= MAX_FOUND || n_tried++ >= MAX_TRIED) break;
      if (!told.selectors.includes(selector) && isOnly(selector, element)) told.selectors.push(selector);
    }
    return told;
  }

  function isOnly(selector, element) {
    const found = query(document, selector);
    return found.length === 1 && found[0] === element;
  }

  /** How many elements a selector would find here. */
  function matching({ selector }) {
    return { n: query(document, selector).length };
  }

  /**
   * Whether keys go where secrets are typed, and of which origin that is; of such a field its name, what stands in it and what of that is
   * selected. `has_focus`: this document is known to have the focus. `inside`: they go into a frame that has an agent of its own, at that path.
   */
  function keysAreSecret({ prefix = "" } = {}) {
    const element = focused();
    if (!element) return { is_secret: false, origin: self.origin };
    const is_plugin = PLUGINS.has(tagOf(element));
    if (is_plugin || (FRAMES.has(tagOf(element)) && !innerOf(element))) return { is_secret: false, origin: originOf(element), inside: { path: pathTo(element), is_plugin } };
    if (!isSecret(element)) return { is_secret: false, origin: originOf(element) };
    if (!fields.has(element)) fields.set(element, ++n_fields);
    const told = { is_secret: true, origin: originOf(element), has_focus: document.hasFocus(), field: `${prefix}key${fields.get(element)}` };
    return typeof element.value === "string" ? { ...told, value: element.value, from: element.selectionStart ?? undefined, to: element.selectionEnd ?? undefined } : told;
  }

  function* candidates(element) {
    const own = [...ownNames(element)];
    yield* own;
    for (const anchor of anchorsOf(element)) for (const name of own) yield `${anchor.name} ${name}`;
    for (const { name, at } of anchorsOf(element)) yield `${name} > ${pathFrom(at, element)}`;
    const id = attr(element, "id");
    if (isPlain(id)) yield `#${CSS.escape(id)}`;
    yield pathFrom(null, element);
  }

  /** What its author called an element, the surest first. */
  function* ownNames(element) {
    const tag = tagIn(element);
    yield* surest(element);
    const name = attr(element, "name");
    if (isPlain(name)) {
      const value = typeOf(element) === "radio" || typeOf(element) === "checkbox" ? attr(element, "value") : null;
      yield `${tag}[name=${quoted(name)}]${isPlain(value) ? `[value=${quoted(value)}]` : ""}`;
    }
    for (const each of NAMES) {
      const value = attr(element, each);
      if (isPlain(value)) yield `${tag}[${each}=${quoted(value)}]`;
    }
    const href = attr(element, "href");
    if (isPlain(href) && href !== "#") yield `${tag}[href=${quoted(href)}]`;
    const type = attr(element, "type");
    if (isPlain(type)) yield `${tag}[type=${quoted(type)}]`;
    const role = attr(element, "role");
    if (isPlain(role)) yield `${tag}[role=${quoted(role)}]`;
  }

  function* surest(element) {
    const id = attr(element, "id");
    if (isPlain(id) && !MADE_ID.test(id)) yield `#${CSS.escape(id)}`;
    for (const each of TEST_IDS) {
      const value = attr(element, each);
      if (isPlain(value)) yield `[${each}=${quoted(value)}]`;
    }
  }

  /** The elements around one that have a name of their own, the nearest first. */
  function* anchorsOf(element) {
    let n = 0;
    for (let at = parentOf(element); at && n < MAX_LEVELS; at = parentOf(at), n++) {
      for (const name of surest(at)) {
        yield { name, at };
        break;
      }
    }
  }

  /** The way from an element, or from the outermost, to one inside it. */
  function pathFrom(outer, element) {
    const steps = [];
    for (let at = element; at && at !== outer; at = parentOf(at)) steps.unshift(stepTo(at));
    return steps.join(" > ");
  }

  function stepTo(element) {
    const siblings = [...(parentOf(element) ?? rootOf(element)).children].filter((each) => tagOf(each) === tagOf(element));
    return siblings.length > 1 ? `${tagIn(element)}:nth-of-type(${siblings.indexOf(element) + 1})` : tagIn(element);
  }

  function tagIn(element) {
    return CSS.escape(tagOf(element).toLowerCase());
  }

  function isPlain(value) {
    return typeof value === "string" && value !== "" && value.length <= MAX_VALUE && !/\p{Cc}/u.test(value);
  }

  function quoted(value) {
    return `"${value.replace(/["\\]/g, "\\$&")}"`;
  }

  return { stable, matching, keysAreSecret };
};
