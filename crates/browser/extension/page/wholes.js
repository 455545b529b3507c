// Snapshots that hold frames of other origins, to compare later ones with. The page holds those of its own document; what frames
// hold is in the memory of the worker, and never in the process of the page around them. It goes when the page is left, or the worker ends.

import { watchPages } from "../tabs/navigation.js";

const MAX_KEPT = 64;
const MAX_CHARS = 16_000_000;

const wholes = new Map();

export function watchWholes() {
  watchPages((kind, tab_id) => {
    if (kind !== "committed" && kind !== "closed") return;
    for (const [key, whole] of wholes) if (whole.tab_id === tab_id) wholes.delete(key);
  });
}

export function keepWhole(tab_id, snapshot_id, whole) {
  wholes.set(`${tab_id}/${snapshot_id}`, { ...whole, tab_id });
  let chars = [...wholes.values()].reduce((sum, { text }) => sum + text.length, 0);
  for (const [key, { text }] of wholes) {
    if (wholes.size <= 1 || (wholes.size <= MAX_KEPT && chars <= MAX_CHARS)) break;
    chars -= text.length;
    wholes.delete(key);
  }
}

/** A snapshot that was kept, or `{why}`. */
export function recallWhole(tab_id, snapshot_id) {
  return wholes.get(`${tab_id}/${snapshot_id}`) ?? { why: "forgotten" };
}
