// Tabs: which one a command means, the list, and the tab actions.
//
// `tabs` -> `[{tab_id, url, title, active, window_id, status, discarded, in_hand, opened_by_you, in_use?}]`
// `tab_new {url?, background? = true}` -> as `navigate`; `tab_select` -> `{tab_id, url, title, active: true}`; `tab_close` -> `{tab_id, closed: true, was_in_use?}`
// `in_use`: another caller works there, or did not long ago

import { CommandError, dropAbsent, invalid, tabGone } from "../commands/errors.js";
import { shown } from "../status/origins.js";
import { findTab, hasOpened, isInUse, noteOpened, ownTab, useTab } from "./callers.js";
import { ownGroups, takeInHand } from "./group.js";
import { hold } from "./held.js";
import { arrival, follow } from "./navigation.js";
import { record } from "./observed.js";
import { onDialog } from "./open-dialogs.js";
import { tryAttach } from "./sessions.js";
import { Remembered } from "./settings.js";
import { checkUrl } from "./urls.js";

/** The longest that the debugger is waited for before a tab is closed, and that such a tab then has to close without it. */
const ATTACH_MS = 2000;
const ASKED_MS = 3000;

/** The numbers that tabs got in the place of others. */
const moved = new Remembered("moved_to", 1024);

/**
 * The tab that a command is for: the one that it names, else the one that its caller used or opened last, and
 * `is_found` the one in front for a caller that has none yet. `may_find` says whether that is allowed; the tabs of `others` are not found.
 */
export async function targetTab(entry, may_find) {
  const named = entry.params?.tab_id ?? undefined;
  if (named !== undefined) return { tab: await existing(named) };
  const own = await ownOf(entry);
  if (own !== null) return { tab: await existing(own, ownTabGone) };
  if (!may_find) throw invalid("pass `tab_id`: you have worked in no tab yet");
  const found = finding.then(() => find(entry));
  finding = found.catch(() => {});
  return await found;
}

async function ownOf({ tab_id, caller, anew }) {
  return tab_id ?? (anew === true ? null : await ownTab(caller));
}

/** One after the other: what one caller finds is in use for the next, and the caller's own for what it gave at once. */
let finding = Promise.resolve();

async function find(entry) {
  const { caller, others } = entry;
  const own = await ownOf(entry);
  if (own !== null) return { tab: await existing(own, ownTabGone) };
  const [front] = await chrome.tabs.query({ active: true, lastFocusedWindow: true });
  const tab = front ?? (await chrome.tabs.query({ active: true }))[0];
  if (!tab) throw new CommandError("peer_not_ready", "no tab is open", { guarantee: "not_executed", reason: "tab_gone", hint: "open one with interact {action: \"tab_new\"}" });
  if (others?.includes(tab.id) || (await isInUse(caller, tab.id))) throw inUse(tab.id);
  await findTab(caller, tab.id);
  return { tab, is_found: true };
}

export async function listTabs(_, { caller }) {
  const [tabs, groups] = await Promise.all([chrome.tabs.query({}), ownGroups()]);
  const more = async ({ id }) => ({ opened_by_you: await hasOpened(caller, id), in_use: (await isInUse(caller, id)) || undefined });
  return await Promise.all(tabs.map(async (tab) => dropAbsent({ ...rowOf(tab, groups), ...(await more(tab)) })));
}

export async function newTab({ url, background = true }, run) {
  const address = url ?? "about:blank";
  checkUrl(address, run.own_port);
  const tab = await chrome.tabs.create({ url: "about:blank", active: background === false });
  run.tab_id = tab.id;
  hold(run, true);
  await Promise.all([useTab(run.caller, tab.id), noteOpened(run.caller, tab.id), takeInHand(tab.id)]);
  if (address === "about:blank") return { ...pick(await chrome.tabs.get(tab.id)), navigated: true };
  await tryAttach(tab.id);
  return await arrival(tab.id, run, await follow(tab.id, run, () => chrome.tabs.update(tab.id, { url: address })));
}

