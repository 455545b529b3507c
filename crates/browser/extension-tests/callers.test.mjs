// Whose a tab is: the caller's that works there, also for a server that knows nothing of it [BROWSER-19, BROWSER-53, BROWSER-70].

import assert from "node:assert/strict";
import { mock, test } from "node:test";

import { Area } from "./fakes.mjs";

const event = { addListener() {} };
let front = 1;
let open = [1, 2, 3, 9];
const tab = (id) => ({ id, url: [9, 99].includes(id) ? "http://169.254.169.254/" : "https://a.example/", title: "a", windowId: 1, active: id === front });
const listeners = {};
const told = (name) => ({ addListener: (listener) => (listeners[name] = listener) });
globalThis.chrome = {
  runtime: { onConnect: event },
  storage: { session: new Area() },
  scripting: { executeScript: async () => [{ result: "text/html" }] },
  tabGroups: { query: async () => [] },
  tabs: {
    get: async (id) => (open.includes(id) ? tab(id) : Promise.reject(new Error("no tab"))),
    query: async () => [tab(front)],
    update: async (id) => tab(id),
    onCreated: event,
    onUpdated: event,
    onActivated: event,
    onReplaced: told("replaced"),
    onRemoved: event,
  },
};

const { perform, target } = await import("../extension/commands/actions.js");
const { CommandError } = await import("../extension/commands/errors.js");
const { Run } = await import("../extension/commands/run.js");
const { forgetTab, nameOf, noteTold, workersIn } = await import("../extension/tabs/callers.js");
const { placeOf } = await import("../extension/tabs/place.js");
const { listTabs, watchTabs } = await import("../extension/tabs/tabs.js");
const { sendEventsWith } = await import("../extension/tabs/observed.js");
sendEventsWith(async () => 200);

let n_callers = 0;
const newCaller = () => ({ owner: "local", connection: `c${++n_callers}` });
const of = (caller, more = {}) => ({ caller, params: { action: "click", ref: "e1" }, ...more });
const naming = (caller, tab_id) => of(caller, { params: { action: "tab_select", tab_id } });

/** Does a command, as the runner does. Returns its end. */
async function does(entry, begin = async () => {}) {
  const run = Object.assign(new Run("r", 60_000), await target(entry));
  const end = await run.outcome(async () => (await begin(run), await perform(entry, run)));
  await placeOf(entry, run);
  return end;
}

/** Works in a tab that is named. */
async function worksIn(caller, tab_id) {
  assert.equal((await does(naming(caller, tab_id))).status, "complete");
}

test("a tab that was named is the caller's once a command began there, and not before", async () => {
  const caller = newCaller();
  await worksIn(caller, 2);
  assert.equal((await target(of(caller))).tab_id, 2);
  await target(naming(caller, 9));
  await assert.rejects(target(naming(caller, 77)), { reason: "tab_gone" });
  assert.equal((await target(of(caller))).tab_id, 2, "neither command began");
  await worksIn(caller, 9);
  assert.equal((await target(of(caller))).tab_id, 9);
});

test("a command that is turned away from a tab leaves its caller the one that it had", async () => {
  const refused = (code, reason, guarantee = "not_executed") => async () => Promise.reject(new CommandError(code, "no", { reason, guarantee }));
  const clicking = (caller) => of(caller, { params: { action: "click", ref: "e1", tab_id: 9 } });
  for (const [code, begin, entry, tab_id] of [
    ["peer_not_ready", refused("peer_not_ready", "paused"), naming, 2],
    ["url_blocked", refused("url_blocked", "origin_closed"), naming, 2],
    // What its page is counts once the tab is in hand.
    ["url_blocked", undefined, clicking, 2],
    ["cancelled", async (run) => run.cancel(), naming, 9],
  ]) {
    const caller = newCaller();
    await worksIn(caller, 2);
    const end = await does(entry(caller, 9), begin);
    assert.equal(end.error.code, code);
    assert.equal((await target(of(caller))).tab_id, tab_id, end.error.message);
  }
});

test("a tab that was found is its caller's only once a command began there", async () => {
  const caller = newCaller();
  open = [1, 2, 3, 9, 98, 99];
  front = 99;
  assert.equal((await does(of(caller))).error.code, "url_blocked");
  front = 98;
  assert.deepEqual(await target(of(caller)), { tab_id: 98, lane: 98, is_found: true });
});

