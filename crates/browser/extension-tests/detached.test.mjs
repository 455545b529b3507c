// What was so by the debugger alone is over when it leaves a tab [BROWSER-22] [BROWSER-50].

import assert from "node:assert/strict";
import { test } from "node:test";

import { Area } from "./fakes.mjs";

const heard = () => {
  const listeners = new Set();
  return { addListener: (one) => listeners.add(one), removeListener: (one) => listeners.delete(one), tell: (...told) => [...listeners].forEach((one) => one(...told)) };
};

let answers = {};
globalThis.chrome = {
  runtime: { id: "own", onConnect: heard() },
  storage: { session: new Area() },
  debugger: { onEvent: heard(), onDetach: heard(), attach: async () => {}, detach: async () => {}, sendCommand: async (_, method) => answers[method]?.() ?? {} },
};

const emulation = await import("../extension/tabs/emulation.js");
const { isNeeded } = await import("../extension/tabs/held.js");
const meter = await import("../extension/tabs/meter.js");
const network = await import("../extension/tabs/network.js");
const { sendEventsWith } = await import("../extension/tabs/observed.js");
const requests = await import("../extension/tabs/requests.js");
const sessions = await import("../extension/tabs/sessions.js");
const { readSetting, writeSetting } = await import("../extension/tabs/settings.js");
const trace = await import("../extension/tabs/trace.js");

sendEventsWith(async () => 200);
sessions.watchDebugger();
network.watchNetwork();
requests.watchRequests();
emulation.watchEmulation();
trace.watchTrace();
meter.watchMeter(sessions.enableAgain);

const event = (tab_id, method, params = {}) => chrome.debugger.onEvent.tell({ tabId: tab_id }, method, params);
const leaves = (tab_id) => chrome.debugger.onDetach.tell({ tabId: tab_id }, "target_closed");
const turn = () => new Promise((resolve) => setImmediate(resolve));
const asks = (tab_id, requestId, loaderId, type = "Fetch") => event(tab_id, "Network.requestWillBeSent", { requestId, loaderId, request: { url: "http://a/poll", method: "GET", headers: {} }, type, timestamp: 1 });
const n_open = (tab_id) => network.trafficOf(tab_id).n_open;

test("no request is under way where nothing more is heard of it", async () => {
  await sessions.attach(1);
  asks(1, "1", "L1");
  assert.equal(n_open(1), 1);
  leaves(1);
  assert.equal(n_open(1), 0);
  assert.match((await requests.requestOf({ id: "1" }, { tab_id: 1 })).error, /how it ended was not seen/);
  // The page that asked is left: the new one's own request for itself came before.
  await sessions.attach(1);
  asks(1, "2", "L1");
  asks(1, "L2", "L2", "Document");
  event(1, "Page.frameNavigated", { frame: { id: "K", parentId: "F", loaderId: "L9" } });
  assert.equal(n_open(1), 2, "a frame in it is not it");
  event(1, "Page.frameNavigated", { frame: { id: "F", loaderId: "L2" } });
  assert.equal(n_open(1), 1);
  // The browser was asked to be silent meanwhile.
  await sessions.enableAgain(1, "Network");
  assert.equal(n_open(1), 0);
});

test("the status of a document that was seen is not that of one that was not", async () => {
  await sessions.attach(2);
  asks(2, "L1", "L1", "Document");
  event(2, "Network.responseReceived", { requestId: "L1", loaderId: "L1", frameId: "F", type: "Document", response: { url: "http://a/", status: 404, headers: {} } });
  assert.equal(network.documentStatus(2, "http://a/"), 404);
  leaves(2);
  assert.equal(network.documentStatus(2, "http://a/"), undefined);
});

test("what is emulated ends with the session, also with that of an earlier worker", async () => {
  await emulation.emulate({ network: "offline" }, { tab_id: 3 });
  await writeSetting("emulated:4", true);
  assert.deepEqual([await isNeeded(3), await isNeeded(4)], [true, true]);
  leaves(3);
  leaves(4);
  await turn();
  assert.deepEqual([await isNeeded(3), await isNeeded(4)], [false, false]);
  assert.equal(await readSetting("emulated:3", null), false);
  // What is set after that holds.
  leaves(3);
  await emulation.emulate({ network: "offline" }, { tab_id: 3 });
  await turn();
  assert.equal(await isNeeded(3), true);
});

test("a trace ends with the session, and another one may begin", async () => {
  await trace.startTrace({}, { tab_id: 5 });
  assert.equal(await isNeeded(5), true);
  leaves(5);
  assert.equal(await isNeeded(5), false);
  const stop = () => trace.stopTrace({}, { tab_id: 5, left_ms: 60_000 });
  await assert.rejects(stop(), { reason: "no_trace", guarantee: "not_executed" });
  await trace.startTrace({}, { tab_id: 5 });
  answers = { "Page.getFrameTree": () => ({ frameTree: { frame: { id: "F" } } }), "Tracing.end": () => (leaves(5), {}) };
  const told = await stop();
  assert.equal(told.left_out, "what came too late", "it is not waited for");
});

test("a trace leaves half of its time to what is made of it", async () => {
  await trace.startTrace({}, { tab_id: 6 });
  answers = { "Page.getFrameTree": () => Promise.reject(new Error("not now")) };
  await assert.rejects(trace.stopTrace({}, { tab_id: 6, left_ms: 60_000 }), /not now/);
  // It has not ended, and can be asked for again.
  answers = { "Page.getFrameTree": () => ({ frameTree: { frame: { id: "F" } } }) };
  const told = await trace.stopTrace({ raw: 1 << 20 }, { tab_id: 6, left_ms: 0 });
  assert.deepEqual([told.left_out, told.raw.events], ["what came too late", 0]);
});

test("a new session tells of what the one before it was silent about", async () => {
  await sessions.attach(7);
  for (let n = 0; n < 2100; n++) event(7, "Debugger.scriptParsed", {});
  assert.equal(meter.isSilent(7, "Debugger"), true);
  leaves(7);
  assert.equal(meter.isSilent(7, "Debugger"), false);
});
