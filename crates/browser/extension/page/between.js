// What changed between two outlines of a page with frames in it, each `{text, is_cut, frames}`. A frame that one of the outlines
// holds not at all, or not whole, because it did not answer in time, may be as it was: nothing of it is told as gone or new.
//
// `frames`: `[{line, end, frame_id?, place, name, url, is_whole}]`, from the line that stands for it to behind the last one in it.

import { compare, tell } from "./compare.js";
import { masked } from "./masks.js";

const STANDS_FOR = / \((?:origin [^\s;)]*|of another origin)(?:; .*)?\)$/;
const MAX_NAMED = 5;

/** As `tell` has it, with `left_out` for the frames of which it is not known. */
export function changesBetween(run, before, after, limits) {
  const [was, is] = [before, after].map(({ text }) => linesOf(masked(run, text)));
  const [earlier, later] = [before.frames ?? [], after.frames ?? []];
  const [unsure_before, unsure_after, names] = [[], [], new Set()];
  for (const frame of earlier) {
    const other = later.find((each) => isSame(each, frame));
    if (!other || (other.is_whole && frame.is_whole)) continue;
    names.add(frame.name);
    if (!other.is_whole) unsure_before.push([frame.line + 1, frame.end]);
    if (!frame.is_whole) unsure_after.push([other.line + 1, other.end]);
    // That it was not read is no change of the line that stands for it.
    const plain = (line) => line?.replace(STANDS_FOR, "").trimStart();
    if (was[frame.line] !== undefined && plain(was[frame.line]) === plain(is[other.line])) was[frame.line] = is[other.line];
  }
  const told = tell(was, compare(was, is), { before_cut: before.is_cut, after_cut: after.is_cut, unsure_before, unsure_after, ...limits });
  const shown = [...names].slice(0, MAX_NAMED).map((name) => `what changed in the frame of ${name}: it was not read whole both times`);
  return { ...told, left_out: names.size > MAX_NAMED ? [...shown, `and in ${names.size - MAX_NAMED} more frames`] : shown };
}

export function linesOf(text) {
  return text === "" ? [] : text.split("\n");
}

function isSame(a, b) {
  return a.frame_id !== undefined && b.frame_id !== undefined ? a.frame_id === b.frame_id : a.place === b.place;
}
