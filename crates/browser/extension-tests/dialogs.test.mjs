// Dialogs: whose they are, how long they stay known, and commands that open and close tabs [BROWSER-22].

import assert from "node:assert/strict";
import { beforeEach, mock, test } from "node:test";

import { Area, until } from "./fakes.mjs";

const heard = () => {
  const listeners = new Set();
  return { addListener: (one) => listeners.add(one), removeListener: (one) => listeners.delete(one), tell: (...told) => [...listeners].forEach((one) => one(...told)) };
};
const events = (...names) => Object.fromEntries(names.map((name) => [name, heard()]));

/** What the browser was told, and what it does then. */
const done = [];
let attach = async () => {};
let remove = async () => {};
let update = async () => {};
let reacts = async () => [{ result: true }];

globalThis.chrome = {
  runtime: { id: "own", ...events("onConnect", "onMessage") },
  storage: { session: new Area() },
  scripting: { executeScript: async () => await reacts() },
  webNavigation: events("onBeforeNavigate", "onCommitted", "onDOMContentLoaded", "onCompleted", "onErrorOccurred", "onHistoryStateUpdated", "onReferenceFragmentUpdated", "onCreatedNavigationTarget"),
  tabGroups: { query: async () => [{ id: 1 }] },
  tabs: {
    ...events("onUpdated", "onRemoved"),
    get: async (id) => ({ id, url: "http://a/", title: "A", pinned: true, discarded: false }),
    create: async () => ({ id: 9 }),
    update: async (id) => await update(id),
    remove: async (id) => await remove(id),
  },
  debugger: {
    ...events("onEvent", "onDetach"),
    attach: async ({ tabId }) => await attach(tabId),
    detach: async ({ tabId }) => void done.push(`detach ${tabId}`),
    sendCommand: async ({ tabId }, method, params) => (method === "Page.handleJavaScriptDialog" && done.push(`${tabId} ${params.accept}`), {}),
  },
};

const { Run } = await import("../extension/commands/run.js");
const { answerDialog, freeFromDialog, settleDialog, watchDialogs } = await import("../extension/tabs/dialogs.js");
const { hold, isChanged, isNeeded } = await import("../extension/tabs/held.js");
const { navigate, watchNavigation } = await import("../extension/tabs/navigation.js");
const { sendEventsWith } = await import("../extension/tabs/observed.js");
const sessions = await import("../extension/tabs/sessions.js");
const { writeSetting } = await import("../extension/tabs/settings.js");
const { closeTab, newTab } = await import("../extension/tabs/tabs.js");

sendEventsWith(async () => 200);
sessions.watchDebugger();
watchNavigation();
watchDialogs();

const event = (tab_id, method, params = {}) => chrome.debugger.onEvent.tell({ tabId: tab_id }, method, params);
const opens = (tab_id, type = "confirm") => event(tab_id, "Page.javascriptDialogOpening", { type, message: "sure?", url: "http://a/" });
const closes = (tab_id, result = false) => event(tab_id, "Page.javascriptDialogClosed", { result });
const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Does something as a command in a tab; returns how it ended. */
async function ended(act, tab_id, more = {}) {
  const run = Object.assign(new Run("c", 60_000), { tab_id, caller: { owner: "me" }, ...more });
  return await run.outcome(() => act(run));
}

/** Lets time go by until something has come to its end. */
async function timely(act) {
  let is_over = false;
  mock.timers.enable({ apis: ["setTimeout"] });
  const work = act();
  const over = () => (is_over = true);
  work.then(over, over);
  try {
    for (let turns = 0; !is_over && turns < 1000; turns++) {
      mock.timers.tick(100);
      await turn();
    }
  } finally {
    mock.timers.reset();
  }
  return await work;
}

/** A session in a tab where one command was at work. */
async function used(tab_id) {
  await sessions.attach(tab_id);
  await ended(async (run) => hold(run, true), tab_id);
}

