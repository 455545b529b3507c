// Turns any value of a page into plain JSON data. It is sent into the page as text, so it uses
// nothing from outside itself.
//
// What JSON knows stays as it is. What it does not know becomes a string that says what it was
// ("NaN", "-0", "12n", "Symbol(x)", "[undefined]", "[Function: f]", "[Getter]", "Invalid Date", "[Circular $.a]")
// or an object with a `$type` (Map, Set, Error, Uint8Array, …); an element is its opening tag. Cut places are
// marked: "[cut: …]" in the place of a value, and `$cut` with the number of members left out. Half of a
// character becomes U+FFFD.
// No getter and no toJSON of the page is run; properties of the browser's own objects are read. What kind a
// value is of is asked of the built-ins by their slots, so that it may be of another realm than this code.

/** Serialises `this`, or the value kept under `key` by the scripting engine. */
export function serialize(limits, key) {
  const { max_depth, max_items, max_chars, max_string } = limits;
  const { apply, ownKeys, getPrototypeOf } = Reflect;
  const describe = Object.getOwnPropertyDescriptor;
  const sourceOf = Function.prototype.toString;
  const paths = new Map();
  let left = max_chars;

  const getter = (proto, name) => describe(proto, name).get;
  const passes = (method) => (value) => {
    try {
      apply(method, value, []);
      return true;
    } catch {
      return false;
    }
  };
  const typeOf = (name, member) => (typeof globalThis[name] === "function" ? getter(globalThis[name].prototype, member) : undefined);
  const is = {
    map: passes(getter(Map.prototype, "size")),
    set: passes(getter(Set.prototype, "size")),
    date: passes(Date.prototype.getTime),
    regexp: passes(getter(RegExp.prototype, "source")),
    buffer: passes(getter(ArrayBuffer.prototype, "byteLength")),
    dataView: passes(getter(DataView.prototype, "byteOffset")),
    number: passes(Number.prototype.valueOf),
    string: passes(String.prototype.valueOf),
    boolean: passes(Boolean.prototype.valueOf),
    node: passes(typeOf("Node", "nodeType")),
    nodeList: passes(typeOf("NodeList", "length")),
    collection: passes(typeOf("HTMLCollection", "length")),
    domException: passes(typeOf("DOMException", "code")),
  };
  const typedName = getter(getPrototypeOf(Uint8Array.prototype), Symbol.toStringTag);

  let root = this;
  if (key !== undefined) {
    root = globalThis[Symbol.for(key)];
    delete globalThis[Symbol.for(key)];
  }
  return root === undefined ? {} : { value: walk(root, "$", 0) };

  function walk(value, path, depth) {
    if (left <= 0) return "[cut: the result is too large]";
    left -= 8;
    switch (typeof value) {
      case "string":
        return text(value);
      case "number":
        return Number.isFinite(value) && !Object.is(value, -0) ? value : Object.is(value, -0) ? "-0" : String(value);
      case "boolean":
        return value;
      case "undefined":
        return "[undefined]";
      case "bigint":
        return text(`${value}n`);
      case "symbol":
        return text(Symbol.prototype.toString.call(value));
      case "function":
        return ofFunction(value);
      default:
        return value === null ? null : ofObject(value, path, depth);
    }
  }

  function ofObject(object, path, depth) {
    if (paths.has(object)) return `[Circular ${paths.get(object)}]`;
    if (depth >= max_depth) return "[cut: too deep]";
    paths.set(object, path);
    try {
      return ofKind(object, path, depth);
    } catch (error) {
      return "[unreadable object]";
    } finally {
      paths.delete(object);
    }
  }

  function ofKind(object, path, depth) {
    if (Array.isArray(object)) return list(object.length, (n) => own(object, n, path, depth), path);
    if (isPlain(object)) return members(object, path, depth, "Object");
    const tag = tagOf(object);
    if (object === globalThis || tag === "Window") return `[Window ${text(String(object.location?.href ?? ""))}]`;
    if (inherits(object, "nodeType") && is.node(object)) return ofNode(object);
    if (isError(object)) return ofError(object, path, depth);
    if (inherits(object, "getTime") && is.date(object)) return Number.isNaN(apply(Date.prototype.getTime, object, [])) ? "Invalid Date" : apply(Date.prototype.toISOString, object, []);
    if (inherits(object, "exec") && is.regexp(object)) return text(apply(RegExp.prototype.toString, object, []));
    if (tag === "Map" && is.map(object)) {
      const entries = [...apply(Map.prototype.entries, object, [])];
      return typed("Map", { size: entries.length, entries: list(entries.length, (n) => [walk(entries[n][0], `${path}.key(${n})`, depth + 2), walk(entries[n][1], `${path}.value(${n})`, depth + 2)]) });
    }
    if (tag === "Set" && is.set(object)) {
      const values = [...apply(Set.prototype.values, object, [])];
      return typed("Set", { size: values.length, values: list(values.length, (n) => walk(values[n], `${path}.value(${n})`, depth + 2)) });
    }
    const name = apply(typedName, object, []);
    if (name !== undefined) {
      return typed(name, { length: object.length, values: list(Math.min(object.length, 1024), (n) => walk(object[n], path, depth + 1)), $cut: object.length > 1024 ? object.length - 1024 : undefined });
    }
    if (tag === "DataView" && is.dataView(object)) return typed("DataView", { bytes: apply(getter(DataView.prototype, "byteLength"), object, []) });
    if (tag === "ArrayBuffer" && is.buffer(object)) return typed("ArrayBuffer", { bytes: apply(getter(ArrayBuffer.prototype, "byteLength"), object, []) });
    if (tag === "Promise" || tag === "WeakMap" || tag === "WeakSet" || tag === "WeakRef") return `[${tag}]`;
    for (const [kind, type] of [["number", Number], ["string", String], ["boolean", Boolean]]) {
      if (inherits(object, "valueOf") && is[kind](object)) return walk(apply(type.prototype.valueOf, object, []), path, depth);
    }
    if ((tag === "NodeList" && is.nodeList(object)) || (tag.startsWith("HTML") && is.collection(object))) {
      return list(object.length, (n) => ofNode(object[n]));
    }
    return members(object, path, depth, tag);
  }

  function members(object, path, depth, tag) {
    const names = ownKeys(object).filter((name) => typeof name === "string" && describe(object, name)?.enumerable);
    const record = Object.create(null);
    let n = 0;
    for (const name of names) {
      if (n++ >= max_items || left <= 0) {
        record.$cut = names.length - n + 1;
        break;
      }
      left -= name.length;
      record[whole(name)] = own(object, name, path, depth);
    }
    return n > 0 || isPlain(object) ? record : ofBrowserObject(object, path, depth, tag);
  }

  /** An own property as data: a getter is named, not run. */
  function own(object, name, path, depth) {
    const found = describe(object, name);
    if (!found) return "[undefined]";
    if (!("value" in found)) {
      if (!isNative(found.get)) return "[Getter]";
      found.value = apply(found.get, object, []);
      if (typeof found.value === "function" || (typeof found.value === "object" && found.value !== null)) return `[${tagOf(found.value)}]`;
    }
    return walk(found.value, typeof name === "number" ? `${path}[${name}]` : `${path}.${whole(name)}`, depth + 1);
  }

  /** An object without own members: what the browser's own getters on its prototypes say. */
  function ofBrowserObject(object, path, depth, tag) {
    const record = typed(tag, {});
    if (depth + 1 >= max_depth) return record;
    let n = 0;
    for (let proto = getPrototypeOf(object); proto && getPrototypeOf(proto); proto = getPrototypeOf(proto)) {
      for (const name of ownKeys(proto)) {
        const getter = typeof name === "string" && describe(proto, name).get;
        if (!isNative(getter) || name in record) continue;
        if (n++ >= 60) return record;
        const value = apply(getter, object, []);
        if (typeof value !== "object" && typeof value !== "function") record[name] = walk(value, `${path}.${name}`, depth + 1);
      }
    }
    return record;
  }

  /** By the getters of the prototypes: a form's own fields may hide those of the element. */
  function ofNode(node) {
    const get = (type, name) => apply(getter(type.prototype, name), node, []);
    const kind = get(Node, "nodeType");
    if (kind === 9) return `[Document ${text(get(Document, "URL"))}]`;
    if (kind !== 1) return `[${get(Node, "nodeName")} ${text(String(get(Node, "nodeValue") ?? "").slice(0, 200))}]`;
    const attributes = get(Element, "attributes");
    let tag = `<${get(Element, "localName")}`;
    for (let n = 0; n < attributes.length && tag.length <= 500; n++) {
      const value = apply(getter(Attr.prototype, "value"), attributes[n], []);
      tag += ` ${apply(getter(Attr.prototype, "name"), attributes[n], [])}="${value.length > 100 ? `${value.slice(0, 100)}…` : value}"`;
    }
    return text(`${tag}>`);
  }

  /** Whether there is an error's prototype among those of an object. */
  function isError(object) {
    if (isDomException(object)) return true;
    for (let proto = getPrototypeOf(object); proto; proto = getPrototypeOf(proto)) {
      if (typeof describe(proto, "name")?.value === "string" && typeof describe(proto, "message")?.value === "string") return true;
    }
    return false;
  }

  function isDomException(object) {
    return inherits(object, "code") && is.domException(object);
  }

  function ofError(error, path, depth) {
    const say = (name) => {
      const found = describe(error, name);
      return found && typeof found.value === "string" ? text(found.value) : undefined;
    };
    let name = say("name");
    for (let proto = getPrototypeOf(error); !name && proto; proto = getPrototypeOf(proto)) {
      const found = describe(proto, "name");
      if (typeof found?.value === "string") name = text(found.value);
    }
    const is_dom = isDomException(error);
    if (is_dom) name = text(apply(typeOf("DOMException", "name"), error, []));
    const cause = describe(error, "cause");
    const errors = describe(error, "errors");
    return typed("Error", {
      name: name ?? "Error",
      message: say("message") ?? (is_dom ? text(apply(typeOf("DOMException", "message"), error, [])) : ""),
      stack: say("stack"),
      cause: cause && "value" in cause ? walk(cause.value, `${path}.cause`, depth + 1) : undefined,
      errors: errors && Array.isArray(errors.value) ? walk(errors.value, `${path}.errors`, depth + 1) : undefined,
    });
  }

  function ofFunction(value) {
    const found = describe(value, "name");
    return `[Function: ${(typeof found?.value === "string" && text(found.value)) || "anonymous"}]`;
  }

  function list(length, at) {
    const items = [];
    for (let n = 0; n < length; n++) {
      if (n >= max_items || left <= 0) {
        items[n] = `[cut: ${length - n} more items]`;
        break;
      }
      items[n] = at(n);
    }
    return items;
  }

  function typed(type, fields) {
    const record = Object.create(null);
    record.$type = type;
    for (const name of Object.keys(fields)) if (fields[name] !== undefined) record[name] = fields[name];
    return record;
  }

  function text(value) {
    const most = Math.max(0, Math.min(max_string, left));
    left -= Math.min(value.length, most);
    return whole(value.length <= most ? value : `${value.slice(0, most)}[cut: ${value.length - most} more characters]`);
  }

  /** A text without halves of characters, which do not come through. */
  function whole(value) {
    return typeof value === "string" && value.toWellFormed ? value.toWellFormed() : value;
  }

  function tagOf(object) {
    for (let proto = object; proto; proto = getPrototypeOf(proto)) {
      const found = describe(proto, Symbol.toStringTag);
      if (!found) continue;
      const tag = "value" in found ? found.value : isNative(found.get) ? apply(found.get, object, []) : null;
      return typeof tag === "string" ? text(tag) : "Object";
    }
    return "Object";
  }

  /** Whether a prototype of an object has a member of this name; cheaper than to ask a built-in that fails. */
  function inherits(object, name) {
    for (let proto = getPrototypeOf(object); proto && getPrototypeOf(proto); proto = getPrototypeOf(proto)) if (describe(proto, name)) return true;
    return false;
  }

  function isNative(getter) {
    return typeof getter === "function" && /^function get [^(]*\(\) \{ \[native code\] \}$/.test(apply(sourceOf, getter, []));
  }

  function isPlain(object) {
    const proto = getPrototypeOf(object);
    return proto === null || getPrototypeOf(proto) === null;
  }
}

export const LIMITS = { max_depth: 32, max_items: 50_000, max_chars: 4_000_000, max_string: 2_000_000 };

/** The built-ins that `serialize` is made of, as expressions, and what the browser calls them. */
export const BUILT_INS = {
  "Reflect.apply": "apply",
  "Reflect.ownKeys": "ownKeys",
  "Reflect.getPrototypeOf": "getPrototypeOf",
  "Object.getOwnPropertyDescriptor": "getOwnPropertyDescriptor",
  "Object.create": "create",
  "Object.keys": "keys",
  "Object.is": "is",
  "Function.prototype.toString": "toString",
  "Function.prototype.call": "call",
  "Array.isArray": "isArray",
  "Array.prototype.filter": "filter",
  "Array.prototype[Symbol.iterator]": "values",
  "[][Symbol.iterator]().__proto__.next": "next",
  "Number.isFinite": "isFinite",
  "Number.isNaN": "isNaN",
  "Math.min": "min",
  "Math.max": "max",
  String: "String",
  "String.prototype.slice": "slice",
  "String.prototype.startsWith": "startsWith",
  "String.prototype.toWellFormed": "toWellFormed",
  "RegExp.prototype.test": "test",
  "RegExp.prototype.exec": "exec",
  "RegExp.prototype.toString": "toString",
  Map: "Map",
  "Map.prototype.has": "has",
  "Map.prototype.get": "get",
  "Map.prototype.set": "set",
  "Map.prototype.delete": "delete",
  "Map.prototype.entries": "entries",
  "Set.prototype.values": "values",
  "Symbol.prototype.toString": "toString",
  "Date.prototype.getTime": "getTime",
  "Date.prototype.toISOString": "toISOString",
};
