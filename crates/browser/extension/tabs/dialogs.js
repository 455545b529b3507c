// Dialogs of a page (alert, confirm, prompt, beforeunload) by policy, so that none holds up a tab:
// `dismiss` and `accept` answer at once, `report` leaves it open for the `dialog` action. Each is
// told as an event.

import { CommandError, invalid } from "../commands/errors.js";
import { isChanged, isHeld, isNeeded } from "./held.js";
import { watchPages } from "./navigation.js";
import { record } from "./observed.js";
import { forgetDialog, isAnswerable, loseDialog, noteDialog, openDialog, tellDialog } from "./open-dialogs.js";
import { on, releaseSoon, send } from "./sessions.js";
import { readSetting, writeSetting } from "./settings.js";

const POLICIES = ["dismiss", "accept", "report"];
const REACTS_MS = 2000;

/** Tabs whose print preview is open, as the agent in the page saw. */
const printing = new Set();

export function watchDialogs() {
  on("Page.javascriptDialogOpening", onOpening);
  on("Page.javascriptDialogClosed", onClosed);
  on("detached", loseDialog);
  chrome.runtime.onMessage.addListener(hearPrint);
  watchPages((kind, tab_id) => {
    if (kind !== "committed" && kind !== "closed") return;
    printing.delete(tab_id);
    // Of one that is not lost the debugger tells when it is closed; the new page may have opened it.
    if (kind === "closed" || !isAnswerable(tab_id)) forgetDialog(tab_id);
  });
}

/** `interact {action: "dialog"}` -> `{dialog: {type, message}, accepted}`. */
export async function answerDialog({ accept = true, text }, { tab_id }) {
  const dialog = await dialogNow(tab_id);
  if (!dialog) throw new CommandError("tool_failed", "no dialog is open in this tab", { guarantee: "not_executed", reason: "no_dialog" });
  if (dialog.is_lost) throw standing(dialog);
  await send(tab_id, "Page.handleJavaScriptDialog", { accept: accept === true, promptText: text ?? dialog.default_text });
  forgetDialog(tab_id, dialog);
  return { dialog: { type: dialog.type, message: dialog.message }, accepted: accept === true };
}

/** `configure {what: "dialog_policy"}` -> `{dialog_policy}`. */
export async function setPolicy({ policy, dialog_policy, value }) {
  const wanted = policy ?? dialog_policy ?? value;
  if (!POLICIES.includes(wanted)) throw invalid(`policy must be one of ${POLICIES.join(", ")}`);
  await writeSetting("dialog_policy", wanted);
  return { dialog_policy: wanted };
}

/**
 * What becomes of a dialog that is open when a command comes: an alert, which asks nothing, is closed unless
 * dialogs are reported. Any other one is the user's, and holds the command off, as a print preview does.
 */
export async function settleDialog(tab_id) {
  const dialog = await dialogNow(tab_id);
  if (!dialog) return await settlePrint(tab_id);
  const is_reported = (await readSetting("dialog_policy", "dismiss")) === "report";
  if (dialog.type === "alert" && !is_reported && !dialog.is_lost) return void (await close(tab_id, { accept: true }));
  throw standing(dialog);
}

function standing({ type, message, is_lost }) {
  const whose = is_lost ? "only the user can answer it, since the debugger left the tab while it was open; " : "";
  return new CommandError("tool_failed", `${whose}the dialog is of the type ${type}: ${message}`, {
    guarantee: "not_executed",
    reason: "dialog_open",
    hint: is_lost ? "have the user answer it" : "answer it with interact {action: \"dialog\", accept: true or false}",
  });
}

/** The dialog that is open in a tab. That a lost one was answered shows only in a page that reacts again. */
async function dialogNow(tab_id) {
  const dialog = openDialog(tab_id);
  if (dialog?.is_lost && (await reacts(tab_id))) forgetDialog(tab_id, dialog);
  return openDialog(tab_id);
}