/** Closes the tab that is named, also against the wish of its page; without a name only one that was opened for this caller. */
export async function closeTab({ tab_id }, run) {
  if (tab_id === undefined && !(await hasOpened(run.caller, run.tab_id))) {
    throw invalid(`pass \`tab_id\`: tab ${run.tab_id} was not opened by you, and is closed only by its name`);
  }
  const was_in_use = (await isInUse(run.caller, run.tab_id)) || undefined;
  hold(run, true);
  const is_attached = await attachToClose(run.tab_id);
  const removed = chrome.tabs.remove(run.tab_id).then(() => true);
  removed.catch(() => {});
  // The browser waits for the answer to what the page asks: by policy it may be left open, and what the debugger does not
  // see is asked of the user.
  const is_asked = new Promise((resolve) => run.onEnd(onDialog((id, { outcome }) => id === run.tab_id && outcome === "open" && resolve(false))));
  const is_late = is_attached ? [] : [sleep(run.waitLimit(ASKED_MS), false)];
  if (!(await Promise.race([removed, is_asked, ...is_late]))) throw notClosed(run.tab_id);
  return dropAbsent({ tab_id: run.tab_id, closed: true, was_in_use });
}

/** Whether what the page of a tab asks when it is closed is seen. A tab that hangs is closed all the same. */
async function attachToClose(tab_id) {
  const tab = await chrome.tabs.get(tab_id).catch(() => null);
  // One that is put away has no page that could ask.
  if (!tab || tab.discarded) return true;
  return await Promise.race([tryAttach(tab_id), sleep(ATTACH_MS, false)]);
}

export async function selectTab({ focus_window = false }, run) {
  const tab = await chrome.tabs.update(run.tab_id, { active: true });
  if (focus_window === true) await chrome.windows.update(tab.windowId, { focused: true });
  return { ...pick(tab), active: true };
}

/** Tells of every tab that is open; later changes are told as they happen. */
export async function tellTabs() {
  for (const tab of await chrome.tabs.query({})) tell(tab.id, "open", tab);
}

export function watchTabs() {
  const { tabs } = chrome;
  tabs.onCreated.addListener((tab) => tell(tab.id, "open", tab));
  tabs.onUpdated.addListener((tab_id, change, tab) => (change.url || change.title) && tell(tab_id, "updated", tab));
  tabs.onActivated.addListener(({ tabId, windowId }) => record({ kind: "tab", tab_id: tabId, event: "activated", window_id: windowId }));
  tabs.onReplaced.addListener(async (added, removed) => {
    await moved.set(removed, added);
    record({ kind: "tab", tab_id: removed, event: "replaced", new_tab_id: added });
    tell(added, "open", await chrome.tabs.get(added));
  });
  tabs.onRemoved.addListener((tab_id) => record({ kind: "tab", tab_id, event: "closed" }));
}

function notClosed(tab_id) {
  return new CommandError("tool_failed", `tab ${tab_id} is not closed yet; its page may ask whether to leave it`, {
    guarantee: "unknown",
    reason: "not_closed",
    hint: "answer the dialog with interact {action: \"dialog\", accept: true}, or have the user answer it; observe {what: \"tabs\"} tells whether the tab is closed",
  });
}

function inUse(tab_id) {
  return new CommandError("peer_not_ready", `tab ${tab_id}, the one in front, is worked in by another client, or was within the last ten minutes`, {
    guarantee: "not_executed",
    reason: "tab_in_use",
    hint: "open one with interact {action: \"tab_new\"}, or pass the tab_id of one of observe {what: \"tabs\"}",
  });
}

function ownTabGone(tab_id) {
  return new CommandError("peer_not_ready", `tab ${tab_id}, which you worked in, is gone; no other takes its place`, {
    guarantee: "not_executed",
    reason: "own_tab_gone",
    hint: "open one with interact {action: \"tab_new\"}, or pass the tab_id of one of observe {what: \"tabs\"}",
  });
}

async function existing(tab_id, gone = tabGone) {
  if (!Number.isInteger(tab_id)) throw invalid("`tab_id` is not a number");
  const tab = await chrome.tabs.get(tab_id).catch(() => null);
  if (tab) return tab;
  // The browser gives a tab that it puts away another number.
  const moved_to = await moved.get(tab_id);
  if (moved_to === undefined) throw gone(tab_id);
  return await existing(moved_to, gone);
}

function rowOf(tab, groups) {
  return { ...pick(tab), active: tab.active, window_id: tab.windowId, status: tab.status ?? "unloaded", discarded: tab.discarded === true, in_hand: groups.has(tab.groupId) };
}

function pick(tab) {
  return { tab_id: tab.id, ...shown(tab.pendingUrl || tab.url || "", tab.title ?? "") };
}

function tell(tab_id, event, tab) {
  record({ kind: "tab", tab_id, event, url: (tab.pendingUrl || tab.url || "").slice(0, 2048), title: (tab.title ?? "").slice(0, 500), window_id: tab.windowId });
}

function sleep(ms, value) {
  return new Promise((done) => setTimeout(done, ms, value));
}
