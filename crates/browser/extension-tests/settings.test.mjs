// What is remembered until the browser ends is bounded.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Area } from "./fakes.mjs";

globalThis.chrome = { storage: { session: new Area() } };

const { Remembered } = await import("../extension/tabs/settings.js");
const { ownTab, useTab } = await import("../extension/tabs/callers.js");

test("of more than so many what was not used for the longest time goes", async () => {
  const map = new Remembered("few", 3);
  for (const name of ["a", "b", "c"]) await map.set(name, name.toUpperCase());
  assert.equal(await map.get("a"), "A");
  await map.set("d", "D");
  assert.deepEqual(await Promise.all(["a", "b", "c", "d"].map((name) => map.get(name))), ["A", undefined, "C", "D"]);
  await map.drop((name) => name === "a");
  assert.equal(await map.get("a"), undefined);
  // What another worker reads is the same.
  assert.deepEqual(chrome.storage.session.stored["setting:few"], [["c", "C"], ["d", "D"]]);
});

test("two who set at once both count", async () => {
  const map = new Remembered("both", 10);
  await Promise.all([map.set("a", 1), map.set("b", 2)]);
  assert.deepEqual(await Promise.all([map.get("a"), map.get("b")]), [1, 2]);
});

test("connections that come and go leave a bounded trace, and the owner's tab stays", async () => {
  for (let n = 0; n < 1500; n++) await useTab({ owner: "local", connection: `c${n}` }, n);
  const { stored } = chrome.storage.session;
  assert.ok(stored["setting:tab_of"].length <= 1024);
  assert.deepEqual([await ownTab({ owner: "local", connection: "c1499" }), await ownTab({ owner: "local" })], [1499, 1499]);
});
