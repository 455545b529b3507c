// What a document holds for the agent: snapshots by their names, and watches that end by theirs [BROWSER-51, BROWSER-52].

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { Script } from "node:vm";

const observers = new Set();
globalThis.document = {};
globalThis.MutationObserver = class {
  constructor(changed) {
    this.changed = changed;
  }
  observe() {
    observers.add(this);
  }
  disconnect() {
    observers.delete(this);
  }
};
await import("../extension/page/kept.js");
const { keep, recall, begin, quiet, unwatch, document_id } = globalThis.raincheckKept;

test("every script that is put into pages can be read by the browser", () => {
  const pages = new URL("../extension/page/", import.meta.url);
  const scripts = readdirSync(pages).map((name) => [name, readFileSync(new URL(name, pages), "utf8")]).filter(([, text]) => !/^(?:import|export) /m.test(text));
  assert.ok(scripts.length >= 7, `${scripts.length}`);
  for (const [filename, text] of scripts) assert.doesNotThrow(() => new Script(text, { filename }), filename);
});

test("a watch within another one ends by itself", () => {
  begin([], "outer");
  begin([{}], "inner");
  assert.equal(observers.size, 2);
  unwatch({ name: "inner" });
  assert.equal(observers.size, 1);
  [...observers][0].changed();
  assert.equal(quiet({ name: "inner" }).quiet_ms, 0, "what is watched no more is not known to be quiet");
  assert.deepEqual(Object.keys(quiet({ name: "outer" })), ["document_id", "quiet_ms"]);
  for (let n = 0; n < 20; n++) begin([], `w${n}`);
  assert.equal(observers.size, 8);
});

test("the last 8 snapshots are there by their names", () => {
  const ids = Array.from({ length: 10 }, (_, n) => keep({ text: `${n}`, part: {}, is_cut: false }).snapshot_id);
  assert.deepEqual(recall({ snapshot_id: ids[0] }), { why: "forgotten" });
  assert.equal(recall({ snapshot_id: ids[9] }).text, "9");
  keep({ snapshot_id: ids[9], text: "", is_elsewhere: true });
  assert.equal(recall({ snapshot_id: ids[9] }).is_elsewhere, true);
  assert.deepEqual(recall({ snapshot_id: "s0.1" }), { why: "navigated" });
  assert.match(ids[9], new RegExp(`^${document_id}\\.`));
});
