// Turns any value of a page into plain JSON data. It is sent into the page as text, so it uses
// nothing from outside itself.
//
// What JSON knows stays as it is. What it does not know becomes a string that says what it was
// ("NaN", "-0", "12n", "Symbol(x)", "[undefined]", "[Function: f]", "[Getter]", "Invalid Date", "[Circular $.a]")
// or an object with a `$type` (Map, Set, Error, Uint8Array, …); an element is its opening tag. Cut places are
// marked: "[cut: …]" in the place of a value, and `$cut` with the number of members left out.
// No getter and no toJSON of the page is run; properties of the browser's own objects are read.

/** Serialises `this`, or the value kept under `key` by the scripting engine. */
export function serialize(limits, key) {
  const { max_depth, max_items, max_chars, max_string } = limits;
  const { apply, ownKeys, getPrototypeOf } = Reflect;
  const describe = Object.getOwnPropertyDescriptor;
  const sourceOf = Function.prototype.toString;
  const paths = new Map();
  let left = max_chars;

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
    const tag = tagOf(object);
    if (object === globalThis || tag === "Window") return `[Window ${text(String(object.location?.href ?? ""))}]`;
    if (typeof Node === "function" && object instanceof Node) return ofNode(object);
    if (object instanceof Error) return ofError(object, path, depth);
    if (object instanceof Date) return Number.isNaN(Date.prototype.getTime.call(object)) ? "Invalid Date" : Date.prototype.toISOString.call(object);
    if (object instanceof RegExp) return text(RegExp.prototype.toString.call(object));
    if (object instanceof Map) {
      const entries = [...Map.prototype.entries.call(object)];
      return typed("Map", { size: entries.length, entries: list(entries.length, (n) => [walk(entries[n][0], `${path}.key(${n})`, depth + 2), walk(entries[n][1], `${path}.value(${n})`, depth + 2)]) });
    }
    if (object instanceof Set) {
      const values = [...Set.prototype.values.call(object)];
      return typed("Set", { size: values.length, values: list(values.length, (n) => walk(values[n], `${path}.value(${n})`, depth + 2)) });
    }
    if (ArrayBuffer.isView(object)) {
      if (object instanceof DataView) return typed("DataView", { bytes: object.byteLength });
      return typed(tag, { length: object.length, values: list(Math.min(object.length, 1024), (n) => walk(object[n], path, depth + 1)), $cut: object.length > 1024 ? object.length - 1024 : undefined });
    }
    if (object instanceof ArrayBuffer) return typed("ArrayBuffer", { bytes: object.byteLength });
    if (object instanceof Promise) return "[Promise]";
    if (object instanceof WeakMap || object instanceof WeakSet || object instanceof WeakRef) return `[${tag}]`;
    if (object instanceof Number || object instanceof String || object instanceof Boolean) return walk(object.valueOf(), path, depth);
    if (typeof NodeList === "function" && (object instanceof NodeList || object instanceof HTMLCollection)) {
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
      record[name] = own(object, name, path, depth);
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
    return walk(found.value, typeof name === "number" ? `${path}[${name}]` : `${path}.${name}`, depth + 1);
  }

  /** An object without own members: what the browser's own getters on its prototypes say. */
  function ofBrowserObject(object, path, depth, tag) {
    const record = typed(tag, {});
    if (depth + 1 >= max_depth) return record;
    let n = 0;
    for (let proto = getPrototypeOf(object); proto && proto !== Object.prototype; proto = getPrototypeOf(proto)) {
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
    const get = (type, name) => apply(describe(type.prototype, name).get, node, []);
    const kind = get(Node, "nodeType");
    if (kind === 9) return `[Document ${text(get(Document, "URL"))}]`;
    if (kind !== 1) return `[${get(Node, "nodeName")} ${text(String(get(Node, "nodeValue") ?? "").slice(0, 200))}]`;
    let tag = `<${get(Element, "localName")}`;
    for (const { name, value } of get(Element, "attributes")) {
      tag += ` ${name}="${value.length > 100 ? `${value.slice(0, 100)}…` : value}"`;
      if (tag.length > 500) break;
    }
    return text(`${tag}>`);
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
    const cause = describe(error, "cause");
    return typed("Error", {
      name: name ?? "Error",
      message: say("message") ?? (typeof DOMException === "function" && error instanceof DOMException ? text(error.message) : ""),
      stack: say("stack"),
      cause: cause && "value" in cause ? walk(cause.value, `${path}.cause`, depth + 1) : undefined,
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
    return value.length <= most ? value : `${value.slice(0, most)}[cut: ${value.length - most} more characters]`;
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

  function isNative(getter) {
    return typeof getter === "function" && /^function get [^(]*\(\) \{ \[native code\] \}$/.test(apply(sourceOf, getter, []));
  }

  function isPlain(object) {
    const proto = getPrototypeOf(object);
    return proto === null || proto === Object.prototype || getPrototypeOf(proto) === null;
  }
}

export const LIMITS = { max_depth: 32, max_items: 50_000, max_chars: 4_000_000, max_string: 2_000_000 };
