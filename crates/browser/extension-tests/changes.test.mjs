// What an act changed is told beside its result, and never in its place [BROWSER-52].

import assert from "node:assert/strict";
import { test } from "node:test";

import { CommandError } from "../extension/commands/errors.js";
import { withChanges } from "../extension/page/changes.js";
import { snapshot } from "../extension/page/read.js";
import { setOrigins } from "../extension/status/origins.js";

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

// ---- frames ----------------------------------------------------------------------------------

const PAY = "https://pay.example";
const HOLE = { line: 1, path: [0], url: `${PAY}/`, name: "", depth: 0 };
const shop = page('- heading "Shop" [level=1]\n- iframe\n- button "Help" [ref=e4]', { holes: [HOLE] });
const helped = page('- heading "Shop" [level=1]\n- iframe\n- button "Help" [expanded] [ref=e4]', { holes: [HOLE] });
const pay = (text, more) => page(text, { url: `${PAY}/`, origin: PAY, document_id: "s5", ...more });

/** The same with a frame of another origin, whose agent answers `snapshot` in turn with what is given. */
function tabWithFrame(snapshots, inner) {
  const asked = tabOf(...snapshots);
  const { executeScript } = chrome.scripting;
  chrome.webNavigation.getAllFrames = async () => [{ frameId: 0, parentFrameId: -1, url: "https://a.example/" }, { frameId: 7, parentFrameId: 0, url: `${PAY}/` }];
  chrome.scripting.executeScript = async (given) => {
    if (!given.args) return [{ result: { index: 0, is_reached: false, origin: PAY } }];
    if (given.args[0] === "snapshot" && given.target.frameIds[0] === 7) return [{ result: inner.shift() }];
    return await executeScript(given);
  };
  return asked;
}

test("a frame that did not answer, or was cut, lost nothing by that, and that it is not known is said", async () => {
  const whole = pay('- text: Total 30\n- button "Pay" [ref=f7e2]');
  const cut = pay("- text: Total 30", { is_cut: true });
  const silent = { error: "it does not react" };
  for (const [one, other] of [[whole, silent], [silent, whole], [whole, cut], [cut, whole]]) {
    tabWithFrame([shop, helped], [one, other]);
    const told = (await withChanges(changes, run(), click)).changes;
    assert.deepEqual([told.added, told.removed, told.changed, told.text], [0, 0, 1, '~ - button "Help" [expanded] [ref=e4]'], JSON.stringify(told));
    assert.deepEqual(told.left_out, [`what changed in the frame of ${PAY}: it was not read whole both times`]);
  }
});

test("what changed in a frame that was read both times is told, and so is one that went", async () => {
  tabWithFrame([shop, shop], [pay("- text: Total 30"), pay("- text: Total 40")]);
  const told = (await withChanges(changes, run(), click)).changes;
  assert.deepEqual([told.added, told.removed, told.left_out], [1, 1, undefined]);
  tabWithFrame([shop, page('- heading "Shop" [level=1]\n- button "Help" [ref=e4]')], [pay("- text: Total 30")]);
  assert.equal((await withChanges(changes, run(), click)).changes.removed, 2);
});

test("a snapshot tells no lines of a frame whose origin was closed meanwhile", async () => {
  const kept = new Map();
  tabWithFrame([shop, shop, helped], [pay("- text: Total 30"), pay("- text: Total 30"), pay("- text: Total 30")]);
  const { executeScript } = chrome.scripting;
  chrome.scripting.executeScript = async (given) => {
    const [method, args] = given.args ?? [];
    if (method === "keep") return [{ result: { value: (kept.set("s1.1", args), { snapshot_id: "s1.1" }) } }];
    if (method === "recall") return [{ result: { value: kept.get(args.snapshot_id) } }];
    return await executeScript(given);
  };
  const close = (...closed) => setOrigins({ mode: "all_but", closed, open: [] }, { local: { set: async () => {} } });
  assert.equal((await snapshot({}, run())).snapshot_id, "s1.1");
  assert.doesNotMatch(JSON.stringify([...kept.values()]), /Total/, "what a frame holds is not put into the page around it");
  assert.equal((await snapshot({ since: "s1.1" }, run())).whole_because, undefined);
  await close("pay.example");
  const told = await snapshot({ since: "s1.1" }, run());
  await close();
  assert.equal(told.whole_because, "forgotten");
  assert.doesNotMatch(told.text, /Total/);
});

test("an act that is looked at within another one has a watch of its own", async () => {
  const asked = [];
  tabOf(...Array.from({ length: 4 }, () => page("- main")));
  const { executeScript } = chrome.scripting;
  chrome.scripting.executeScript = async (given) => (asked.push(given.args), await executeScript(given));
  await withChanges(changes, run(), () => withChanges(changes, run(), click));
  const names = (method, member) => asked.filter(([each]) => each === method).map(([, args]) => args[member]).filter(Boolean);
  const [outer, inner] = names("snapshot", "watches");
  assert.notEqual(outer, inner);
  assert.deepEqual(names("unwatch", "name"), [inner, outer]);
  assert.deepEqual(new Set(names("quiet", "name")), new Set([inner, outer]));
});

test("a tab that takes no debugger in time is looked at without", async () => {
  tabOf(page("- main"), page("- main\n- text: more"));
  chrome.debugger.attach = never;
  assert.equal((await withChanges(changes, run({ left_ms: 400 }), click)).changes.text, "+ - text: more");
});
