// What the events of a trace come to.

import assert from "node:assert/strict";
import { test } from "node:test";

import { gunzipSync } from "node:zlib";

import { pack } from "../extension/tabs/raw-trace.js";
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
  const packed = await pack(events, "F");
  const told = unpacked(packed);
  assert.deepEqual(told.map(({ name, pid }) => [name, pid]), [["TracingStartedInBrowser", 1], ["FunctionCall", 7]]);
  assert.deepEqual(told[0].args.data.frames.map(({ frame }) => frame), ["F", "K"]);
  assert.ok(!JSON.stringify(told).includes("secret"));
  assert.deepEqual([packed.events, packed.left_out], [2, undefined]);
});

test("a trace that is too large for a file is cut, counted and whole JSON [BROWSER-50]", async () => {
  const begin = { name: "TracingStartedInBrowser", pid: 1, tid: 1, ts: 1, args: { data: { frames: [{ frame: "F", processId: 7 }] } } };
  const many = Array.from({ length: 40_000 }, (_, n) => work("FunctionCall", n, 1, { args: { chance: `${(n * 7919) % 104_729}${n}` } }));
  const packed = await pack([begin, ...many], "F", 400_000);
  const told = unpacked(packed);
  assert.equal(told.length, packed.events);
  assert.equal(packed.left_out, `${40_001 - told.length} events`);
  assert.ok(told.length < 40_001 && Buffer.from(packed.data, "base64").length <= 400_000, `${told.length}`);
});
