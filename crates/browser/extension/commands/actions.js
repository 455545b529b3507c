// Every action by its name: what does it, and whether it waits in the tab's lane or goes past it.

import { answerDialog, freeFromDialog, setPolicy, settleDialog } from "../tabs/dialogs.js";
import { hold } from "../tabs/held.js";
import { checkKind, lookAtKind } from "../tabs/kinds.js";
import { back, forward, navigate, reload, stopLoading, wakeTab } from "../tabs/navigation.js";
import { sendNow } from "../tabs/observed.js";
import { hear, useTab } from "../tabs/callers.js";
import { takeInHand } from "../tabs/group.js";
import { settleOpened, watchOpened } from "../tabs/place.js";
import { closeTab, listTabs, newTab, selectTab, targetTab } from "../tabs/tabs.js";
import { checkShown, checkTab } from "../tabs/urls.js";
import { listDownloads } from "../tabs/downloads.js";
import { emulate } from "../tabs/emulation.js";
import { recorderOf, showRecording, startRecording, stopRecording } from "../tabs/recording.js";
import { startTrace, stopTrace } from "../tabs/trace.js";
import { requestOf } from "../tabs/requests.js";
import { putAhead } from "../page/agents.js";
import { withChanges } from "../page/changes.js";
import { drag } from "../page/drag.js";
import { fillForm } from "../page/form.js";
import { click, fill, hover, pressKey, scroll, select, type } from "../page/input.js";
import { maskedAnswer, maskedFailure } from "../page/masks.js";
import { pdf } from "../page/pdf.js";
import { pageTools, setPageTools } from "../page/tools.js";
import { pageText, screenshot, snapshot, waitFor } from "../page/read.js";
import { cookies, storage } from "../page/storage.js";
import { executeJs, setEngine } from "../page/script.js";
import { upload } from "../page/upload.js";
import { inSteps } from "./batch.js";
import { endScript } from "./end.js";
import { invalid } from "./errors.js";
import { watchOver } from "./left.js";

/** What may be done in a tab whose page may not be read. */
const LEAVES = new Set([navigate, back, forward, reload]);

/** The longest that an answer waits for the events before it. */
const EVENTS_MS = 1000;

/**
 * `in`: "lane" = in turn with its tab, "tab" = about a tab but at once, "browser" = about no tab.
 * `needs`: what has to be in the tab, see `checkKind`. `reads`: it changes nothing in the page, or whether it does not with its
 * parameters. `is_data`: its answer is told as it is.
 */
const ACTIONS = {
  execute_js: { in: "lane", needs: "script", act: executeJs, is_data: true },
  navigate: { in: "lane", act: navigate },
  back: { in: "lane", act: back },
  forward: { in: "lane", act: forward },
  reload: { in: "lane", act: reload },
  click: { in: "lane", needs: "page", act: click },
  hover: { in: "lane", needs: "page", act: hover, reads: true },
  type: { in: "lane", needs: "page", act: type },
  fill: { in: "lane", needs: "page", act: fill },
  press: { in: "lane", needs: "page", act: pressKey },
  select: { in: "lane", needs: "page", act: select },
  scroll: { in: "lane", needs: "page", act: scroll, reads: true },
  wait_for: { in: "lane", needs: "page", act: waitFor, reads: true },
  snapshot: { in: "lane", needs: "page", act: snapshot, reads: true },
  page_text: { in: "lane", needs: "file", act: pageText, reads: true },
  screenshot: { in: "lane", needs: "seen", act: screenshot, reads: true, is_data: true },
  fill_form: { in: "lane", needs: "page", act: fillForm },
  upload: { in: "lane", needs: "page", act: upload },
  drag: { in: "lane", needs: "page", act: drag },
  emulate: { in: "lane", act: emulate },
  trace_start: { in: "lane", act: startTrace, reads: true },
  trace_stop: { in: "lane", act: stopTrace, reads: true },
  page_tools: { in: "lane", needs: "page", act: pageTools, reads: ({ name }) => name === undefined },
  record_start: { in: "lane", act: startRecording, reads: true },
  record_stop: { in: "browser", act: stopRecording },
  recording: { in: "browser", act: showRecording },
  batch: { in: "lane", act: batch, reads: ({ steps }) => Array.isArray(steps) && steps.every(isReading), is_data: true },
  pdf: { in: "lane", needs: "page", act: pdf, reads: true, is_data: true },
  storage: { in: "lane", needs: "page", act: storage, reads: true, is_data: true },
  cookies: { in: "lane", needs: "page", act: cookies, reads: true, is_data: true },
  request: { in: "tab", act: requestOf, reads: true },
  downloads: { in: "browser", act: listDownloads },
  tab_close: { in: "tab", act: closeTab },
  tab_select: { in: "tab", act: selectTab },
  dialog: { in: "tab", act: answerDialog },
  tab_new: { in: "browser", act: newTab },
  tabs: { in: "browser", act: listTabs },
  dialog_policy: { in: "browser", act: setPolicy },
  engine: { in: "browser", act: setEngine },
  webmcp: { in: "browser", act: setPageTools },
  end_script: { in: "browser", act: endScript },
};

