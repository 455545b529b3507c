// Debugger sessions, one per tab that a command has used. A session sees the console, the network
// and dialogs, gives real input, and can stop a script that never ends.

import { CommandError, tabGone } from "../commands/errors.js";

/** What the names of scripts begin with that commands run. */
export const SCRIPT_NAME = "raincheck-";

const PROTOCOL = "1.3";
const ATTACH_LIMIT_MS = 2000;
const RESPONSIVE_MS = 150;
const PAUSE_LIMIT_MS = 2000;
const REFUSED_MS = 10 * 60_000;
const RELEASE_MS = 10_000;
const DEBUGGER = { maxScriptsCacheSize: 0 };
const ENABLES = [
  ["Page.enable", {}],
  ["Runtime.enable", {}],
  ["Debugger.enable", DEBUGGER],
  ["Network.enable", { maxTotalBufferSize: 8 << 20, maxResourceBufferSize: 1 << 20 }],
  ["Log.enable", {}],
  // A tab behind another one paints, runs its timers and takes input as the one in front does.
  ["Emulation.setFocusEmulationEnabled", { enabled: true }],
];

const sessions = new Map();
/** The DevTools that a person has open, by their tab. */
const inspected = new Map();
const listeners = new Map();

/**
 * Calls `listener(tab_id, params)` for each event with this name, also for those of this file: "detached" when the debugger
 * has left a tab, "heard again" `{domain}` after the browser was silent about one. Returns how to stop that.
 */
export function on(method, listener) {
  const known = listeners.get(method) ?? new Set();
  listeners.set(method, known.add(listener));
  return () => known.delete(listener);
}

export function isAttached(tab_id) {
  return sessions.get(tab_id)?.is_ready === true;
}

/** Attaches to a tab, once; fails with the reason where that cannot be. */
export async function attach(tab_id) {
  const session = sessionOf(tab_id);
  session.used_at = Date.now();
  if (inspected.has(tab_id)) throw devToolsOpen();
  if (session.refused_at && Date.now() - session.refused_at < REFUSED_MS) {
    throw new CommandError("tool_failed", "the debugger was closed by the user", { guarantee: "not_executed", reason: "debugger_refused" });
  }
  session.ready ??= begin(session).catch((error) => {
    session.ready = null;
    throw error;
  });
  await session.ready;
}

/** Whether the tab could be attached; for what also works without. */
export async function tryAttach(tab_id) {
  try {
    await attach(tab_id);
    return true;
  } catch {
    return false;
  }
}

/** Has the browser tell of a domain again, after it was asked to be silent about it. */
export async function enableAgain(tab_id, domain) {
  const [, params] = ENABLES.find(([method]) => method === `${domain}.enable`);
  if (!isAttached(tab_id)) return;
  tell(tab_id, "heard again", { domain });
  await send(tab_id, `${domain}.enable`, params);
}

export function send(tab_id, method, params = {}) {
  return chrome.debugger.sendCommand({ tabId: tab_id }, method, params);
}

/**
 * Stops the script that keeps a tab's thread. `isOurs(frames)` tells from the call stack, also as a
 * promise, whether what is on the thread is what should end; anything else is left to go on. A thread that is free has
 * nothing to stop: a pause would stay armed there and stall the next command. Returns whether the
 * thread is free in the end.
 */
export async function stopScript(tab_id, isOurs) {
  if (await isResponsive(tab_id)) return true;
  const session = sessionOf(tab_id);
  const paused = new Promise((resolve) => (session.on_pause = resolve));
  try {
    send(tab_id, "Debugger.pause").catch(() => {});
    const event = await Promise.race([paused, sleep(PAUSE_LIMIT_MS, null)]);
    if (event) await send(tab_id, "Debugger.resume", { terminateOnResume: await isOurs(event.callFrames) });
    return await within(PAUSE_LIMIT_MS, rearm(tab_id));
  } finally {
    session.on_pause = null;
  }
}

async function isResponsive(tab_id) {
  const answer = send(tab_id, "Runtime.evaluate", { expression: "0" }).then(() => true, () => true);
  return await Promise.race([answer, sleep(RESPONSIVE_MS, false)]);
}

/** Takes back a pause that met no script. */
async function rearm(tab_id) {
  await send(tab_id, "Debugger.disable");
  await send(tab_id, "Debugger.enable", DEBUGGER);
}

/** Lets a tab that is not in front behave as if it were, so that it paints and takes input. */
export async function actAsFocused(tab_id) {
  await send(tab_id, "Emulation.setFocusEmulationEnabled", { enabled: true });
}

/** Whether pauses in a tab are this session's business: a page's own `debugger;` stops there only while they are. */
export function pausesIn(tab_id, are_ours) {
  if (isAttached(tab_id)) send(tab_id, "Debugger.setSkipAllPauses", { skip: !are_ours }).catch(() => {});
}

/** Lets a tab go a moment after its last command, unless it is needed then. */
export function releaseSoon(tab_id, isNeeded) {
  const session = sessions.get(tab_id);
  if (!session) return;
  const begun = (session.used_at = Date.now());
  setTimeout(async () => {
    if (!(await isNeeded(tab_id)) && session.used_at === begun && sessions.get(tab_id) === session) detach(tab_id);
  }, RELEASE_MS);
}

