// Asking a page, and waiting until an element can be acted on.

import { CommandError, invalid } from "../commands/errors.js";
import { readSetting, writeSetting } from "../tabs/settings.js";
import { call } from "./agents.js";
import { frameOfRef, framesOf, ownFrames, pointInTab } from "./frames.js";

const POLL_MS = [20, 50, 100, 100, 200];
const ELEMENT_MS = 5000;
const STILL_MS = 30;
const READS = new Set(["snapshot", "text", "size", "check", "value", "stable", "recall", "quiet"]);
const MAX_READS = 3;

/** Calls one method of the agent of a frame: that of the ref, else the given one, else the page's own. */
export async function ask(run, method, { frame_id, ...args } = {}) {
  return (await askWhere(run, method, { frame_id, ...args })).value;
}

/**
 * As `ask`, and says in which frame: a selector that matches nothing in the page is looked for in the frames of
 * other origins. Nothing but reading is done twice.
 */
export async function askWhere(run, method, { frame_id, ...args }) {
  const home = frame_id ?? frameOfRef(args.ref);
  let reply = await again(run, method, args, home);
  let where = home;
  if (reply.missing !== undefined && !reply.acted && args.selector !== undefined && frame_id === undefined) {
    for (const frame of ownFrames(await framesOf(run.tab_id))) {
      const found = await call(run.tab_id, method, args, frame.frame_id).catch((error) => {
        if (READS.has(method) || error.guarantee === "not_executed") return reply;
        throw error;
      });
      if (found.missing === undefined || found.acted) {
        [reply, where] = [found, frame.frame_id];
        break;
      }
    }
  }
  if (reply.missing !== undefined) throw notFound(reply.missing, reply.acted ? "executed" : "not_executed");
  // What acts may have acted before it failed.
  if (reply.error !== undefined) throw new CommandError("tool_failed", reply.error, { guarantee: READS.has(method) ? "not_executed" : "unknown", reason: "page_error" });
  return { value: reply.value, frame_id: where };
}

/** What is only read is read again from the page that came meanwhile. */
async function again(run, method, args, frame_id) {
  for (let tries = 1; ; tries++) {
    try {
      return await call(run.tab_id, method, args, frame_id);
    } catch (error) {
      if (error.reason !== "navigated" || !READS.has(method) || tries >= MAX_READS || run.ended) throw error;
    }
  }
}

/**
 * Waits until an element is there, visible, still, and not covered; fails with what was missing last. The answer
 * has its middle in the coordinates of the tab, `at`, which names it to `ask`, and whether it was scrolled to. Timed here: the timers of a page
 * that is not in front are slow.
 */
export async function reach(run, args, needs) {
  const limit = performance.now() + run.waitLimit(ELEMENT_MS);
  const picked = pick(args);
  let before = null;
  let has_scrolled = false;
  let is_noted = !run.recorder;
  for (let tries = 0; ; ) {
    const { reply, frame_id } = await locate(run, picked, needs);
    const place = reply.value && reply.value.why === undefined ? await inTab(run, reply.value, frame_id, needs) : null;
    const is_there = place !== null && place.why === undefined;
    has_scrolled ||= reply.value?.has_scrolled === true;
    if (is_there && before && isNear(before, place)) {
      if (is_noted) return { ...place, has_scrolled, at: { ...picked, frame_id } };
      // That takes its time: where the element is then is seen anew.
      await run.recorder.reached(picked, frame_id);
      is_noted = true;
      before = place;
      continue;
    }
    if (reply.error !== undefined) throw invalid(reply.error);
    if (reply.gone && !(reply.gone.reason === "navigated")) throw reply.gone;
    if (run.ended) throw ended();
    if (performance.now() > limit || (args.ref !== undefined && reply.missing)) {
      const moves = is_there && before ? `${place.what} is moving` : undefined;
      throw notFound(reply.missing ?? place?.why ?? reply.value?.why ?? moves ?? "the page was busy with a navigation");
    }
    if (is_there) await sleep(before ? POLL_MS[1] : STILL_MS);
    else await pause(tries++);
    before = is_there ? place : null;
  }
}

/** Whether an element has stayed where it was. */
function isNear(a, b) {
  return Math.abs(a.x - b.x) <= 1 && Math.abs(a.y - b.y) <= 1;
}

/** Looks for an element in the page, and where it is not there in the frames of other origins. */
async function locate(run, picked, needs) {
  const look = async (frame_id) => ({ frame_id, reply: await call(run.tab_id, "locate", { ...picked, ...needs }, frame_id).catch((error) => ({ gone: error })) });
  const home = await look(frameOfRef(picked.ref));
  if (home.reply.missing === undefined || picked.selector === undefined) return home;
  const others = ownFrames(await framesOf(run.tab_id).catch(() => []));
  const found = await Promise.all(others.map((frame) => look(frame.frame_id)));
  return found.find(({ reply }) => reply.value) ?? home;
}

async function inTab(run, place, frame_id, { hit = false }) {
  const point = await pointInTab(run.tab_id, frame_id, place, hit).catch((error) => ({ why: error.message }));
  return point.why === undefined ? { ...place, ...point } : { why: `${place.what}: ${point.why}` };
}

/** Polls the page until `check` holds; a navigation in between does not matter. */
export async function until(run, limit_ms, check) {
  const limit = performance.now() + limit_ms;
  for (let tries = 0; !run.ended; tries++) {
    const met = await check().catch((error) => {
      if (error.reason === "navigated") return null;
      throw error;
    });
    if (met) return met;
    if (performance.now() > limit) return null;
    await pause(tries);
  }
  throw ended();
}

/** What a run that was ended leaves off with; how it ended is told already. */
function ended() {
  return new CommandError("cancelled", "it has ended");
}

export function pick({ ref, selector }) {
  if ((ref === undefined) === (selector === undefined)) throw invalid("pass one of `ref` and `selector`");
  return ref === undefined ? { selector: String(selector) } : { ref: String(ref) };
}

/** Refs are never used twice in a tab, so that an old one cannot name an element of another page. */
export async function lastRef(tab_id) {
  return await readSetting(`last_ref:${tab_id}`, 0);
}

export async function keepLastRef(tab_id, last_ref) {
  if (last_ref > (await lastRef(tab_id))) await writeSetting(`last_ref:${tab_id}`, last_ref);
}

function notFound(message, guarantee = "not_executed") {
  return new CommandError("tool_failed", message, { guarantee, reason: "element_not_ready", hint: "take a snapshot to see what is on the page" });
}

function pause(tries) {
  return sleep(POLL_MS[Math.min(tries, POLL_MS.length - 1)]);
}

function sleep(ms) {
  return new Promise((done) => setTimeout(done, ms));
}
