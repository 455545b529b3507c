// The frames of a tab. The agent in a document reads the frames of the same origin along with it; each
// other frame has an agent of its own, and refs in it begin with its number: `f12e3`.

import { call, probe } from "./agents.js";

const PROBE_MS = 1000;
const MAX_FRAMES = 100;

/** `f12e3` -> 12; a ref or a selector of the page itself -> 0. */
export function frameOfRef(ref) {
  const number = /^@?f(\d+)e\d+$/.exec(String(ref ?? ""));
  return number ? Number(number[1]) : 0;
}

/**
 * The frames of a tab as `{frame_id, parent_id, index, path, url, origin, is_reached}`, without the page itself. `path` is the way there
 * from the page; `is_reached` is one that the agent of the frame around it reads.
 */
export async function framesOf(tab_id) {
  const all = (await chrome.webNavigation.getAllFrames({ tabId: tab_id })) ?? [];
  const known = all.filter(({ frameId }) => frameId !== 0).slice(0, MAX_FRAMES);
  const seen = await Promise.all(known.map((frame) => probe(tab_id, frame.frameId, placeInParent, PROBE_MS)));
  const frames = known.map(({ frameId, parentFrameId, url }, n) => ({ frame_id: frameId, parent_id: parentFrameId, url, is_scriptable: seen[n] !== null, index: -1, is_reached: false, origin: originOf(url), ...seen[n] }));
  const by_id = new Map(frames.map((frame) => [frame.frame_id, frame]));
  for (const frame of frames) frame.path = pathOf(frame, by_id);
  return frames;
}

/** Runs in a frame. */
function placeInParent() {
  const { parent } = window;
  let index = -1;
  for (let n = 0; n < parent.length && index < 0; n++) if (parent[n] === window) index = n;
  let is_reached = false;
  try {
    is_reached = parent.document !== null;
  } catch {
    // Of another origin.
  }
  return { index, is_reached, origin: self.origin };
}

function pathOf({ parent_id, index }, by_id) {
  if (parent_id === 0) return [index];
  const parent = by_id.get(parent_id);
  return parent ? [...(parent.path ?? pathOf(parent, by_id)), index] : [-1];
}

/** The frame that a hole in the document of another one stands for, or null. */
export function frameAt(frames, { path, url }, around) {
  const whole = [...(around?.path ?? []), ...path];
  const fits = (frame) => frame.path.length === whole.length && frame.path.every((step, n) => step === whole[n]) && !frame.is_reached;
  const found = frames.filter(fits);
  // Frames in shadow roots have no place among their siblings: they are told apart by their address.
  const same = whole.at(-1) >= 0 ? found : found.filter((frame) => frame.url === url);
  return same.length === 1 ? same[0] : null;
}

/** The frames with an agent of their own. */
export function ownFrames(frames) {
  return frames.filter((frame) => frame.is_scriptable && !frame.is_reached);
}

/** A point in a frame in the coordinates of the tab; `{why}` where it cannot be hit. */
export async function pointInTab(tab_id, frame_id, { x, y }, hit) {
  if (frame_id === 0) return { x, y };
  const by_id = new Map((await framesOf(tab_id)).map((frame) => [frame.frame_id, frame]));
  let at = { x, y };
  for (let frame = by_id.get(frame_id); frame; ) {
    const { value, missing, error } = await call(tab_id, "place", { index: frame.index, url: frame.url, ...at, hit }, frame.parent_id);
    if (!value || value.why) return { why: value?.why ?? missing ?? error };
    at = { x: value.x, y: value.y };
    let outer = frame.parent_id;
    for (let n = 0; n < value.levels && outer !== 0; n++) outer = by_id.get(outer)?.parent_id ?? 0;
    if (outer === 0) return at;
    frame = by_id.get(outer);
  }
  return { why: "its frame is not on this page any more" };
}

function originOf(url) {
  try {
    return new URL(url).origin;
  } catch {
    return "null";
  }
}
