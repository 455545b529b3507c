// What commands that were told to stop may have left at work, and in which document. A script that waits for something
// cannot be stopped from outside: it ends with its document, which `end_script` has the tab load anew.
//
// It outlives the worker and ends with the browser.

import { Remembered } from "../tabs/settings.js";

const MOST = 200;
/** What runs for so long is noted before its end: the worker may be stopped while it runs. */
const LONG_MS = 1000;

const left = new Remembered("left", MOST);

/** Where a command may be at work still, as `{tab_id, document_id}`, or `{is_over}`; undefined when it is not known to be. */
export async function leftOf(id) {
  return await left.get(id);
}

/** Notes that nothing of a command is at work any more, whatever its answer says. */
export async function noteOver(id) {
  await left.set(id, { is_over: true });
}

/**
 * Watches over a run that acts in a tab: its document is asked for before anything is done there, and again by `run.look()` before
 * each step that may act in another one.
 */
export function watchOver(run) {
  let place;
  let is_noted = false;
  run.look = () => {
    place = topDocument(run.tab_id).then((document_id) => ({ tab_id: run.tab_id, document_id }));
    place.catch(() => {});
    if (is_noted) note();
  };
  const note = async () => {
    is_noted = true;
    await left.set(run.id, await place).catch(complain);
  };
  run.look();
  const timer = setTimeout(note, LONG_MS);
  run.onEnd(() => {
    clearTimeout(timer);
    if (run.ended?.error?.goes_on) note();
    else if (is_noted) left.delete(run.id).catch(complain);
  });
}

/** The document that a tab shows; undefined when it shows none any more. */
export async function topDocument(tab_id) {
  const frame = await chrome.webNavigation.getFrame({ tabId: tab_id, frameId: 0 }).catch(() => null);
  return frame?.documentId;
}

/** Whether a document is out of sight and may come back, with what ran in it. */
export async function isResting(document_id) {
  const frame = await chrome.webNavigation.getFrame({ documentId: document_id }).catch(() => null);
  return frame?.documentLifecycle === "cached";
}

function complain(error) {
  console.warn(error.message);
}