beforeEach(async () => {
  done.length = 0;
  attach = remove = update = async () => {};
  reacts = async () => [{ result: true }];
  await writeSetting("dialog_policy", "dismiss");
});

test("the debugger stays in a tab as long as a dialog is open there", async () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  try {
    await used(1);
    opens(1);
    await turn();
    assert.equal(await isNeeded(1), true);
    mock.timers.tick(60_000);
    await turn();
    assert.equal(sessions.isAttached(1), true);
    await assert.rejects(settleDialog(1), { reason: "dialog_open", guarantee: "not_executed" });
    assert.deepEqual(await answerDialog({ accept: true }, { tab_id: 1 }), { dialog: { type: "confirm", message: "sure?" }, accepted: true });
    closes(1, true);
    assert.equal(await isNeeded(1), false);
    mock.timers.tick(10_000);
    await turn();
    assert.deepEqual([sessions.isAttached(1), done], [false, ["1 true", "detach 1"]]);
  } finally {
    mock.timers.reset();
  }
});

test("a dialog that is open when the debugger is taken away is the user's, until the page reacts again", async () => {
  for (const type of ["confirm", "alert"]) {
    await used(2);
    opens(2, type);
    await turn();
    reacts = () => new Promise(() => {});
    chrome.debugger.onDetach.tell({ tabId: 2 }, "target_closed");
    assert.equal(await isNeeded(2), false, "nothing is to be done for it");
    for (const act of [() => settleDialog(2), () => answerDialog({ accept: true }, { tab_id: 2 })]) {
      await assert.rejects(timely(act), { reason: "dialog_open", guarantee: "not_executed", message: /only the user can answer it/ });
    }
    const run = { tab_id: 2, ended: { error: { message: "it ran" } } };
    assert.deepEqual([await freeFromDialog(run), run.ended.error.message], [false, `it ran; a dialog (${type}) is open in its tab and waits for the user`]);
    assert.deepEqual(done, []);
    reacts = async () => [{ result: true }];
    await settleDialog(2);
    await assert.rejects(answerDialog({}, { tab_id: 2 }), { reason: "no_dialog" });
  }
});

test("a lost dialog is over with its page", async () => {
  await used(3);
  opens(3);
  await turn();
  chrome.debugger.onDetach.tell({ tabId: 3 }, "target_closed");
  reacts = () => new Promise(() => {});
  chrome.webNavigation.onCommitted.tell({ tabId: 3, frameId: 0, url: "http://b/" });
  await settleDialog(3);
});

test("a dialog that opens while another is answered stays known", async () => {
  await used(4);
  opens(4);
  await turn();
  const answered = answerDialog({ accept: true }, { tab_id: 4 });
  closes(4, true);
  opens(4, "prompt");
  await answered;
  await assert.rejects(settleDialog(4), { message: /prompt/ });
  closes(4);
});

test("a tab is closed against the wish of its page, by a command that is at work there", async () => {
  remove = async (tab_id) => {
    assert.equal(isChanged(tab_id), true);
    opens(tab_id, "beforeunload");
    await until(() => done.includes(`${tab_id} true`));
    closes(tab_id, true);
  };
  assert.deepEqual((await ended((run) => closeTab({ tab_id: 5 }, run), 5)).result, { tab_id: 5, closed: true });
  assert.equal(isChanged(5), false);
});

test("a tab whose page asks somebody else does not hold up the command that closes it", async () => {
  remove = async (tab_id) => {
    opens(tab_id, "beforeunload");
    await new Promise(() => {});
  };
  await writeSetting("dialog_policy", "report");
  const left_open = await ended((run) => closeTab({ tab_id: 6 }, run), 6);
  closes(6, false);
  // The user sees what is asked where no debugger is.
  attach = async () => Promise.reject(new Error("Cannot attach to this target"));
  remove = () => new Promise(() => {});
  const unseen = await timely(() => ended((run) => closeTab({ tab_id: 7 }, run), 7));
  for (const { error } of [left_open, unseen]) assert.deepEqual([error.code, error.reason, error.guarantee], ["tool_failed", "not_closed", "unknown"]);
});

