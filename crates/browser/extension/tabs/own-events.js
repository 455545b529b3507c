// The events of a trace that are of one page. Tabs of one site share a process, so that what does not say which frame it
// is of may be another tab's: there only what belongs to a frame or a request of the page is taken, and what says nothing
// in words, such as how long a task took. A frame of an origin that the user closed is not taken, nor what is in it.

import { whyHostBlocked } from "./urls.js";

/** `TracingStartedInBrowser` and the like are of the browser's own process, also where they name a frame. */
const OF_BROWSER = /InBrowser$/;
/** Names of threads and processes, but not their labels, which are the titles of their pages. */
const NAMES = new Set(["thread_name", "process_name", "thread_sort_index", "process_sort_index"]);

/** The events of the page of a frame, in the processes that show it. */
export function ownEvents(events, frame_id) {
  const frames = new Frames(events, frame_id);
  const requests = new Set();
  const own = [];
  for (const event of events) {
    const { name, args } = event;
    if (name === "TracingStartedInBrowser") own.push(startOf(event, frames));
    else if (name === "FrameCommittedInBrowser" ? frames.isOwn(args?.data?.frame, event.ts) : isOwn(event, frames, requests)) own.push(event);
  }
  return own;
}

/** The processes that show a frame, as an event tells. */
export function pidsIn({ name, pid, args }, frame_id) {
  if (name === "TracingStartedInBrowser") return (args?.data?.frames ?? []).filter((one) => one.frame === frame_id).map((one) => one.processId);
  if (name === "FrameCommittedInBrowser" && args?.data?.frame === frame_id) return [args.data.processId];
  return args?.data?.frame === frame_id && !OF_BROWSER.test(name) ? [pid] : [];
}

function isOwn(event, frames, requests) {
  if (OF_BROWSER.test(event.name) || !frames.pids.has(event.pid)) return false;
  const { frame, request } = subjectOf(event);
  if (frame !== undefined) {
    const is_own = frames.isOwn(frame, event.ts);
    if (is_own && request !== undefined) requests.add(request);
    return is_own;
  }
  if (!frames.shared.has(event.pid)) return true;
  return request === undefined ? NAMES.has(event.name) || isWordless(event) : requests.has(request);
}

/** The frame and the request that an event of a page's process is of, as far as it says. */
function subjectOf({ args }) {
  return { frame: args?.frame ?? args?.data?.frame ?? args?.beginData?.frame, request: args?.data?.requestId };
}

/** What a page measures itself has a name that it chose. */
function isWordless({ cat, args }) {
  return cat?.includes("blink.user_timing") !== true && !hasWords(args);
}

function hasWords(value) {
  if (typeof value === "string") return value !== "";
  return typeof value === "object" && value !== null && Object.values(value).some(hasWords);
}

/** What the browser says of all its tabs when a trace begins, as far as it is of one. */
function startOf(event, frames) {
  const { frames: all = [], ...data } = event.args?.data ?? {};
  return { ...event, args: { ...event.args, data: { ...data, frames: all.filter((one) => frames.isOwn(one.frame, event.ts)) } } };
}

/** The frames of all tabs, and what they showed when. */
class Frames {
  #top;
  /** By frame: `[{ts, parent, is_closed}]`, the oldest first. */
  #shown = new Map();
  /** The processes that show the page. */
  pids;
  /** Those of them that show frames of others, too. */
  shared;

  constructor(events, top) {
    this.#top = top;
    const pids = new Map();
    for (const event of events) {
      for (const { frame, parent, url = "", processId } of framesIn(event)) {
        const shown = this.#shown.get(frame) ?? [];
        this.#shown.set(frame, shown);
        shown.push({ ts: event.ts, parent, is_closed: whyHostBlocked(url) !== null });
        pids.set(processId, (pids.get(processId) ?? new Set()).add(frame));
      }
    }
    for (const shown of this.#shown.values()) shown.sort((a, b) => a.ts - b.ts);
    this.pids = new Set(events.flatMap((event) => pidsIn(event, top)));
    const others = new Set([...this.#shown.keys()].filter((frame) => !this.#leadsToTop(frame)));
    const is_closed = (frame) => this.#shown.get(frame).some((one) => one.is_closed);
    const is_foreign = (frame) => others.has(frame) || (this.#shown.has(frame) && is_closed(frame));
    this.shared = new Set([...this.pids].filter((pid) => [...(pids.get(pid) ?? [])].some(is_foreign)));
    for (const event of events) {
      if (this.pids.has(event.pid) && !this.shared.has(event.pid) && is_foreign(subjectOf(event).frame)) this.shared.add(event.pid);
    }
  }

  /** Whether what a frame showed at a time is of the page, and open to commands with all that is around it. */
  isOwn(frame, ts) {
    for (let [at, depth] = [frame, 0]; depth < 100; depth++) {
      const shown = this.#at(at, ts);
      if (shown?.is_closed) return false;
      if (at === this.#top) return true;
      if (shown?.parent === undefined) return false;
      at = shown.parent;
    }
    return false;
  }

  #leadsToTop(frame) {
    for (let [at, depth] = [frame, 0]; at !== undefined && depth < 100; depth++) {
      if (at === this.#top) return true;
      at = this.#shown.get(at)?.at(-1).parent;
    }
    return false;
  }

  #at(frame, ts) {
    const shown = this.#shown.get(frame);
    return shown?.findLast((one) => one.ts <= ts) ?? shown?.[0];
  }
}

function framesIn({ name, args }) {
  if (name === "TracingStartedInBrowser") return args?.data?.frames ?? [];
  return name === "FrameCommittedInBrowser" && args?.data?.frame ? [args.data] : [];
}
