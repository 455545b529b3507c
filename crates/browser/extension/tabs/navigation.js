// Going to pages and waiting for them. A navigation ends in one of five ways, and none is waited for
// in vain: a page, a place in the same page, no page (a download, an answer without content), an error, or a dialog that
// stays open, behind which nothing goes on.
//
// `navigate`, `back`, `forward`, `reload` -> `{url, title, tab_id, navigated: true, status?, loaded}`;
// without a new page `{..., navigated: false, reason: "download|no_content|aborted|dialog_open", download?: {url, file_name}, status?}`;
// where a dialog stays open `dialog: {type, message, outcome: "open"}` beside it, and `navigating: true` in the place of `navigated`
// where it is of the page that is left: the new one comes once it is answered.

import { CommandError, invalid, dropAbsent, tabGone } from "../commands/errors.js";
import { documentStatus } from "./network.js";
import { record } from "./observed.js";
import { onDialog } from "./open-dialogs.js";
import { isAttached, on, send, tryAttach } from "./sessions.js";
import { blocked, checkUrl, whyHostBlocked } from "./urls.js";

const ABORT_SETTLES_MS = 250;
/** How long after a dialog is told the page may be told that it is of. */
const DIALOG_SETTLES_MS = 250;
const LOAD_MS = 2000;
const SLACK_MS = 250;

const watchers = new Set();
const failures = new Map();

export function watchNavigation() {
  const tell = (kind) => (details) => {
    if (details.frameId === 0) for (const watcher of [...watchers]) watcher(kind, details.tabId, details);
  };
  const { webNavigation, tabs } = chrome;
  webNavigation.onBeforeNavigate.addListener(tell("begun"));
  webNavigation.onCommitted.addListener(tell("committed"));
  webNavigation.onDOMContentLoaded.addListener(tell("parsed"));
  webNavigation.onCompleted.addListener(tell("loaded"));
  webNavigation.onErrorOccurred.addListener(tell("failed"));
  webNavigation.onHistoryStateUpdated.addListener(tell("moved"));
  webNavigation.onReferenceFragmentUpdated.addListener(tell("moved"));
  webNavigation.onCreatedNavigationTarget.addListener(({ sourceTabId, tabId }) => tell("opened")({ tabId: sourceTabId, frameId: 0, opened_tab_id: tabId }));
  tabs.onUpdated.addListener((tabId, change) => change.status === "complete" && tell("loaded")({ tabId, frameId: 0 }));
  tabs.onRemoved.addListener((tabId) => tell("closed")({ tabId, frameId: 0 }));
  on("Page.downloadWillBegin", (tabId, { url, suggestedFilename }) => tell("download")({ tabId, frameId: 0, url, file_name: suggestedFilename }));
  on("Page.frameRequestedNavigation", (tabId, { disposition, url }) => disposition === "currentTab" && tell("asked")({ tabId, frameId: 0, url }));
  watchers.add(recordEvent);
}

/** Why the page that a tab shows could not be opened, as `{url, error}`, if that was seen. */
export function failureIn(tab_id) {
  return failures.get(tab_id);
}

/** Calls `watcher(kind, tab_id, details)` for what happens to any tab. */
export function watchPages(watcher) {
  watchers.add(watcher);
}

/** Calls `watcher(kind, details)` for what happens to one tab. Returns how to stop that. */
export function watchTab(tab_id, watcher) {
  const filtered = (kind, id, details) => id === tab_id && watcher(kind, details);
  watchers.add(filtered);
  return () => watchers.delete(filtered);
}

/** Follows what `begin` starts in a tab, until there is a page or there will be none. */
export function follow(tab_id, run, begin = () => {}) {
  const limit_ms = run.left_ms;
  return new Promise((resolve, reject) => {
    const seen = { is_begun: false, url: "", is_committed: false, replaced: new Set() };
    const timers = new Map();
    const later = (name, ms, act) => timers.has(name) || timers.set(name, setTimeout(act, ms));
    const clear = (name) => (clearTimeout(timers.get(name)), timers.delete(name));
    const stop = watchTab(tab_id, (kind, details) => act[kind]?.(details));
    const stopDialogs = onDialog((id, { type, message, outcome }) => {
      if (id !== tab_id || outcome !== "open") return;
      const dialog = { type, message, outcome };
      // Of a new page nothing may be told yet; one that asks whether to leave it is the old one.
      const wait_ms = seen.is_committed || type === "beforeunload" ? 0 : DIALOG_SETTLES_MS;
      later("dialog", wait_ms, () => end(resolve, { kind: "dialog", url: seen.url, is_committed: seen.is_committed, is_leaving: seen.is_begun && !timers.has("aborted") && type !== "beforeunload", dialog }));
    });
    const end = (settle, value) => {
      stop();
      stopDialogs();
      forgetStop();
      for (const timer of timers.values()) clearTimeout(timer);
      settle(value);
    };
    const forgetStop = run.onStop(() => end(resolve, { kind: "stopped" }));
    const act = {
      begun: ({ url }) => {
        if (seen.is_begun && url !== seen.url) seen.replaced.add(seen.url);
        Object.assign(seen, { is_begun: true, url });
        clear("aborted");
      },
      committed: ({ url }) => (Object.assign(seen, { is_committed: true, url }), clear("aborted")),
      parsed: () => seen.is_committed && later("load", LOAD_MS, () => end(resolve, { kind: "page", url: seen.url, loaded: false })),
      loaded: () => seen.is_committed && end(resolve, { kind: "page", url: seen.url, loaded: true }),
      moved: ({ url }) => !seen.is_committed && end(resolve, { kind: "moved", url }),
      download: ({ url, file_name }) => !seen.is_committed && end(resolve, { kind: "download", url, file_name }),
      closed: () => end(reject, tabGone(tab_id, "unknown")),
      failed: ({ url, error }) => {
        if (seen.is_committed && url !== seen.url) return;
        if (seen.is_committed) end(resolve, { kind: "page", url: seen.url, loaded: false });
        // The address may be another than the one that was asked for: where redirects led to.
        else if (seen.replaced.has(url)) return;
        // A download, an answer without content and a newer navigation all begin with this.
        else if (error === "net::ERR_ABORTED") later("aborted", ABORT_SETTLES_MS, () => end(resolve, { kind: "aborted", url }));
        else end(reject, unreachable(url, error));
      },
    };
    // A busy machine needs some of it to tell what there is.
    later("limit", Math.max(0, limit_ms - Math.max(SLACK_MS, limit_ms / 20)), () => seen.is_committed && end(resolve, { kind: "page", url: seen.url, loaded: false }));
    Promise.resolve()
      .then(begin)
      .catch((error) => end(reject, error));
  });
}

