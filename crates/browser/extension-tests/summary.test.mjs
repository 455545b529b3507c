// What the events of a trace come to.

import assert from "node:assert/strict";
import { test } from "node:test";

import { gunzipSync } from "node:zlib";

import { ownEvents } from "../extension/tabs/own-events.js";
import { pack } from "../extension/tabs/raw-trace.js";
import { setOrigins } from "../extension/status/origins.js";
import { summarize } from "../extension/tabs/summary.js";

const work = (name, ts, dur, more = {}) => ({ name, ph: "X", pid: 7, tid: 1, ts, dur, ...more });

test("work counts by itself, without what runs inside it, and only that of the page [BROWSER-50]", () => {
  const told = summarize([
    { name: "thread_name", ph: "M", pid: 7, tid: 1, ts: 0, args: { name: "CrRendererMain" } },
    { name: "thread_name", ph: "M", pid: 8, tid: 1, ts: 0, args: { name: "CrRendererMain" } },
    { name: "TracingStartedInBrowser", pid: 1, tid: 1, ts: 1000, args: { data: { frames: [{ frame: "F", processId: 7 }, { frame: "G", processId: 8 }] } } },
    work("RunTask", 10_000, 200_000),
    work("FunctionCall", 20_000, 150_000),
    work("Layout", 30_000, 100_000),
    work("RunTask", 300_000, 20_000),
    work("RunTask", 10_000, 900_000, { pid: 8 }),
    { name: "navigationStart", pid: 7, tid: 1, ts: 5000, args: { frame: "F" } },
    { name: "firstContentfulPaint", pid: 7, tid: 1, ts: 95_000, args: { frame: "F" } },
    { name: "largestContentfulPaint::Candidate", pid: 7, tid: 1, ts: 205_000, args: { frame: "F" } },
    { name: "LayoutShift", pid: 7, tid: 1, ts: 99_000, args: { data: { frame: "F", score: 0.25 } } },
    { name: "ResourceSendRequest", pid: 7, tid: 1, ts: 6000, args: { data: { requestId: "1", url: "http://a/" } } },
    { name: "ResourceFinish", pid: 7, tid: 1, ts: 16_000, args: { data: { requestId: "1", encodedDataLength: 99 } } },
  ], "F");
  assert.deepEqual(told, {
    main_thread: { busy_ms: 220, scripting_ms: 50, layout_ms: 100, painting_ms: 0, parsing_ms: 0, garbage_ms: 0, other_ms: 70 },
    long_tasks: { count: 1, blocking_ms: 150, longest: [{ at_ms: 9, ms: 200 }] },
    page: { first_paint_ms: 90, largest_paint_ms: 200, layout_shift: 0.25 },
    requests: { count: 1, bytes: 99, slowest: [{ url: "http://a/", ms: 10, bytes: 99 }] },
  });
});

test("a trace of nothing comes to nothing", () => {
  const { long_tasks, requests, page } = summarize([], "F");
  assert.deepEqual([long_tasks.count, requests.count, page], [0, 0, { layout_shift: 0 }]);
});

const unpacked = ({ data }) => JSON.parse(gunzipSync(Buffer.from(data, "base64"))).traceEvents;

test("the file of a trace has the events of its page and tells of no other tab [BROWSER-50]", async () => {
  const events = [
    { name: "TracingStartedInBrowser", pid: 1, tid: 1, ts: 1, args: { data: { frames: [{ frame: "F", processId: 7, url: "http://a/" }, { frame: "K", parent: "F", processId: 7 }, { frame: "G", processId: 8, url: "http://secret/" }, { frame: "H", processId: 7, url: "http://secret/same-process" }] } } },
    work("FunctionCall", 20_000, 150_000, { args: { data: { frame: "K" } } }),
    work("FunctionCall", 20_000, 150_000, { args: { data: { frame: "H", url: "http://secret/" } } }),
    work("RunTask", 10_000, 900_000, { pid: 8, args: { url: "http://secret/" } }),
    { name: "FrameCommittedInBrowser", pid: 1, tid: 1, ts: 5, args: { data: { frame: "G", processId: 8, url: "http://secret/" } } },
  ];
  const packed = await pack(ownEvents(events, "F"));
  const told = unpacked(packed);
  assert.deepEqual(told.map(({ name, pid }) => [name, pid]), [["TracingStartedInBrowser", 1], ["FunctionCall", 7]]);
  assert.deepEqual(told[0].args.data.frames.map(({ frame }) => frame), ["F", "K"]);
  assert.ok(!JSON.stringify(told).includes("secret"));
  assert.deepEqual([packed.events, packed.left_out], [2, undefined]);
});

