// Which tabs commands are at work in now. Only there are dialogs answered, pages left against their
// wish and pauses resumed; a moment after the last command the debugger lets the tab go.

import { isEmulated } from "./emulation.js";
import { isAnswerable } from "./open-dialogs.js";
import { isTraced } from "./trace.js";
import { pausesIn, releaseSoon } from "./sessions.js";

const held = new Map();

/** Holds the tab of a run until the run has ended. `changes`: the command may change or leave the page. */
export function hold(run, changes) {
  const { tab_id } = run;
  const now = { changes };
  const all = held.get(tab_id) ?? new Set();
  held.set(tab_id, all.add(now));
  if (all.size === 1) pausesIn(tab_id, true);
  run.onEnd(() => {
    all.delete(now);
    if (all.size > 0) return;
    held.delete(tab_id);
    pausesIn(tab_id, false);
    releaseSoon(tab_id, isNeeded);
  });
}

/** Whether the debugger has something to do in a tab, or holds something there that would end with it. */
export async function isNeeded(tab_id) {
  return held.has(tab_id) || isAnswerable(tab_id) || isTraced(tab_id) || (await isEmulated(tab_id));
}

export function isHeld(tab_id) {
  return held.has(tab_id);
}

/** Whether a command that may change or leave the page is at work in a tab. */
export function isChanged(tab_id) {
  return [...(held.get(tab_id) ?? [])].some((one) => one.changes);
}
