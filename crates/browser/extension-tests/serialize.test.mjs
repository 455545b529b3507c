// What `execute_js` gives back, for every kind of value.

import assert from "node:assert/strict";
import { test } from "node:test";

import { LIMITS, serialize } from "../extension/page/serialize.js";

const plain = (value, limits = LIMITS) => {
  const told = serialize.call(value, limits);
  return "value" in told ? JSON.parse(JSON.stringify(told.value)) : "nothing";
};

const CASES = [
  ["a missing value and null are told apart", [undefined, null], ["nothing", null]],
  ["JSON stays as it is", [{ a: [1, "x", true, null, {}] }], [{ a: [1, "x", true, null, {}] }]],
  ["numbers that JSON does not know", [[Number.NaN, -0, -Infinity, 10n ** 30n]], [["NaN", "-0", "-Infinity", "1000000000000000000000000000000n"]]],
  ["what has no value", [[undefined, Symbol("q"), () => 1, function named() {}]], [["[undefined]", "Symbol(q)", "[Function: anonymous]", "[Function: named]"]]],
  ["dates", [[new Date(0), new Date(Number.NaN)]], [["1970-01-01T00:00:00.000Z", "Invalid Date"]]],
  [
    "collections",
    [[new Map([["a", { b: 1 }]]), new Set([1, 2]), new Uint8Array([7, 8])]],
    [[
      { $type: "Map", size: 1, entries: [["a", { b: 1 }]] },
      { $type: "Set", size: 2, values: [1, 2] },
      { $type: "Uint8Array", length: 2, values: [7, 8] },
    ]],
  ],
  ["instances show their own members", [new (class Foo { a = 1 })()], [{ a: 1 }]],
  ["an object of the platform shows what its getters say", [new SharedArrayBuffer(3)], [{ $type: "SharedArrayBuffer", byteLength: 3, growable: false, maxByteLength: 3 }]],
];

for (const [name, given, wanted] of CASES) {
  test(name, () => assert.deepEqual(given.map((value) => plain(value)), wanted));
}

test("a ring names the place it leads back to", () => {
  const ring = { name: "ring", list: [] };
  ring.list.push({ back: ring });
  assert.deepEqual(plain(ring), { name: "ring", list: [{ back: "[Circular $]" }] });
  const shared = { n: 1 };
  assert.deepEqual(plain([shared, shared]), [{ n: 1 }, { n: 1 }], "the same value twice is no ring");
});

test("no getter and no toJSON of the page runs", () => {
  let n_ran = 0;
  const trap = {
    get secret() { n_ran++; return 1; },
    toJSON() { n_ran++; return "x"; },
    get [Symbol.toStringTag]() { n_ran++; return "T"; },
  };
  class Sly { get [Symbol.toStringTag]() { n_ran++; return "T"; } get more() { n_ran++; return 1; } }
  assert.deepEqual(plain([trap, new Sly()]), [{ secret: "[Getter]", toJSON: "[Function: toJSON]" }, { $type: "Object" }]);
  assert.equal(n_ran, 0);
});

test("a hostile proxy spoils only its own place", () => {
  const fail = () => { throw new Error("trap"); };
  const bad = new Proxy({}, { get: fail, ownKeys: fail, getPrototypeOf: fail, getOwnPropertyDescriptor: fail });
  assert.deepEqual(plain({ before: 1, bad, after: 2 }), { before: 1, bad: "[unreadable object]", after: 2 });
});

test("an error tells its name, message and cause", () => {
  const told = plain(new TypeError("outer", { cause: new RangeError("inner") }));
  assert.equal(`${told.$type} ${told.name} ${told.message} / ${told.cause.name} ${told.cause.message}`, "Error TypeError outer / RangeError inner");
});

test("what is too deep, too long or too much is cut, and says so", () => {
  let deep = {};
  for (let n = 0; n < 50_000; n++) deep = { deep };
  let told = plain(deep);
  let depth = 0;
  for (; typeof told === "object"; told = told.deep) depth++;
  assert.deepEqual([depth, told], [LIMITS.max_depth, "[cut: too deep]"]);

  const small = { ...LIMITS, max_string: 10, max_items: 3 };
  assert.equal(plain("x".repeat(25), small), "xxxxxxxxxx[cut: 15 more characters]");
  assert.deepEqual(plain([1, 2, 3, 4, 5], small), [1, 2, 3, "[cut: 2 more items]"]);
  assert.deepEqual(plain({ a: 1, b: 2, c: 3, d: 4, e: 5 }, small), { a: 1, b: 2, c: 3, $cut: 2 });

  const wide = JSON.stringify(plain(Array.from({ length: 10_000 }, () => "y".repeat(100)), { ...LIMITS, max_chars: 20_000 }));
  assert.ok(wide.length < 30_000 && wide.includes("more items]"), `${wide.length} characters`);
});

test("the value that the other engine kept is read once", () => {
  globalThis[Symbol.for("kept")] = { a: 1n };
  assert.deepEqual({ ...serialize(LIMITS, "kept").value }, { a: "1n" });
  assert.equal(Symbol.for("kept") in globalThis, false);
});

test("it needs nothing from outside itself", () => {
  const alone = new Function("limits", `return (${serialize}).call({ a: [1n] }, limits)`);
  assert.deepEqual(JSON.parse(JSON.stringify(alone(LIMITS))), { value: { a: ["1n"] } });
});
