// A performance trace of a tab, told as a summary.
//
// `trace_start` -> `{tracing: true}` · `trace_stop {raw?}` -> what `summarize` makes of it, with `raw` also the events, as `pack` has them, in at most so many bytes. The browser takes one trace at a time. It ends by
// itself when the debugger leaves the tab.

import { CommandError } from "../commands/errors.js";
import { ownEvents } from "./own-events.js";
import { pack } from "./raw-trace.js";
import { attach, on, send } from "./sessions.js";
import { summarize } from "./summary.js";

const CATEGORIES = "-*,devtools.timeline,disabled-by-default-devtools.timeline,loading,blink.user_timing";
const MAX_EVENTS = 400_000;
const COLLECT_MS = 60_000;

const traced = new Map();

/** Whether a tab would lose its trace with the debugger. */
export function isTraced(tab_id) {
  return traced.has(tab_id);
}

export function forgetTab(tab_id) {
  traced.delete(tab_id);
}

export function watchTrace() {
  on("detached", forgetTab);
}

export async function startTrace(_, { tab_id }) {
  await attach(tab_id);
  if (traced.has(tab_id)) throw new CommandError("tool_failed", "a trace of this tab is being taken; trace_stop ends it", { guarantee: "not_executed", reason: "tracing_already" });
  const start = () => send(tab_id, "Tracing.start", { categories: CATEGORIES, transferMode: "ReportEvents" });
  try {
    // One that the service worker before this one began is of no use to anybody.
    await start().catch(() => send(tab_id, "Tracing.end").then(start));
  } catch (error) {
    throw new CommandError("tool_failed", `the browser takes no trace: ${error.message}`, { guarantee: "not_executed", reason: "trace_refused" });
  }
  traced.set(tab_id, { begun: performance.now() });
  return { tracing: true };
}

export async function stopTrace({ raw }, run) {
  const { tab_id } = run;
  const trace = traced.get(tab_id);
  if (!trace) throw new CommandError("tool_failed", "no trace of this tab is being taken; trace_start begins one", { guarantee: "not_executed", reason: "no_trace" });
  const events = [];
  let n_left_out = 0;
  let complete;
  const is_complete = new Promise((resolve) => (complete = resolve));
  const stopEvents = on("Tracing.dataCollected", (id, { value }) => {
    if (id !== tab_id) return;
    const room = Math.max(0, MAX_EVENTS - events.length);
    for (const event of value.slice(0, room)) events.push(event);
    n_left_out += value.length - Math.min(room, value.length);
  });
  const stopEnd = on("Tracing.tracingComplete", (id) => id === tab_id && complete(true));
  const stopLost = on("detached", (id) => id === tab_id && complete(false));
  let timer;
  try {
    const { frameTree } = await send(tab_id, "Page.getFrameTree");
    // From now on nobody can ask for it again: what is there in time is told.
    traced.delete(tab_id);
    await send(tab_id, "Tracing.end");
    const late = new Promise((resolve) => (timer = setTimeout(resolve, Math.min(COLLECT_MS, run.left_ms / 2), false)));
    const is_whole = await Promise.race([is_complete, late]);
    const duration_ms = Math.round(performance.now() - trace.begun);
    const own = ownEvents(events, frameTree.frame.id);
    const summary = summarize(own, frameTree.frame.id);
    const packed = raw > 0 ? { raw: await pack(own, { most: raw, until: performance.now() + run.left_ms / 2 }) } : {};
    return { duration_ms, ...summary, ...packed, ...(is_whole && n_left_out === 0 ? {} : { left_out: is_whole ? `${n_left_out} events` : "what came too late" }) };
  } finally {
    clearTimeout(timer);
    stopEvents();
    stopEnd();
    stopLost();
  }
}
