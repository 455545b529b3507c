// Tabs: which one a command means, the list, and the tab actions.
//
// `tabs` -> `[{tab_id, url, title, active, window_id, status, discarded}]`
// `tab_new {url?, active?}` -> as `navigate`; `tab_select` -> `{tab_id, url, title, active: true}`; `tab_close` -> `{tab_id, closed: true}`
// `default_tab {tab_id | null}` -> `{default_tab}`

import { CommandError, invalid, tabGone } from "../commands/errors.js";
import { shown } from "../status/origins.js";
import { arrival, follow } from "./navigation.js";
import { record } from "./observed.js";
import { attach } from "./sessions.js";
import { readSetting, writeSetting } from "./settings.js";
import { checkUrl } from "./urls.js";

/** The tab that a command is for: its own, else the chosen default, else the one in front. */
export async function targetTab({ tab_id, params }) {
  const named = tab_id ?? params?.tab_id;
  if (named !== undefined && named !== null) return await existing(named);
  const chosen = await readSetting("default_tab", null);
  if (chosen !== null) return await existing(chosen);
  const [front] = await chrome.tabs.query({ active: true, lastFocusedWindow: true });
  const tab = front ?? (await chrome.tabs.query({ active: true }))[0];
  if (!tab) throw new CommandError("peer_not_ready", "no tab is open", { guarantee: "not_executed", reason: "tab_gone", hint: "open one with interact {action: \"tab_new\"}" });
  return tab;
}

export async function listTabs() {
  return (await chrome.tabs.query({})).map(rowOf);
}

export async function newTab({ url, active = true }, run) {
  const address = url ?? "about:blank";
  checkUrl(address, run.own_port);
  const tab = await chrome.tabs.create({ url: "about:blank", active: active === true });
  run.tab_id = tab.id;
  if (address === "about:blank") return { ...pick(await chrome.tabs.get(tab.id)), navigated: true };
  await attach(tab.id).catch(() => {});
  return await arrival(tab.id, run, await follow(tab.id, run, () => chrome.tabs.update(tab.id, { url: address })));
}

export async function closeTab(_, run) {
  await chrome.tabs.remove(run.tab_id);
  if ((await readSetting("default_tab", null)) === run.tab_id) await writeSetting("default_tab", null);
  return { tab_id: run.tab_id, closed: true };
}

export async function selectTab({ focus_window = false }, run) {
  const tab = await chrome.tabs.update(run.tab_id, { active: true });
  if (focus_window === true) await chrome.windows.update(tab.windowId, { focused: true });
  return { ...pick(tab), active: true };
}

export async function setDefaultTab({ tab_id = null }) {
  if (tab_id !== null) await existing(tab_id);
  await writeSetting("default_tab", tab_id);
  return { default_tab: tab_id };
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
    await writeSetting(movedTo(removed), added);
    record({ kind: "tab", tab_id: removed, event: "replaced", new_tab_id: added });
    tell(added, "open", await chrome.tabs.get(added));
  });
  tabs.onRemoved.addListener((tab_id) => record({ kind: "tab", tab_id, event: "closed" }));
}

async function existing(tab_id) {
  if (!Number.isInteger(tab_id)) throw invalid("`tab_id` is not a number");
  const tab = await chrome.tabs.get(tab_id).catch(() => null);
  if (tab) return tab;
  // The browser gives a tab that it puts away another number.
  const moved_to = await readSetting(movedTo(tab_id), null);
  if (moved_to === null) throw tabGone(tab_id);
  return await existing(moved_to);
}

function movedTo(tab_id) {
  return `moved_to:${tab_id}`;
}

function rowOf(tab) {
  return { ...pick(tab), active: tab.active, window_id: tab.windowId, status: tab.status ?? "unloaded", discarded: tab.discarded === true };
}

function pick(tab) {
  return { tab_id: tab.id, ...shown(tab.pendingUrl || tab.url || "", tab.title ?? "") };
}

function tell(tab_id, event, tab) {
  record({ kind: "tab", tab_id, event, url: (tab.pendingUrl || tab.url || "").slice(0, 2048), title: (tab.title ?? "").slice(0, 500), window_id: tab.windowId });
}
