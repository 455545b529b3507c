// Where a command was done, for its answer: `{origin, title, found?, opened?: {tab_id, origin}}`.

import { dropAbsent } from "../commands/errors.js";
import { whyClosed } from "../status/origins.js";
import { leaveTab, noteTold } from "./callers.js";
import { watchTab } from "./navigation.js";
import { on } from "./sessions.js";
import { whyHostBlocked } from "./urls.js";

const OPENS_MS = 1000;
const TITLE_CHARS = 300;

/** The origin of an address, or undefined where there is none to speak of. */
export function originOf(address) {
  return URL.canParse(address) ? new URL(address).origin : undefined;
}

/** Notes the tabs that the tab of a run opens; they are told, and never followed. */
export function watchOpened(run) {
  const { tab_id } = run;
  run.opening = { n_asked: 0, tabs: [] };
  run.onEnd(on("Page.windowOpen", (id) => id === tab_id && run.opening.n_asked++));
  run.onEnd(watchTab(tab_id, (kind, { opened_tab_id }) => kind === "opened" && run.opening.tabs.push(opened_tab_id)));
}

/** Waits for a tab that the page has asked for: the browser tells of it a moment later. */
export async function settleOpened(run) {
  const limit = performance.now() + OPENS_MS;
  while (run.opening.n_asked > run.opening.tabs.length && performance.now() < limit) await new Promise((done) => setTimeout(done, 20));
}

export async function placeOf({ caller }, run) {
  if (isTurnedAway(run.ended)) await leaveTab(caller, run);
  // Of the look that said whether its result may be told, where there was one.
  const [tab, opened] = await Promise.all([run.shown ?? find(run.tab_id), find(run.opening?.tabs[0])]);
  const told = { found: run.is_found || undefined, opened: opened && dropAbsent({ tab_id: opened.id, origin: originOf(opened.pendingUrl || opened.url) }) };
  if (!tab) return dropAbsent(told);
  const origin = whyClosed(tab.url) === null ? originOf(tab.url) : undefined;
  await noteTold(caller, tab.id, origin ?? null);
  return dropAbsent({ origin, title: titleOf(tab), ...told });
}

/** Whether a command was kept out of its tab: by the user or what the page is, or since it was cancelled before. The server knows the same ones. */
function isTurnedAway(end) {
  const { code, reason, guarantee } = end?.error ?? {};
  return guarantee === "not_executed" && (code === "url_blocked" || code === "cancelled" || reason === "paused");
}

/** What a page that may not be read calls itself is not told. */
function titleOf(tab) {
  return whyHostBlocked(tab.url ?? "") === null ? tab.title?.slice(0, TITLE_CHARS) : undefined;
}

async function find(tab_id) {
  return tab_id === undefined ? null : await chrome.tabs.get(tab_id).catch(() => null);
}