test("a trace that is too large for a file is cut, counted and whole JSON [BROWSER-50]", async () => {
  const begin = { name: "TracingStartedInBrowser", pid: 1, tid: 1, ts: 1, args: { data: { frames: [{ frame: "F", processId: 7 }] } } };
  const many = Array.from({ length: 40_000 }, (_, n) => work("FunctionCall", n, 1, { args: { chance: `${(n * 7919) % 104_729}${n}` } }));
  const packed = await pack([begin, ...many], { most: 400_000 });
  const told = unpacked(packed);
  assert.equal(told.length, packed.events);
  assert.equal(packed.left_out, `${40_001 - told.length} events`);
  assert.ok(told.length < 40_001 && Buffer.from(packed.data, "base64").length <= 400_000, `${told.length}`);
});

test("a trace whose time is over before it is packed is whole JSON, and counts what is not in it [BROWSER-50]", async () => {
  const packed = await pack(Array.from({ length: 5000 }, (_, n) => work("FunctionCall", n, 1)), { until: 0 });
  assert.deepEqual([unpacked(packed), packed.events, packed.left_out], [[], 0, "5000 events"]);
});

const commit = (ts, frame, more) => ({ name: "FrameCommittedInBrowser", pid: 1, tid: 1, ts, args: { data: { frame, processId: 7, ...more } } });
const begun = (...frames) => ({ name: "TracingStartedInBrowser", pid: 1, tid: 1, ts: 1, args: { data: { frames: frames.map((one) => ({ processId: 7, ...one })) } } });
const namesOf = (events) => ownEvents(events, "F").map(({ name }) => name);

test("of a process that another tab of the same site shares only what is the page's own is told [BROWSER-50]", () => {
  const events = [
    begun({ frame: "F", url: "https://a/" }, { frame: "K", parent: "F", url: "https://a/kid" }, { frame: "G", url: "https://a/secret" }, { frame: "H", parent: "G", url: "https://a/secret/kid" }),
    { name: "thread_name", ph: "M", pid: 7, tid: 1, ts: 0, args: { name: "CrRendererMain" } },
    { name: "process_labels", ph: "M", pid: 7, tid: 1, ts: 0, args: { labels: "secret" } },
    commit(2, "L", { parent: "H", url: "https://a/secret/grandkid" }),
    ...["H", "L"].map((frame) => work("FunctionCall", 10, 5, { args: { data: { frame, url: "https://a/secret.js" } } })),
    work("ResourceSendRequest", 10, 0, { args: { data: { frame: "H", requestId: "1", url: "https://a/secret" } } }),
    work("ResourceFinish", 11, 0, { args: { data: { requestId: "1", encodedDataLength: 5 } } }),
    work("v8.compile", 12, 1, { args: { data: { url: "https://a/secret.js" } } }),
    work("secret mark", 12, 1, { cat: "blink.user_timing", args: {} }),
    work("RunTask", 13, 1, { args: {} }),
    work("ResourceSendRequest", 14, 0, { args: { data: { frame: "K", requestId: "2", url: "https://a/own" } } }),
    work("ResourceFinish", 15, 0, { args: { data: { requestId: "2", encodedDataLength: 7 } } }),
  ];
  const told = ownEvents(events, "F");
  assert.deepEqual(told.map(({ name }) => name), ["TracingStartedInBrowser", "thread_name", "RunTask", "ResourceSendRequest", "ResourceFinish"]);
  assert.ok(!JSON.stringify(told).includes("secret"), JSON.stringify(told));
  const { requests, marks } = summarize(told, "F");
  assert.deepEqual([requests.count, requests.slowest.map(({ url }) => url), marks], [1, ["https://a/own"], undefined]);
});

test("a page alone in its process is told whole", () => {
  const own = [work("v8.compile", 12, 1, { args: { data: { url: "https://a/a.js" } } }), work("mark", 12, 1, { cat: "blink.user_timing" })];
  assert.deepEqual(namesOf([begun({ frame: "F", url: "https://a/" }, { frame: "G", url: "https://b/", processId: 8 }), ...own]), ["TracingStartedInBrowser", "v8.compile", "mark"]);
});

test("frames of origins that the user closed are in no trace, nor what is in them [BROWSER-50]", async () => {
  const storage = { local: { set: async () => {} } };
  await setOrigins({ mode: "all_but", closed: ["bank.example"], open: [] }, storage);
  try {
    const call = (ts, frame) => work(`in ${frame} at ${ts}`, ts, 1, { args: { data: { frame } } });
    const events = [begun({ frame: "F", url: "https://a/" }, { frame: "K", parent: "F", url: "https://bank.example/" }, { frame: "L", parent: "K", url: "https://c/" }), call(2, "F"), call(3, "K"), call(4, "L")];
    const left = [commit(10, "F", { url: "https://bank.example/account" }), call(11, "F"), commit(20, "F", { url: "https://a/" }), call(21, "F")];
    assert.deepEqual(namesOf([...events, ...left]), ["TracingStartedInBrowser", "in F at 2", "FrameCommittedInBrowser", "in F at 21"]);
    assert.ok(!JSON.stringify(ownEvents([...events, ...left], "F")).includes("bank"));
  } finally {
    await setOrigins({ mode: "all_but", closed: [], open: [] }, storage);
  }
});
