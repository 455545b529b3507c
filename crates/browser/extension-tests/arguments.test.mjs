// Arguments of a page's tool against the schema that the page declared [BROWSER-57].

import assert from "node:assert/strict";
import { test } from "node:test";

import { wrongIn } from "../extension/page/arguments.js";

const schema = {
  type: "object",
  required: ["id"],
  additionalProperties: false,
  properties: {
    id: { type: "string", minLength: 1, maxLength: 8 },
    n: { type: "integer", minimum: 1, maximum: 9 },
    size: { enum: ["s", "m", { w: 1 }] },
    tags: { type: "array", maxItems: 2, items: { type: "string" } },
    at: { type: ["object", "null"], required: ["x"], properties: { x: { type: "number" } } },
    fixed: { const: true },
  },
};

test("what is wrong is named by its place", () => {
  for (const [input, words] of [
    [{}, "`arguments.id` is missing"],
    [{ id: 7 }, "`arguments.id` is not of the type string"],
    [{ id: "" }, "`arguments.id` is shorter than 1"],
    [{ id: "far too long" }, "`arguments.id` is longer than 8"],
    [{ id: "a", n: 1.5 }, "`arguments.n` is not of the type integer"],
    [{ id: "a", n: 0 }, "`arguments.n` is less than 1"],
    [{ id: "a", size: "l" }, '`arguments.size` is none of ["s","m",{"w":1}]'],
    [{ id: "a", tags: ["a", 2] }, "`arguments.tags[1]` is not of the type string"],
    [{ id: "a", tags: ["a", "b", "c"] }, "`arguments.tags` has more items than 2"],
    [{ id: "a", at: {} }, "`arguments.at.x` is missing"],
    [{ id: "a", at: [] }, "`arguments.at` is not of the type object or null"],
    [{ id: "a", fixed: false }, "`arguments.fixed` is not true"],
    [{ id: "a", other: 1 }, "`arguments.other` is none that the tool takes"],
    [{ id: "a", constructor: 1 }, "`arguments.constructor` is none that the tool takes"],
  ]) {
    assert.equal(wrongIn(schema, input), words);
  }
  assert.equal(wrongIn(schema, { id: "a", n: 9, size: { w: 1 }, tags: ["b"], at: null, fixed: true }), null);
});

test("nothing that a schema allows is refused, by whichever draft it is meant", () => {
  const nested = (n) => (n === 0 ? 1 : [nested(n - 1)]);
  for (const [schema, value] of [
    [{ prefixItems: [{ type: "string" }], items: { type: "number" } }, ["x", 1]],
    [{ const: nested(20) }, nested(20)],
    [{ enum: ["a", nested(20)] }, nested(20)],
    [{ $ref: "#/$defs/a", type: "string", const: "b", minimum: 3 }, 1],
    [{ type: ["string", { type: "number" }] }, 1],
    [{ enum: [1] }, 1.0],
  ]) {
    assert.equal(wrongIn({ properties: { a: schema } }, { a: value }), null, JSON.stringify(schema));
  }
  assert.equal(wrongIn({ prefixItems: [{}], items: { type: "number" } }, ["x", "y"]), "`arguments[1]` is not of the type number");
  assert.equal(wrongIn({ const: [[1]] }, [[2]]), "`arguments` is not [[1]]");
});

test("what is wrong is told in few words, however long the schema is", () => {
  const long = "x".repeat(10_000);
  for (const [schema, value] of [
    [{ type: Array(30_000).fill("null") }, 1],
    [{ enum: Array(30_000).fill("a") }, 1],
    [{ const: long }, 1],
    [{ required: [long] }, {}],
    [{ additionalProperties: false }, { [long]: 1 }],
    [{ properties: { [long]: { type: "null" } } }, { [long]: 1 }],
  ]) {
    const told = wrongIn(schema, value);
    assert.ok(told?.length < 400, `${told?.length} characters`);
  }
});

test("a schema that is none, that is not understood or that is hostile asks for nothing, and takes no time", () => {
  const deep = {};
  let [at, value] = [deep, {}];
  for (let n = 0; n < 5000; n++) at = (at.properties = { a: {} }).a;
  const given = value;
  for (let n = 0; n < 5000; n++) value = value.a = {};
  const begun = performance.now();
  const cases = [
    [undefined, { a: 1 }],
    [{ type: "spaceship" }, {}],
    [{ type: 7, required: "id", properties: [], items: 1, enum: {}, minimum: "x" }, { a: 1 }],
    [{ $ref: "https://evil.example/schema.json", allOf: [{ type: "string" }] }, {}],
    [{ properties: { a: { type: "string", pattern: "^(a+)+$" } } }, { a: `${"a".repeat(50)}!` }],
    [{ type: "object", additionalProperties: false, patternProperties: { "^(a+)+$": {} } }, { ["a".repeat(50)]: 1 }],
    [deep, given],
    [{ enum: Array(100_000).fill({ a: [{}] }) }, { a: [1] }],
    [{ required: Array.from({ length: 100_000 }, (_, n) => (n < 99_999 ? "a" : "b")) }, { a: 1 }],
    [{ items: { items: { items: { type: "number" } } } }, Array(200).fill(Array(200).fill([1, 2, 3]))],
    [JSON.parse('{"__proto__": {"type": "string"}, "properties": {"__proto__": {"type": "string"}}}'), {}],
  ];
  for (const [n, [schema, input]] of cases.entries()) assert.equal(wrongIn(schema, input), null, `case ${n}`);
  assert.ok(performance.now() - begun < 2000);
});