/** The tab of a command and the lane it waits in; fails for a tab that is gone. */
export async function target(entry) {
  const action = actionOf(entry);
  await hear(entry.caller, entry.server);
  if (action.in === "browser") return { tab_id: undefined, lane: null };
  const { tab, is_found } = await targetTab(entry, action.in === "lane");
  return { tab_id: tab.id, lane: action.in === "lane" ? tab.id : null, is_found };
}

/** Does what a command says. No page may be sent to the port of the server; `commands` is what has to do with other commands. */
export async function perform(entry, run, server, commands) {
  const action = actionOf(entry);
  return await withoutSecrets(action, run, () => inTurn(entry, action, run, server, commands));
}

/** What comes of an act, without what was typed where secrets are typed. */
async function withoutSecrets({ is_data }, run, act) {
  try {
    const result = await act();
    return is_data ? result : maskedAnswer(run, result);
  } catch (error) {
    throw maskedFailure(run, error);
  }
}

async function inTurn(entry, action, run, server, commands) {
  Object.assign(run, { server, own_port: server?.port, caller: entry.caller, secrets: [] });
  // From now on it is the caller's, unless the command is turned away from it.
  if (action.in !== "browser" && action.act !== closeTab) run.had = await useTab(entry.caller, run.tab_id);
  if (action.in === "lane") {
    const is_change = !isReading(entry.params);
    if (is_change) takeInHand(run.tab_id);
    watchOpened(run);
    hold(run, is_change);
    run.onStop((status) => (status === "error" ? true : freeFromDialog(run)));
    // Answered while the rest is looked at.
    const kind = lookAtKind(run.tab_id, action.needs);
    // A page that a dialog stops answers nothing: this comes before anything is asked of it.
    await settleDialog(run.tab_id);
    const tab = await wakeTab(run.tab_id, run);
    // Where the tab stands counts, whichever way it came there; only what leads elsewhere may be done.
    const is_same = !tab.discarded;
    if (!LEAVES.has(action.act)) checkTab(is_same ? tab : await chrome.tabs.get(run.tab_id), run.own_port, "not_executed");
    if (action.needs) run.is_pdf = await checkKind(tab, action.needs, is_same ? kind : undefined);
    if (is_change) watchOver(run);
    stopWith(action, run);
  }
  run.recorder = action.in === "lane" ? await recorderOf(run, entry.params) : null;
  let result;
  try {
    result = await withChanges(entry.params, run, () => action.act(entry.params, run, commands));
    if (result?.navigated === true) putAhead(run.tab_id).catch(() => {});
    if (run.opening) await settleOpened(run);
  } finally {
    // What the command caused is there to be read before its end is.
    await sendNow(EVENTS_MS);
    if (action.in === "lane") run.shown = await checkShown(run.tab_id, run.own_port, "executed");
  }
  if (!run.ended) await run.recorder?.note(entry.params);
  return result;
}

/** One step of several, in the lane of all. */
async function step(params, run) {
  const action = actionOf({ params });
  if (action.in !== "lane" || action.act === batch) throw invalid(`\`${params.action ?? params.what}\` is no step`);
  // A step before it may have left a dialog open, or gone to another page.
  await settleDialog(run.tab_id);
  if (!LEAVES.has(action.act)) await checkShown(run.tab_id, run.own_port, "not_executed");
  if (action.needs) run.is_pdf = await checkKind(await chrome.tabs.get(run.tab_id), action.needs);
  if (!isReading(params)) {
    takeInHand(run.tab_id);
    // A step before it may have gone to another page.
    run.look?.();
  }
  stopWith(action, run);
  run.recorder = await recorderOf(run, params);
  const result = await withoutSecrets(action, run, () => withChanges(params, run, () => action.act(params, run)));
  await checkShown(run.tab_id, run.own_port, "executed");
  if (!run.ended) await run.recorder?.note(params);
  return result;
}

/** What a recorded script names and does not hold the server has put into the steps. */
async function batch({ steps }, run) {
  return await inSteps(steps, run, step);
}

function stopWith({ act }, run) {
  if (act === navigate || act === reload) run.onStop((status) => (status === "error" ? true : stopLoading(run.tab_id)));
}

/** Whether what is asked for changes nothing in the page. */
export function isReading(params) {
  const reads = found(params)?.reads ?? false;
  return typeof reads === "function" ? reads(params) : reads;
}

function found(params) {
  const name = params?.action ?? params?.what;
  return Object.hasOwn(ACTIONS, name) ? ACTIONS[name] : null;
}

function actionOf({ params }) {
  const name = params?.action ?? params?.what;
  const action = found(params);
  if (!action) throw invalid(`the extension does not know the action \`${String(name).slice(0, 60)}\``);
  return action;
}
