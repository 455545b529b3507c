// What an act changed is told beside its result, and never in its place [BROWSER-52].

import assert from "node:assert/strict";
import { test } from "node:test";

import { CommandError } from "../extension/commands/errors.js";
import { withChanges } from "../extension/page/changes.js";

const page = (text, more = {}) => ({ value: { url: "https://a.example/", title: "a", origin: "https://a.example", text, holes: [], left_out: [], is_cut: false, document_id: "s1", last_ref: 9, ...more } });
const QUIET = { value: { document_id: "s1", quiet_ms: 1000 } };

/** What the agent says of how quiet the page is, one after the other; the last again and again. */
let quiet = [QUIET];

/** A tab whose agent answers `snapshot` in turn with what is given: a value, or a function that makes a promise. */
function tabOf(...snapshots) {
  const asked = [];
  const event = { addListener() {}, removeListener() {} };
  globalThis.chrome = {
    storage: { session: { get: async () => ({}), set: async () => {} } },
    debugger: { attach: () => Promise.reject(new Error("not here")) },
    tabs: { get: async () => ({ id: 7, url: "https://a.example/" }) },
    webNavigation: { onCommitted: event, getAllFrames: async () => [], getFrame: async () => null },
    scripting: {
      async executeScript({ args: [method] }) {
        asked.push(method);
        if (method === "quiet") return [{ result: quiet.length > 1 ? quiet.shift() : quiet[0] }];
        if (method !== "snapshot") return [{ result: { value: {} } }];
        const next = snapshots.shift();
        return [{ result: typeof next === "function" ? await next() : next }];
      },
    },
  };
  return asked;
}

const run = (more = {}) => ({ tab_id: 7, ended: null, left_ms: 2000, waitLimit: (ms) => Math.min(ms, 1500), ...more });
const click = async () => ({ target: "button" });
const changes = { changes: true };
const never = () => new Promise(() => {});
const fails = async () => {
  throw new Error("The page is gone for good");
};

test("without being asked to, nothing is looked at", async () => {
  const asked = tabOf();
  assert.deepEqual(await withChanges({}, run(), click), { target: "button" });
  assert.deepEqual(asked, []);
});

test("what changed stands beside the result", async () => {
  tabOf(page("- main\n  - text: one"), page("- main\n  - text: two"));
  const told = await withChanges(changes, run(), click);
  assert.deepEqual(told, { target: "button", changes: { added: 1, removed: 1, changed: 0, text: "@ main\n- - text: one\n+ - text: two" } });
});

test("an act is done whatever becomes of looking at the page", async () => {
  for (const snapshots of [[fails], [never], [page("- main"), fails], [page("- main"), never], [{ error: "odd" }], [page("- main"), { missing: "nothing there" }]]) {
    tabOf(...snapshots);
    let n_done = 0;
    const told = await withChanges(changes, run({ left_ms: 400 }), async () => (n_done++, await click()));
    assert.equal(told.target, "button");
    assert.match(told.changes.not_known, /^the page could not be read (before|after): /);
    assert.equal(n_done, 1);
  }
});

test("an act that failed fails as it would without", async () => {
  tabOf(page("- main"), page("- main"));
  const failure = new CommandError("tool_failed", "covered", { guarantee: "not_executed", reason: "element_not_ready" });
  await assert.rejects(withChanges(changes, run(), () => Promise.reject(failure)), (error) => error === failure);
});

test("of a page that came instead the first lines are told, and the rest is counted", async () => {
  const rows = Array.from({ length: 100 }, (_, n) => `- row ${n}`).join("\n");
  tabOf(page("- main"), page(rows, { document_id: "s2" }));
  const told = (await withChanges(changes, run(), click)).changes;
  assert.deepEqual([told.new_page, told.text.split("\n").length, told.left_out], [true, 60, ["40 more lines; take a snapshot"]]);
});

test("it is waited for until the page is quiet, and no longer than it takes", async () => {
  const asked = tabOf(page("- main"), page("- main\n- text: all"));
  quiet = [...[0, 30, 5, 60].map((quiet_ms) => ({ value: { document_id: "s1", quiet_ms } })), QUIET];
  const told = await withChanges(changes, run({ left_ms: 60_000 }), click);
  assert.equal(told.changes.text, "+ - text: all");
  assert.deepEqual(asked, ["snapshot", "quiet", "quiet", "quiet", "quiet", "quiet", "snapshot", "unwatch"]);
  // A page that never is quiet is told as it is after a while.
  tabOf(page("- main"), page("- main\n- text: more"));
  quiet = [{ value: { document_id: "s1", quiet_ms: 0 } }];
  assert.equal((await withChanges(changes, run({ left_ms: 400 }), click)).changes.text, "+ - text: more");
  quiet = [QUIET];
});

test("what was typed where secrets are typed is masked", async () => {
  tabOf(page("- main"), page("- main\n- text: it is hunter22"));
  const told = await withChanges(changes, run({ secrets: ["hunter22", ""] }), click);
  assert.equal(told.changes.text, "+ - text: it is ••••");
});
