// The dialogs that are open in tabs, as far as they were seen to open. One that is open when the debugger leaves stays on
// the screen, and from then on only the user can answer it: it is `lost`.

const open = new Map();
const watchers = new Set();

/** Calls `watcher(tab_id, dialog)` when a dialog opens; `outcome` says whether it stays. Returns how to stop that. */
export function onDialog(watcher) {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
}

export function tellDialog(tab_id, dialog) {
  for (const watcher of [...watchers]) watcher(tab_id, dialog);
}

/** The dialog that is open in a tab, if one is. */
export function openDialog(tab_id) {
  return open.get(tab_id);
}

export function noteDialog(tab_id, dialog) {
  open.set(tab_id, dialog);
}

/** Notes that a dialog is closed; another one that opened after it is still there. */
export function forgetDialog(tab_id, dialog = open.get(tab_id)) {
  if (open.get(tab_id) === dialog) open.delete(tab_id);
}

export function loseDialog(tab_id) {
  const dialog = open.get(tab_id);
  if (dialog) dialog.is_lost = true;
}

/** Whether a tab has a dialog that can be answered only as long as the debugger stays. */
export function isAnswerable(tab_id) {
  return open.has(tab_id) && open.get(tab_id).is_lost !== true;
}
