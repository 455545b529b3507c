// Whether arguments are what the schema of a page's tool asks for. The schema is a stranger's: what is looked at of it is
// bounded, nothing of it is run or fetched, and what is not understood asks for nothing. Patterns, references and combinations
// are not understood.

const MAX_DEPTH = 16;
const MAX_STEPS = 5000;
const MAX_TOLD = 120;

/** What is wrong first, in words that name the place, or null. */
export function wrongIn(schema, input) {
  return wrongAt(schema, input, "arguments", 0, { left: MAX_STEPS });
}

function wrongAt(schema, value, path, depth, budget) {
  if (!isObject(schema) || depth > MAX_DEPTH || --budget.left < 0) return null;
  // What stands beside a reference counts in some drafts and not in others.
  if (Object.hasOwn(schema, "$ref")) return null;
  return wrongKind(schema, value, path, budget) ?? wrongBounds(schema, value, path) ?? wrongMembers(schema, value, path, depth, budget) ?? wrongItems(schema, value, path, depth, budget);
}

const KINDS = {
  null: (value) => value === null,
  boolean: (value) => typeof value === "boolean",
  number: (value) => typeof value === "number",
  integer: (value) => Number.isInteger(value),
  string: (value) => typeof value === "string",
  array: (value) => Array.isArray(value),
  object: isObject,
};

function wrongKind(schema, value, path, budget) {
  const kinds = [...new Set([own(schema, "type")].flat())];
  // A kind that nobody knows may be anything.
  const is_known = kinds.length > 0 && kinds.every((kind) => typeof kind === "string" && Object.hasOwn(KINDS, kind));
  if (is_known && !kinds.some((kind) => KINDS[kind](value))) return `\`${path}\` is not of the type ${kinds.join(" or ")}`;
  const options = own(schema, "enum");
  if (Array.isArray(options) && options.every((option) => isSame(option, value, 0, budget) === false)) return `\`${path}\` is none of ${told(options)}`;
  if (Object.hasOwn(schema, "const") && isSame(schema.const, value, 0, budget) === false) return `\`${path}\` is not ${told(schema.const)}`;
  return null;
}

/** Bounds of numbers, and of the lengths of texts and lists: a kind, a keyword, and whether a value is within. */
const BOUNDS = [
  ["number", "minimum", (value, bound) => value >= bound, "is less than"],
  ["number", "maximum", (value, bound) => value <= bound, "is more than"],
  ["number", "exclusiveMinimum", (value, bound) => value > bound, "is not more than"],
  ["number", "exclusiveMaximum", (value, bound) => value < bound, "is not less than"],
  ["string", "minLength", (value, bound) => [...value].length >= bound, "is shorter than"],
  ["string", "maxLength", (value, bound) => [...value].length <= bound, "is longer than"],
  ["array", "minItems", (value, bound) => value.length >= bound, "has fewer items than"],
  ["array", "maxItems", (value, bound) => value.length <= bound, "has more items than"],
];

function wrongBounds(schema, value, path) {
  for (const [kind, keyword, isWithin, words] of BOUNDS) {
    const bound = own(schema, keyword);
    if (typeof bound === "number" && KINDS[kind](value) && !isWithin(value, bound)) return `\`${path}\` ${words} ${bound}`;
  }
  return null;
}

function wrongMembers(schema, value, path, depth, budget) {
  if (!isObject(value)) return null;
  const required = own(schema, "required");
  for (const name of Array.isArray(required) ? required : []) {
    if (--budget.left < 0) return null;
    if (typeof name === "string" && !Object.hasOwn(value, name)) return `\`${placeOf(path, name)}\` is missing`;
  }
  const properties = own(schema, "properties");
  const known = isObject(properties) ? properties : {};
  const others = own(schema, "additionalProperties");
  // A member may also be one of a pattern, which is not looked at.
  const is_open = others !== false || isObject(own(schema, "patternProperties"));
  for (const [name, member] of Object.entries(value)) {
    if (--budget.left < 0) return null;
    const inner = placeOf(path, name);
    if (Object.hasOwn(known, name)) {
      const wrong = wrongAt(known[name], member, inner, depth + 1, budget);
      if (wrong !== null) return wrong;
    } else if (!is_open) return `\`${inner}\` is none that the tool takes`;
  }
  return null;
}

function wrongItems(schema, value, path, depth, budget) {
  const items = own(schema, "items");
  // As a list it is for the places of a list, by an earlier draft.
  if (!Array.isArray(value) || !isObject(items)) return null;
  const prefix = own(schema, "prefixItems");
  const start = Array.isArray(prefix) ? prefix.length : 0;
  for (const [n, item] of value.entries()) {
    if (n < start) continue;
    const wrong = wrongAt(items, item, `${path}[${n}]`, depth + 1, budget);
    if (wrong !== null || budget.left < 0) return wrong;
  }
  return null;
}

/** Whether two values of JSON are the same; null where they are too deep, or too large, to be compared. */
function isSame(one, other, depth, budget) {
  if (one === other) return true;
  if (typeof one !== "object" || typeof other !== "object" || one === null || other === null) return false;
  if (depth > MAX_DEPTH || --budget.left < 0) return null;
  if (Array.isArray(one) !== Array.isArray(other)) return false;
  const names = Object.keys(one);
  if (names.length !== Object.keys(other).length) return false;
  for (const name of names) {
    const is_same = Object.hasOwn(other, name) && isSame(one[name], other[name], depth + 1, budget);
    if (is_same !== true) return is_same;
  }
  return true;
}

function own(schema, keyword) {
  return Object.hasOwn(schema, keyword) ? schema[keyword] : undefined;
}

function placeOf(path, name) {
  return `${path}.${name}`.slice(0, 200);
}

function told(value) {
  const text = JSON.stringify(value) ?? "";
  return text.length > MAX_TOLD ? `${text.slice(0, MAX_TOLD).toWellFormed()}…` : text;
}

function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
