// What an act changed in the page: `changes: true` -> `changes` in its result (of a script `{value, changes}`), one of
//
//   {added, removed, changed, text?, left_out?}    the lines of the outline that changed, as `tell` has them
//   {new_page: true, text, left_out?}              the page was left: the first lines of the one that came
//   {not_known}                                    why it cannot be told
//
// Nothing here makes an act that was done a failure, and none of it takes longer than a part of what is left of the act's limit.

import { openDialog } from "../tabs/open-dialogs.js";
import { trafficOf } from "../tabs/network.js";
import { tryAttach } from "../tabs/sessions.js";
import { dropAbsent } from "../commands/errors.js";
import { call } from "./agents.js";
import { changesBetween, linesOf } from "./between.js";
import { masked } from "./masks.js";
import { outlineOf } from "./read.js";

// The outline is as long as it got by then; the rest is for what does not answer.
const OUTLINE_MS = 800;
const LOOK_MS = 3000;
const MAX_LOOKED_AT = 400_000;
const QUIET_MS = 100;
const SETTLE_MS = 1500;
const ASK_MS = 300;
const POLL_MS = 40;
const MAX_LINES = 60;
const MAX_CHARS = 6000;
const MAX_FRAMES = 10;

/** Does something, and where `changes` is asked for adds what that changed. */
export async function withChanges({ action, changes }, run, act) {
  if (changes !== true) return await act();
  const before = await lookBefore(run);
  const result = await act();
  const is_value = action === "execute_js";
  if (!is_value && (result === null || typeof result !== "object" || Array.isArray(result))) return result;
  const told = await since(before, is_value ? {} : result, run).catch((error) => ({ not_known: `the page could not be read after: ${error.message}` }));
  return is_value ? dropAbsent({ value: result, changes: told }) : { ...result, changes: told };
}

/** Before a tab is opened there is no page. */
async function lookBefore(run) {
  if (run.tab_id === undefined) return { why: "there was no page before" };
  await within(limitOf(run, LOOK_MS), tryAttach(run.tab_id)).catch(() => {});
  const name = crypto.randomUUID();
  return await look(run, name).then((seen) => ({ ...seen, name })).catch((error) => ({ why: `the page could not be read before: ${error.message}` }));
}

async function since(before, { navigated }, run) {
  if (before.why && navigated !== true) return { not_known: before.why };
  await settle(run, before);
  if (openDialog(run.tab_id)) return { not_known: "a dialog is open; it is answered with interact {action: \"dialog\"}" };
  const after = await look(run);
  // It is watched no longer; that is waited for by nobody.
  if (!before.why) for (const frame_id of watched(before)) call(run.tab_id, "unwatch", { name: before.name }, frame_id).catch(() => {});
  if (after.document_id !== before.document_id) return dropAbsent({ new_page: true, ...beginning(after, run) });
  const { text, n_untold, left_out, ...counts } = changesBetween(run, before, after, { is_brief: true, max_lines: MAX_LINES, max_chars: MAX_CHARS });
  if (n_untold > 0) left_out.push(`${n_untold} more lines`);
  if (before.is_cut || after.is_cut) left_out.push("what changed further down: the page is too large to be compared whole");
  return dropAbsent({ ...counts, text: text === "" ? undefined : text, left_out: left_out.length > 0 ? left_out : undefined });
}

function beginning(after, run) {
  const lines = linesOf(masked(run, after.text));
  const shown = [];
  for (let left = MAX_CHARS; shown.length < Math.min(lines.length, MAX_LINES); ) {
    left -= lines[shown.length].length + 1;
    if (left < 0) break;
    shown.push(lines[shown.length]);
  }
  const n_more = lines.length - shown.length;
  const left_out = [...(n_more > 0 ? [`${n_more} more lines; take a snapshot`] : []), ...after.left_out];
  return { text: shown.join("\n"), left_out: left_out.length > 0 ? left_out : undefined };
}

async function look(run, watches) {
  const limit_ms = limitOf(run, LOOK_MS);
  const { n_open } = trafficOf(run.tab_id);
  const seen = await within(limit_ms, outlineOf(run, {}, { max_bytes: MAX_LOOKED_AT, limit_ms: Math.min(OUTLINE_MS, limit_ms * 0.8), watches }));
  return { ...seen, n_open };
}

/** Waits until nothing has changed in the page for a moment, and nothing that it asked for meanwhile is under way. */
async function settle(run, before) {
  const until = performance.now() + limitOf(run, SETTLE_MS);
  while (!run.ended && performance.now() < until && !openDialog(run.tab_id)) {
    const { n_open, quiet_ms: idle_ms } = trafficOf(run.tab_id);
    const asked = watched(before).map((frame_id) => within(ASK_MS, call(run.tab_id, "quiet", { name: before.name }, frame_id)).catch(() => ({})));
    const [page, ...frames] = (await Promise.all(asked)).map(({ value }) => value);
    const is_new = page !== undefined && page.document_id !== before.document_id;
    const quiet_ms = Math.min(page?.quiet_ms ?? 0, ...frames.map((frame) => frame?.quiet_ms ?? Infinity));
    // Nobody watches a page that has just come, but what it asks for.
    if (is_new ? n_open === 0 && idle_ms >= QUIET_MS : quiet_ms >= QUIET_MS && n_open <= before.n_open) return;
    await sleep(POLL_MS);
  }
}

function watched({ frame_ids = [] }) {
  return [0, ...frame_ids.slice(0, MAX_FRAMES)];
}

/** At most a quarter of the time that is left, so that what is done is told in time. */
function limitOf(run, most_ms) {
  return Math.min(most_ms, run.left_ms / 4);
}

async function within(limit_ms, asked) {
  asked.catch(() => {});
  let timer;
  const late = new Promise((_, reject) => (timer = setTimeout(reject, limit_ms, new Error("it took too long"))));
  return await Promise.race([asked, late]).finally(() => clearTimeout(timer));
}

function sleep(ms) {
  return new Promise((done) => setTimeout(done, ms));
}