test("what the page of a new tab asks while it loads is answered", async () => {
  update = async (tab_id) => {
    assert.equal(isChanged(tab_id), true);
    opens(tab_id);
    await until(() => done.includes(`${tab_id} false`));
    closes(tab_id);
    chrome.webNavigation.onCommitted.tell({ tabId: tab_id, frameId: 0, url: "http://a/" });
    chrome.webNavigation.onCompleted.tell({ tabId: tab_id, frameId: 0, url: "http://a/" });
  };
  const opened = await ended((run) => newTab({ url: "http://a/" }, run));
  assert.deepEqual([opened.status, opened.result?.loaded, isChanged(9)], ["complete", true, false]);
});

test("under `report` a page that asks while it loads does not hold up the command that leads there", async () => {
  await writeSetting("dialog_policy", "report");
  const dialog = { type: "confirm", message: "sure?", outcome: "open" };
  const commits = (tab_id) => chrome.webNavigation.onCommitted.tell({ tabId: tab_id, frameId: 0, url: "http://a/" });
  // The browser may tell of the page after its dialog.
  for (const order of [[commits, opens], [opens, commits]]) {
    update = async (tab_id) => order.forEach((act) => act(tab_id));
    const went = await timely(() => ended((run) => navigate({ url: "http://a/" }, run), 10));
    assert.deepEqual([went.status, went.result.navigated, went.result.loaded, went.result.dialog], ["complete", true, false, dialog]);
    closes(10);
    const opened = await timely(() => ended((run) => newTab({ url: "http://a/" }, run)));
    assert.deepEqual([opened.status, opened.result.dialog], ["complete", dialog]);
    closes(9);
  }
  // One that asks whether to leave it is not left, and that is told.
  update = async (tab_id) => opens(tab_id, "beforeunload");
  const stayed = await timely(() => ended((run) => navigate({ url: "http://b/" }, run), 10));
  assert.deepEqual([stayed.status, stayed.result.navigated, stayed.result.reason, stayed.result.dialog.type], ["complete", false, "dialog_open", "beforeunload"]);
  closes(10);
});

test("a dialog of the page that is left ends no navigation, and that is told", async () => {
  await writeSetting("dialog_policy", "report");
  const begins = (tab_id) => chrome.webNavigation.onBeforeNavigate.tell({ tabId: tab_id, frameId: 0, url: "http://b/" });
  for (const order of [[begins, opens], [opens, begins]]) {
    update = async (tab_id) => order.forEach((act) => act(tab_id));
    const { status, result } = await timely(() => ended((run) => navigate({ url: "http://b/" }, run), 11));
    assert.deepEqual([status, result.navigating, result.navigated, result.reason, result.dialog.type], ["complete", true, undefined, undefined, "confirm"]);
    closes(11);
  }
  // One that has ended meanwhile, without a page, does not go on either.
  const fails = (tab_id) => chrome.webNavigation.onErrorOccurred.tell({ tabId: tab_id, frameId: 0, url: "http://b/", error: "net::ERR_ABORTED" });
  update = async (tab_id) => (begins(tab_id), opens(tab_id), setTimeout(() => fails(tab_id), 150));
  const ended204 = await timely(() => ended((run) => navigate({ url: "http://b/" }, run), 11));
  assert.deepEqual([ended204.status, ended204.result.navigating, ended204.result.navigated], ["complete", undefined, false]);
  closes(11);
  // Where none was seen to begin, none goes on.
  update = async (tab_id) => opens(tab_id);
  const { result } = await timely(() => ended((run) => navigate({ url: "http://b/" }, run), 11));
  assert.deepEqual([result.navigated, result.reason], [false, "dialog_open"]);
  closes(11);
});