test("a tab that another caller works in is not found, whatever the server knows, until ten minutes after its last command", async () => {
  mock.timers.enable({ apis: ["Date"], now: 1_000_000_000 });
  try {
    const [one, two] = [newCaller(), newCaller()];
    front = 3;
    await worksIn(one, 3);
    const refused = { reason: "tab_in_use", guarantee: "not_executed" };
    await assert.rejects(target(of(two)), refused);
    mock.timers.tick(9 * 60_000);
    // What is about no tab is a command, too.
    await target(of(one, { params: { what: "tabs" } }));
    mock.timers.tick(9 * 60_000);
    await assert.rejects(target(of(two)), refused);
    mock.timers.tick(3 * 60_000);
    assert.deepEqual(await target(of(two)), { tab_id: 3, lane: 3, is_found: true });
    // The first comes back: the tab is its own as well.
    assert.deepEqual(await target(of(one)), { tab_id: 3, lane: 3, is_found: undefined });
  } finally {
    mock.timers.reset();
  }
});

test("the client of a server's own process is gone once another process serves, and its tab is found; others are not", async () => {
  const by = (connection, server, more = {}) => of({ owner: "local", connection }, { server, ...more });
  const selects = (tab_id) => ({ params: { action: "tab_select", tab_id } });
  const works = async (entry) => {
    const run = Object.assign(new Run("r", 60_000), await target(entry));
    await run.outcome(() => perform(entry, run));
  };
  [front, open] = [70, [70, 71, 72]];
  await works(by("first", "first", selects(70)));
  await works(by("attached", "first", selects(71)));
  // Another window of the same server takes neither.
  await assert.rejects(target(by("new", "first")), { reason: "tab_in_use" });
  assert.equal((await target(by("new", "new"))).tab_id, 70, "the first went with its server");
  front = 71;
  await assert.rejects(target(by("third", "new")), { reason: "tab_in_use" }, "that one lives on");
  front = 70;
  // A process that served before and is served now.
  await works(by("first", "new", selects(72)));
  front = 72;
  await assert.rejects(target(by("third", "new")), { reason: "tab_in_use" });
});

test("of those who worked in a tab the ones that work there now come last, whoever was answered about it since", async () => {
  [front, open] = [90, [90]];
  const caller = newCaller();
  await worksIn(caller, 90);
  await noteTold(caller, 90, "https://a.example");
  for (let n = 0; n < 16; n++) await noteTold(newCaller(), 90, "https://a.example");
  const names = await workersIn(90);
  assert.deepEqual([names.length, names.slice(-16).includes(nameOf(caller))], [18, true]);
});

test("a command of which the next server does not know who gave it makes nobody another client", async () => {
  [front, open] = [80, [80, 81]];
  const caller = newCaller();
  await worksIn(caller, 80);
  // Its own, delivered again after a take-over: the owner alone is known.
  await worksIn({ owner: "local" }, 80);
  const rows = (await listTabs({}, { caller })).map((row) => [row.tab_id, row.in_use]);
  assert.deepEqual(rows, [[80, undefined]]);
  front = 81;
  await worksIn({ owner: "local" }, 81);
  assert.equal((await target(of(newCaller()))).tab_id, 81);
});

test("a tab that a caller has left for another one of its own is found for nobody else, and is told to be in use", async () => {
  const [one, two] = [newCaller(), newCaller()];
  front = 60;
  open = [1, 60, 61];
  await worksIn(one, 60);
  await noteTold(one, 60, "https://a.example");
  await worksIn(one, 61);
  await assert.rejects(target(of(two)), { reason: "tab_in_use" });
  const rows = async (caller) => (await listTabs({}, { caller })).map((row) => [row.tab_id, row.in_use]);
  assert.deepEqual([await rows(two), await rows(one)], [[[60, true]], [[60, undefined]]]);
  // Of one that is closed nothing is left.
  await forgetTab(60);
  assert.equal((await target(of(two))).tab_id, 60);
});

test("of callers that look for a tab at the same time one finds it, and all that this one gave at once is for it", async () => {
  const [one, two] = [newCaller(), newCaller()];
  front = 1;
  const wanted = [target(of(one)), target(of(one)), target(of(two)), target(of(one))];
  const [first, second, other, last] = await Promise.allSettled(wanted);
  assert.deepEqual([first, second, last].map((found) => found.value.tab_id), [1, 1, 1]);
  assert.equal(other.reason?.reason, "tab_in_use");
});

test("a tab that got another number is found by its old one, and of such numbers only so many are kept", async () => {
  watchTabs();
  const caller = newCaller();
  open = [1, 2, 3, 9, 50];
  for (let n = 0; n < 1200; n++) await listeners.replaced(50, 1000 + n);
  assert.equal((await target(naming(caller, 2100))).tab_id, 50);
  await assert.rejects(target(naming(caller, 1000)), { reason: "tab_gone" });
  const { stored } = chrome.storage.session;
  assert.ok(Object.keys(stored).length < 20, Object.keys(stored).length);
});
