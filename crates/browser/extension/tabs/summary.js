// What the events of a trace come to, for the page of one frame:
//
//   {main_thread: {busy_ms, scripting_ms, layout_ms, painting_ms, parsing_ms, garbage_ms, other_ms},
//    long_tasks: {count, blocking_ms, longest: [{at_ms, ms}]},
//    page: {first_paint_ms?, largest_paint_ms?, layout_shift?}, requests: {count, bytes, slowest: [{url, ms, bytes}]}, marks?: [{name, at_ms, ms?}]}
//
// Times of `page` count from the last navigation, all others from the first event.

import { pidsIn } from "./own-events.js";

const KINDS = {
  scripting_ms: ["EvaluateScript", "FunctionCall", "v8.compile", "v8.evaluateModule", "TimerFire", "EventDispatch", "FireAnimationFrame", "RunMicrotasks", "XHRReadyStateChange"],
  layout_ms: ["Layout", "UpdateLayoutTree", "RecalculateStyles", "HitTest", "IntersectionObserverController::computeIntersections"],
  painting_ms: ["Paint", "PaintImage", "PrePaint", "Layerize", "Commit", "CompositeLayers", "UpdateLayer", "DecodeImage", "RasterTask"],
  parsing_ms: ["ParseHTML", "ParseAuthorStyleSheet"],
  garbage_ms: ["MinorGC", "MajorGC", "BlinkGC.AtomicPhase", "V8.GCFinalizeMC", "V8.GCScavenger"],
};
const KIND_OF = new Map(Object.entries(KINDS).flatMap(([kind, names]) => names.map((name) => [name, kind])));
const TASKS = new Set(["RunTask", "ThreadControllerImpl::RunTask"]);
const LONG_US = 50_000;
const MOST = 5;
const MAX_MARKS = 50;

export function summarize(events, frame_id) {
  const pids = new Set(events.flatMap((event) => pidsIn(event, frame_id)));
  const main = new Set(events.filter((event) => event.name === "thread_name" && event.args?.name === "CrRendererMain" && pids.has(event.pid)).map(threadOf));
  const begun = least(events.filter((event) => event.ts > 0));
  const own = events.filter((event) => main.has(threadOf(event)));
  const at_ms = (ts) => Math.round((ts - begun) / 1000);
  return { ...busy(own.filter((event) => event.ph === "X"), at_ms), page: ofPage(events, frame_id), requests: requestsOf(events, pids), ...marksOf(own, at_ms) };
}

/** The time that each kind of work took by itself, without what ran inside it. */
function busy(complete, at_ms) {
  const spent = { busy_ms: 0, scripting_ms: 0, layout_ms: 0, painting_ms: 0, parsing_ms: 0, garbage_ms: 0, other_ms: 0 };
  const long = [];
  const stacks = new Map();
  for (const event of [...complete].sort((a, b) => a.ts - b.ts || b.dur - a.dur)) {
    const dur = event.dur ?? 0;
    const stack = stacks.get(threadOf(event)) ?? [];
    stacks.set(threadOf(event), stack);
    while (stack.length > 0 && stack.at(-1).end <= event.ts) stack.pop();
    const outer = stack.at(-1);
    const kind = KIND_OF.get(event.name) ?? outer?.kind ?? "other_ms";
    spent[kind] += dur;
    if (outer) spent[outer.kind] -= Math.min(dur, outer.end - event.ts);
    else spent.busy_ms += dur;
    if (TASKS.has(event.name) && !stack.some((one) => one.is_task) && dur >= LONG_US) long.push(event);
    stack.push({ end: event.ts + dur, kind, is_task: TASKS.has(event.name) });
  }
  const main_thread = Object.fromEntries(Object.entries(spent).map(([name, us]) => [name, Math.max(0, Math.round(us / 1000))]));
  const blocking = long.reduce((sum, { dur }) => sum + dur - LONG_US, 0);
  const longest = [...long].sort((a, b) => b.dur - a.dur).slice(0, MOST).map(({ ts, dur }) => ({ at_ms: at_ms(ts), ms: Math.round(dur / 1000) }));
  return { main_thread, long_tasks: { count: long.length, blocking_ms: Math.round(blocking / 1000), longest } };
}

function ofPage(events, frame_id) {
  const is_ours = ({ args }) => (args?.frame ?? args?.data?.frame) === frame_id;
  const started = most(events.filter((event) => event.name === "navigationStart" && is_ours(event)));
  const since = (name, pick) => {
    const found = events.filter((event) => event.name === name && is_ours(event) && event.ts >= started);
    return found.length > 0 && started > 0 ? Math.round((pick(found) - started) / 1000) : undefined;
  };
  const shifts = events.filter((event) => event.name === "LayoutShift" && is_ours(event) && event.args.data.had_recent_input !== true).map((event) => event.args.data.score ?? 0);
  const told = { first_paint_ms: since("firstContentfulPaint", least), largest_paint_ms: since("largestContentfulPaint::Candidate", most), layout_shift: Number(shifts.reduce((sum, one) => sum + one, 0).toFixed(4)) };
  return Object.fromEntries(Object.entries(told).filter(([, value]) => value !== undefined));
}

function requestsOf(events, pids) {
  const open = new Map();
  const done = [];
  for (const { name, ts, pid, args } of events) {
    const { requestId, url, encodedDataLength } = args?.data ?? {};
    if (requestId === undefined || !pids.has(pid)) continue;
    if (name === "ResourceSendRequest") open.set(requestId, { url: String(url).slice(0, 300), ts });
    const begun = open.get(requestId);
    if (name === "ResourceFinish" && begun) done.push({ url: begun.url, ms: Math.round((ts - begun.ts) / 1000), bytes: encodedDataLength ?? 0 });
  }
  const slowest = [...done].sort((a, b) => b.ms - a.ms).slice(0, MOST);
  return { count: done.length, bytes: done.reduce((sum, { bytes }) => sum + bytes, 0), slowest };
}

/** What the page itself measured. */
function marksOf(own, at_ms) {
  const marks = own.filter(({ cat, ph }) => cat?.includes("blink.user_timing") && (ph === "R" || ph === "I" || ph === "X" || ph === "b")).slice(0, MAX_MARKS);
  if (marks.length === 0) return {};
  return { marks: marks.map(({ name, ts, dur }) => (dur === undefined ? { name: name.slice(0, 200), at_ms: at_ms(ts) } : { name: name.slice(0, 200), at_ms: at_ms(ts), ms: Math.round(dur / 1000) })) };
}

// Of hundreds of thousands, which no call takes as arguments.
function least(events) {
  return events.reduce((found, { ts }) => Math.min(found, ts), Infinity);
}

function most(events) {
  return events.reduce((found, { ts }) => Math.max(found, ts), -Infinity);
}

function threadOf({ pid, tid }) {
  return `${pid}/${tid}`;
}
