// `end_script {of}` -> `{ended: true, reloaded}`: ends for good what a command may have left at work in its tab.
//
// It acts on the document of that command alone. One that is gone needs nothing; one that the tab still shows is loaded
// anew, unless that would send a form again.

import { CommandError } from "./errors.js";
import { isResting, leftOf, noteOver, topDocument } from "./left.js";
import { closed, whyClosed } from "../status/origins.js";
import { settleDialog } from "../tabs/dialogs.js";
import { hold } from "../tabs/held.js";
import { watchTab } from "../tabs/navigation.js";
import { methodOfDocument } from "../tabs/network.js";
import { attach, send } from "../tabs/sessions.js";

/** `commands` is the runner: `halt(id)` stops a command, waits for its end, and says `{may_go_on}` of it. */
export async function endScript({ of }, run, commands) {
  const known = await commands.halt(of);
  const place = await leftOf(of);
  if (place?.is_over) return { ended: true, reloaded: false };
  // Where it may be at work is not known: that it ended is true only where its answer says no more.
  if (!place?.document_id && (known?.may_go_on ?? true)) throw unknown(of);
  if (!place) return { ended: true, reloaded: false };
  Object.assign(run, { tab_id: place.tab_id });
  const shown = await topDocument(place.tab_id);
  const is_shown = shown !== undefined && shown === place.document_id;
  if (is_shown) await loadAnew(place, run);
  else if (await isResting(place.document_id)) throw resting();
  await noteOver(of);
  return { ended: true, reloaded: is_shown };
}

async function loadAnew({ tab_id, document_id }, run) {
  const tab = await chrome.tabs.get(tab_id);
  if (whyClosed(tab.url ?? "") !== null) throw closed("the page in this tab is closed to commands");
  hold(run, true);
  await settleDialog(tab_id);
  await attach(tab_id);
  const { loaderId } = (await send(tab_id, "Page.getFrameTree")).frameTree.frame;
  const { currentIndex, entries } = await send(tab_id, "Page.getNavigationHistory");
  if (methodOfDocument(tab_id, loaderId) === "POST" || entries[currentIndex]?.transitionType === "form_submit") throw ofForm();
  // The loader is that of the document where this was there before and after; the browser itself compares it once more.
  if ((await topDocument(tab_id)) !== document_id) return;
  const gone = left(tab_id, document_id, run);
  gone.catch(() => {});
  await send(tab_id, "Page.reload", { loaderId }).catch(async (error) => {
    if ((await topDocument(tab_id)) === document_id) throw error;
  });
  if ((await topDocument(tab_id)) === document_id) await gone;
}

/** Waits until a tab shows another document, or is gone. */
function left(tab_id, document_id, run) {
  return new Promise((resolve, reject) => {
    const look = async () => {
      if ((await topDocument(tab_id)) !== document_id) resolve();
    };
    run.onEnd(watchTab(tab_id, (kind) => (kind === "committed" || kind === "closed") && look()));
    run.onStop((status) => {
      reject(new CommandError("cancelled", "it has ended"));
      return status === "error";
    });
  });
}

function unknown(of) {
  return new CommandError("tool_failed", `it is not known where ${String(of).slice(0, 60)} may be at work`, {
    guarantee: "not_executed",
    reason: "script_unknown",
    hint: 'load the page anew with interact {action: "reload"}, which ends what runs in it',
  });
}

function resting() {
  return new CommandError("tool_failed", "its page was left and rests in the browser's memory", {
    guarantee: "not_executed",
    reason: "page_resting",
    hint: "it goes on only if the user goes back to it; tab_close ends it",
  });
}

function ofForm() {
  return new CommandError("tool_failed", "its page is the answer to a form", {
    guarantee: "not_executed",
    reason: "page_of_form",
    hint: "leave it with interact navigate, or close its tab with interact tab_close; both end what runs in it",
  });
}