/** Whether a page takes its turn; one that no script may be put into cannot be asked, and holds nothing off. */
async function reacts(tab_id) {
  let timer;
  const late = new Promise((resolve) => (timer = setTimeout(resolve, REACTS_MS, false)));
  const turn = chrome.scripting.executeScript({ target: { tabId: tab_id }, injectImmediately: true, func: () => true });
  try {
    return await Promise.race([turn.then(() => true, () => true), late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Frees a tab from a dialog that holds up a command which is to end; one that is not ours to answer stays, and is named. */
export async function freeFromDialog(run) {
  const dialog = openDialog(run.tab_id);
  if (!dialog) return namePrint(run);
  if (!dialog.stays && !dialog.is_lost) return void (await close(run.tab_id, { accept: false }));
  const whom = dialog.is_lost ? "the user" : "interact {action: \"dialog\"}";
  if (!run.is_dialog_named) run.ended.error.message += `; a dialog (${dialog.type}) is open in its tab and waits for ${whom}`;
  run.is_dialog_named = true;
  return false;
}

/** A page that reacts prints no more, whatever was heard of it. */
async function settlePrint(tab_id) {
  if (!printing.has(tab_id)) return;
  if (await reacts(tab_id)) return void printing.delete(tab_id);
  throw new CommandError("tool_failed", "the print preview is open in this tab, until the user closes it", {
    guarantee: "not_executed",
    reason: "print_preview_open",
    hint: "have the user close it, or work in another tab",
  });
}

/** A page that prints stands still until its preview is closed, which the debugger neither sees nor can do. */
function namePrint(run) {
  if (!printing.has(run.tab_id)) return;
  if (!run.is_dialog_named) run.ended.error.message += "; the print preview is open in its tab, until the user closes it";
  run.is_dialog_named = true;
  return false;
}

/** Only agents of this extension tell of it, each of the tab that it is in. */
function hearPrint(message, sender) {
  if (message?.kind !== "print" || sender.id !== chrome.runtime.id || sender.tab === undefined) return;
  if (message.is_open === true) printing.add(sender.tab.id);
  else printing.delete(sender.tab.id);
}

async function close(tab_id, answer) {
  await send(tab_id, "Page.handleJavaScriptDialog", answer).catch(() => {});
}

/** A dialog that stood open was answered, by whomever: the debugger may have stayed for it alone. */
function onClosed(tab_id, { result }) {
  const dialog = openDialog(tab_id);
  forgetDialog(tab_id);
  releaseSoon(tab_id, isNeeded);
  if (!dialog?.stays) return;
  record({ kind: "dialog", tab_id, type: dialog.type, message: dialog.message, url: dialog.url, outcome: result ? "accepted" : "dismissed" });
}

async function onOpening(tab_id, { type, message, url, defaultPrompt }) {
  const dialog = { type, message: String(message).slice(0, 2000), url, default_text: defaultPrompt };
  noteDialog(tab_id, dialog);
  const policy = await readSetting("dialog_policy", "dismiss");
  // To dismiss `beforeunload` would stay on the page: the navigation that was asked for comes first.
  const is_accepted = policy === "accept" || type === "beforeunload";
  // Where no command is at work the user is, and what is left against its wish is not by one that only reads.
  dialog.stays = policy === "report" || !isHeld(tab_id) || (type === "beforeunload" && !isChanged(tab_id));
  const outcome = dialog.stays ? "open" : is_accepted ? "accepted" : "dismissed";
  record({ kind: "dialog", tab_id, type, message: dialog.message, url, outcome });
  tellDialog(tab_id, { ...dialog, outcome });
  if (dialog.stays) return;
  await send(tab_id, "Page.handleJavaScriptDialog", { accept: is_accepted, promptText: is_accepted ? defaultPrompt : undefined }).catch(() => {});
  if (!dialog.is_lost) forgetDialog(tab_id, dialog);
}
