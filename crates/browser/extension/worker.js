// The service worker: wires the browser's events to the parts. It may be stopped at any time; what
// must outlive it is in the journal, and the offscreen document wakes it.

import { perform, target } from "./commands/actions.js";
import { blobs } from "./commands/blobs.js";
import { tabGone } from "./commands/errors.js";
import { Journal } from "./commands/journal.js";
import { Runner } from "./commands/runner.js";
import { REVISION, isOwnPage, post } from "./link/server.js";
import { watchMasks } from "./page/masks.js";
import { watchWholes } from "./page/wholes.js";
import { Desk } from "./status/desk.js";
import * as callers from "./tabs/callers.js";
import { watchConsole } from "./tabs/console.js";
import { setPolicy, watchDialogs } from "./tabs/dialogs.js";
import { watchCrashes } from "./tabs/kinds.js";
import { forgetMeter, watchMeter } from "./tabs/meter.js";
import { isNeeded } from "./tabs/held.js";
import { watchNavigation } from "./tabs/navigation.js";
import * as network from "./tabs/network.js";
import { watchDownloads } from "./tabs/downloads.js";
import * as emulation from "./tabs/emulation.js";
import * as trace from "./tabs/trace.js";
import * as requests from "./tabs/requests.js";
import { sendEventsWith } from "./tabs/observed.js";
import * as sessions from "./tabs/sessions.js";
import { readSetting } from "./tabs/settings.js";
import { placeOf } from "./tabs/place.js";
import { tellTabs, watchTabs } from "./tabs/tabs.js";

const OFFSCREEN = "link/offscreen.html";

let server = null;

const journal = new Journal(chrome.storage.session, blobs);
const desk = new Desk(chrome, journal);

const runner = new Runner({
  journal,
  post: (items) => (desk.told(items), send("/query-result", items)),
  target: async (entry) => (desk.admit(), await target(entry)),
  placeOf,
  perform: async (entry, run) => (await desk.begin(run), await perform(entry, run, await paired(), runner)),
});

desk.cancel = (id, who) => runner.cancel(id, who);
desk.settings = { dialogs: () => readSetting("dialog_policy", "dismiss"), setDialogs: (policy) => setPolicy({ policy }) };

// ---- the browser's events; registered before anything is awaited, or a waking event is lost ----

sessions.watchDebugger();
watchConsole();
watchMeter(sessions.enableAgain);
watchCrashes((tab_id, error) => stopRuns(tab_id, error));
watchDialogs();
network.watchNetwork();
requests.watchRequests();
watchDownloads();
emulation.watchEmulation();
trace.watchTrace();
watchNavigation();
watchMasks();
watchWholes();
watchTabs();
sendEventsWith(async (batch) => (await send("/events", batch)).status);

chrome.tabs.onRemoved.addListener((tab_id) => {
  stopRuns(tab_id, tabGone(tab_id, "unknown"));
  forgetMeter(tab_id);
  sessions.forgetTab(tab_id);
  network.forgetTab(tab_id);
  background(callers.forgetTab(tab_id));
  requests.forgetTab(tab_id);
  emulation.forgetTab(tab_id);
  trace.forgetTab(tab_id);
});
chrome.runtime.onInstalled.addListener(() => ensureOffscreen());
chrome.runtime.onStartup.addListener(() => ensureOffscreen());
chrome.alarms.onAlarm.addListener(() => {
  ensureOffscreen();
  background(sessions.detachLeft(isNeeded));
});
chrome.runtime.onMessage.addListener((message, sender, answer) => {
  if (message?.to !== "worker" || !isOwnPage(sender)) return;
  hear(message).then(answer, (error) => answer({ error: error.message }));
  return true;
});

// Each end of the port learns at once when the other one is gone.
chrome.runtime.onConnect.addListener((port) => port.onDisconnect.addListener(() => ensureOffscreen()));

const ready = prepare();

function stopRuns(tab_id, error) {
  for (const run of runner.runs) if (run.tab_id === tab_id && run.lane !== null) run.stop("error", error);
}

// ---- the link ----------------------------------------------------------------------------

const HEARD = {
  hello: () => identity(),
  connected: (message) => {
    server = message.server;
    desk.connected();
    tellTabs();
    background(runner.connected());
  },
  lost: () => {
    server = null;
    desk.link(false);
  },
  deliver: (message) => {
    server = message.server;
    desk.link(true);
    desk.delivered(message.entries);
    background(runner.deliver(message.entries));
    background(countCommands(message.entries));
  },
  tick: () => {},
  desk: (message) => desk.answer(message),
};

async function hear(message) {
  await ready;
  const reply = await HEARD[message.kind]?.(message);
  return reply ?? { running: runner.open };
}

async function send(path, body) {
  if (!(await paired())) throw new Error("no server");
  return await post(server, path, body);
}

/** The server as the offscreen document knows it; a worker that was just woken asks. */
async function paired() {
  server ??= await chrome.runtime.sendMessage({ to: "offscreen", kind: "server" }).catch(() => null);
  return server;
}

/** `worker_id` names this profile for good; `boot_id` changes when the journal is lost; `revision` is what is known here. */
async function identity() {
  const { worker_id } = await chrome.storage.local.get("worker_id");
  const { boot_id } = await chrome.storage.session.get("boot_id");
  return { worker_id, boot_id, revision: REVISION };
}

// ---- start -------------------------------------------------------------------------------

async function prepare() {
  const { worker_id, boot_id } = await identity();
  if (!worker_id) await chrome.storage.local.set({ worker_id: crypto.randomUUID() });
  if (!boot_id) {
    await chrome.storage.session.set({ boot_id: crypto.randomUUID() });
    await blobs.clear();
  }
  await desk.load();
  await runner.recover();
  background(runner.connected());
  await ensureOffscreen();
  if (!(await chrome.alarms.get("look"))) await chrome.alarms.create("look", { periodInMinutes: 0.5 });
}

let creating = null;

async function ensureOffscreen() {
  const url = chrome.runtime.getURL(OFFSCREEN);
  const found = await chrome.runtime.getContexts({ contextTypes: ["OFFSCREEN_DOCUMENT"], documentUrls: [url] });
  if (found.length > 0) return;
  creating ??= chrome.offscreen
    .createDocument({ url: OFFSCREEN, reasons: ["WORKERS"], justification: "keeps one request open to the program on this computer" })
    .finally(() => (creating = null));
  await creating.catch((error) => console.warn(error.message));
}

async function countCommands(entries) {
  const { n_commands } = await chrome.storage.session.get({ n_commands: 0 });
  const n_new = entries.filter((entry) => entry.type === "browser_action").length;
  await chrome.storage.session.set({ n_commands: n_commands + n_new });
}

function background(work) {
  work.catch((error) => console.error(error));
}