/** What `follow` saw, as the result of a command. */
export async function arrival(tab_id, run, end) {
  const tab = await chrome.tabs.get(tab_id).catch(() => null);
  if (!tab) throw tabGone(tab_id, "unknown");
  const status = documentStatus(tab_id, end.url ?? "");
  const base = { url: tab.url, title: tab.title, tab_id };
  if (end.kind === "download") return { ...base, navigated: false, reason: "download", download: { url: end.url, file_name: end.file_name } };
  if (end.kind === "aborted") return dropAbsent({ ...base, navigated: false, reason: status === 204 || status === 205 ? "no_content" : "aborted", status });
  const why = whyHostBlocked(tab.url, run.own_port);
  if (why) {
    await chrome.tabs.update(tab_id, { url: "about:blank" });
    throw blocked(tab.url, `the page redirected there; ${why}`, "executed");
  }
  if (end.kind === "dialog" && !end.is_committed && end.is_leaving) return { ...base, navigating: true, dialog: end.dialog };
  if (end.kind === "dialog" && !end.is_committed) return { ...base, navigated: false, reason: "dialog_open", dialog: end.dialog };
  return dropAbsent({ ...base, navigated: true, status, loaded: end.kind === "dialog" ? false : end.loaded, dialog: end.dialog });
}

export async function navigate({ url }, run) {
  checkUrl(url, run.own_port);
  const { tab_id } = run;
  await tryAttach(tab_id);
  return await arrival(tab_id, run, await follow(tab_id, run, () => chrome.tabs.update(tab_id, { url })));
}

export async function reload({ bypass_cache = false }, run) {
  await tryAttach(run.tab_id);
  return await arrival(run.tab_id, run, await follow(run.tab_id, run, () => chrome.tabs.reload(run.tab_id, { bypassCache: bypass_cache === true })));
}

export const back = (_, run) => travel(run, -1);
export const forward = (_, run) => travel(run, +1);

/** `tabs.goBack` wants a gesture of the user; the debugger goes to the entry itself. */
async function travel(run, step) {
  const { tab_id } = run;
  if (!(await tryAttach(tab_id))) {
    const go = step < 0 ? chrome.tabs.goBack : chrome.tabs.goForward;
    const went = () => go(tab_id).catch((error) => Promise.reject(/next page in history/.test(error.message) ? noHistory(step) : error));
    return await arrival(tab_id, run, await follow(tab_id, run, went));
  }
  const { currentIndex, entries } = await send(tab_id, "Page.getNavigationHistory");
  const entry = entries[currentIndex + step];
  if (!entry) throw noHistory(step);
  checkUrl(entry.url, run.own_port);
  return await arrival(tab_id, run, await follow(tab_id, run, () => send(tab_id, "Page.navigateToHistoryEntry", { entryId: entry.id })));
}

function noHistory(step) {
  return new CommandError("tool_failed", `there is no page to go ${step < 0 ? "back" : "forward"} to`, { guarantee: "not_executed", reason: "no_history" });
}

/** A tab that the browser had put away is loaded again before a command uses it. */
export async function wakeTab(tab_id, run) {
  const tab = await chrome.tabs.get(tab_id).catch(() => null);
  if (!tab) throw tabGone(tab_id);
  if (tab.discarded) await follow(tab_id, run, () => chrome.tabs.reload(tab_id));
  else if (tab.frozen && (await tryAttach(tab_id))) await send(tab_id, "Page.setWebLifecycleState", { state: "active" }).catch(() => {});
  return tab;
}

export async function stopLoading(tab_id) {
  if (isAttached(tab_id)) await send(tab_id, "Page.stopLoading").catch(() => {});
}

function unreachable(url, error) {
  if (!url) throw invalid("`url` is missing");
  return new CommandError("tool_failed", `${url.slice(0, 300)} could not be opened: ${error}`, { guarantee: "executed", reason: error });
}

function recordEvent(kind, tab_id, { url, error, transitionType, timeStamp }) {
  if (kind === "committed" || kind === "closed") failures.delete(tab_id);
  if (kind === "failed" && error !== "net::ERR_ABORTED") failures.set(tab_id, { url, error });
  // By the browser's own clock: what the new page said came later.
  if (kind === "committed") record({ kind: "navigation", tab_id, at: Math.floor(timeStamp ?? Date.now()), url: url.slice(0, 2048), transition: transitionType, timeStamp });
  if (kind === "failed" && error !== "net::ERR_ABORTED") record({ kind: "navigation", tab_id, url: url.slice(0, 2048), error });
}
