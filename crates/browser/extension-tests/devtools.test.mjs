// DevTools that a person opens have the debugger of their tab [BROWSER-22].

import assert from "node:assert/strict";
import { test } from "node:test";

import { Area, until } from "./fakes.mjs";

const heard = () => {
  const listeners = [];
  return { listeners, addListener: (listener) => listeners.push(listener), tell: (...told) => listeners.forEach((listener) => listener(...told)) };
};

const onConnect = heard();
const onDetach = heard();
const done = [];
let answer;

globalThis.chrome = {
  runtime: { id: "own", onConnect },
  storage: { session: new Area() },
  debugger: {
    onEvent: heard(),
    onDetach,
    attach: async ({ tabId }) => void done.push(`attach ${tabId}`),
    detach: async ({ tabId }) => void done.push(`detach ${tabId}`),
    sendCommand: async (_, method) => (method === "Slow.thing" ? await new Promise((_resolve, reject) => (answer = reject)) : {}),
  },
};

const { attach, isAttached, tryAttach, watchDebugger } = await import("../extension/tabs/sessions.js");
watchDebugger();

/** Opens DevTools of a tab; returns how they are closed. */
function open(tab_id, sender = "own") {
  const onDisconnect = heard();
  onConnect.tell({ name: `devtools:${tab_id}`, sender: { id: sender }, onDisconnect });
  return () => onDisconnect.tell();
}

test("the debugger lets a tab go at once when DevTools open there, and stays away until they close", async () => {
  await attach(7);
  await attach(8);
  assert.deepEqual([isAttached(7), isAttached(8)], [true, true]);
  const close = open(7);
  await until(() => done.includes("detach 7"));
  assert.deepEqual([isAttached(7), isAttached(8)], [false, true]);
  await assert.rejects(attach(7), { reason: "devtools_open", guarantee: "not_executed" });
  assert.equal(await tryAttach(7), false);
  close();
  assert.equal(await tryAttach(7), true);
});

test("what is no page of this extension takes the debugger from nobody", async () => {
  await attach(9);
  open(9, "another");
  onConnect.tell({ name: "offscreen", sender: { id: "own" }, onDisconnect: heard() });
  await new Promise((turn) => setImmediate(turn));
  assert.equal(isAttached(9), true);
});

test("a person who takes the debugger away is not asked again at once", async () => {
  await attach(10);
  onDetach.tell({ tabId: 10 }, "canceled_by_user");
  assert.equal(isAttached(10), false);
  await assert.rejects(attach(10), { reason: "debugger_refused", guarantee: "not_executed" });
});