/** Gives up the sessions that an earlier service worker left behind, and those that are needed no more. */
export async function detachLeft(isNeeded) {
  for (const { attached, tabId } of await chrome.debugger.getTargets()) {
    if (!attached || tabId === undefined || (await isNeeded(tabId))) continue;
    const session = sessions.get(tabId);
    if (session === undefined || Date.now() - session.used_at >= RELEASE_MS) detach(tabId);
  }
}

/** Lets a tab go; the browser tells no one of that. Who attaches meanwhile waits for it. */
function detach(tab_id) {
  const session = sessionOf(tab_id);
  forgetSession(tab_id, session);
  // One that is another program's stays where it is.
  session.leaving = chrome.debugger.detach({ tabId: tab_id }).catch(() => {});
}

/** What was so by the debugger alone is over; also where the session was that of an earlier service worker. */
function forgetSession(tab_id, session) {
  if (session) Object.assign(session, { is_ready: false, ready: null });
  tell(tab_id, "detached", {});
}

export function forgetTab(tab_id) {
  sessions.delete(tab_id);
}

export function watchDebugger() {
  watchDevTools();
  chrome.debugger.onEvent.addListener(({ tabId: tab_id }, method, params) => {
    if (tab_id === undefined) return;
    if (method === "Debugger.paused") onPaused(tab_id, params);
    tell(tab_id, method, params ?? {});
  });
  chrome.debugger.onDetach.addListener(({ tabId: tab_id }, reason) => {
    if (tab_id === undefined) return;
    forgetSession(tab_id, sessions.get(tab_id));
    if (reason === "canceled_by_user") sessionOf(tab_id).refused_at = Date.now();
  });
}

function tell(tab_id, method, params) {
  for (const listener of listeners.get(method) ?? []) listener(tab_id, params);
}

/** A page's own `debugger;` does not hold it up. */
function onPaused(tab_id, params) {
  const asked = sessions.get(tab_id)?.on_pause;
  if (asked) asked(params);
  else send(tab_id, "Debugger.resume").catch(() => {});
}

async function begin(session) {
  const { tab_id } = session;
  await session.leaving;
  if (!(await within(ATTACH_LIMIT_MS, enable(tab_id)))) {
    // What keeps the thread may be a script of the service worker before this one.
    await stopScript(tab_id, (frames) => isLeftOver(tab_id, frames));
    if (!(await within(ATTACH_LIMIT_MS, enable(tab_id)))) throw unresponsive(tab_id);
  }
  if (inspected.has(tab_id)) {
    detach(tab_id);
    throw devToolsOpen();
  }
  session.is_ready = true;
}

function devToolsOpen() {
  return new CommandError("tool_failed", "DevTools are open in this tab, and its debugger is theirs", {
    guarantee: "not_executed",
    reason: "devtools_open",
    hint: "close them, or work in another tab",
  });
}

/** Says when DevTools of a tab are opened: both at once would resume each other's pauses. */
function watchDevTools() {
  chrome.runtime.onConnect.addListener((port) => {
    const [kind, number] = port.name.split(":");
    if (kind !== "devtools" || port.sender?.id !== chrome.runtime.id) return;
    const tab_id = Number(number);
    const ports = inspected.get(tab_id) ?? new Set();
    inspected.set(tab_id, ports.add(port));
    port.onDisconnect.addListener(() => {
      ports.delete(port);
      if (ports.size === 0) inspected.delete(tab_id);
    });
    if (sessions.has(tab_id)) detach(tab_id);
  });
}

/** True once `work` is done, false when that takes too long; its failure is passed on. */
async function within(limit_ms, work) {
  work.catch(() => {});
  return await Promise.race([work.then(() => true), sleep(limit_ms, false)]);
}

async function isLeftOver(tab_id, frames) {
  const outermost = frames.at(-1);
  const { scriptSource } = await send(tab_id, "Debugger.getScriptSource", { scriptId: outermost.location.scriptId });
  return scriptSource.includes(`//# sourceURL=${SCRIPT_NAME}`);
}

function unresponsive(tab_id) {
  return new CommandError("tool_failed", `tab ${tab_id} does not react; a script, a dialog or the print preview holds it up`, {
    guarantee: "not_executed",
    reason: "tab_unresponsive",
    hint: "navigate the tab elsewhere or close it",
  });
}

async function enable(tab_id) {
  try {
    await chrome.debugger.attach({ tabId: tab_id }, PROTOCOL);
  } catch (error) {
    if (/No tab with/.test(error.message)) throw tabGone(tab_id);
    // The session of the service worker before this one is still there, and is ours.
    if (!/already attached/.test(error.message)) throw notAttachable(error.message);
  }
  try {
    await Promise.all(ENABLES.map(([method, params]) => send(tab_id, method, params)));
  } catch (error) {
    throw /not attached/.test(error.message) ? notAttachable("another program debugs this tab") : error;
  }
}

function notAttachable(message) {
  return new CommandError("tool_failed", message, { guarantee: "not_executed", reason: "not_attachable" });
}

function sessionOf(tab_id) {
  let session = sessions.get(tab_id);
  if (!session) sessions.set(tab_id, (session = { tab_id, ready: null, is_ready: false, used_at: Date.now(), refused_at: 0, on_pause: null, leaving: null }));
  return session;
}

function sleep(ms, value) {
  return new Promise((done) => setTimeout(done, ms, value));
}
