// What is asked of the agents of a tab's frames [BROWSER-32]: what may have been done is not asked again, and never said
// not to have been.

import assert from "node:assert/strict";
import { test } from "node:test";

import { call } from "../extension/page/agents.js";
import { askWhere } from "../extension/page/reach.js";

const GONE = "Frame with ID 5 was removed.";

/** A tab with a page and a frame of another origin; `answer(frame_id, n)` is what the agents there do at the `n`th call. */
function tabOf(answer) {
  const asked = [];
  const onCommitted = { addListener() {}, removeListener() {} };
  const frames = [{ frameId: 0, parentFrameId: -1, url: "https://a.example/" }, { frameId: 5, parentFrameId: 0, url: "https://b.example/" }];
  globalThis.chrome = {
    webNavigation: { onCommitted, getAllFrames: async () => frames, getFrame: async ({ frameId }) => frames.find((frame) => frame.frameId === frameId) },
    scripting: {
      async executeScript({ target, args, files }) {
        // Where a frame stands, and the agent itself.
        if (files) return [];
        if (!args) return [{ result: { index: 0, is_reached: false, origin: "https://b.example" } }];
        asked.push(target.frameIds[0]);
        return [{ result: answer(target.frameIds[0], asked.length) }];
      },
    },
  };
  return asked;
}

const run = { tab_id: 7, ended: null };

test("an agent that is not there is put there, and then asked", async () => {
  const asked = tabOf((_, n) => (n === 1 ? "absent" : { value: 1 }));
  assert.deepEqual([await call(7, "fill", {}), asked.length], [{ value: 1 }, 2]);
});

test("what gave no answer is not asked again", async () => {
  const asked = tabOf(() => null);
  await assert.rejects(call(7, "fill", {}), { reason: "navigated", guarantee: "unknown" });
  assert.equal(asked.length, 1);
});

test("a frame that went while it was asked may have done it, one that never was there has not", async () => {
  const fails = (message) => () => {
    throw new Error(message);
  };
  tabOf(fails(GONE));
  await assert.rejects(call(7, "fill", {}, 5), { reason: "navigated", guarantee: "unknown" });
  tabOf(fails("No frame with id 5 in tab 7."));
  assert.match((await call(7, "fill", {}, 5)).missing, /not on this page any more/);
});

test("what went in a frame while it acted is not told as missing in the page", async () => {
  const inFrame = (frame_id) => {
    if (frame_id === 0) return { missing: "no element matches `#x`" };
    throw new Error(GONE);
  };
  tabOf(inFrame);
  await assert.rejects(askWhere(run, "put", { selector: "#x" }), { guarantee: "unknown" });
  tabOf(inFrame);
  await assert.rejects(askWhere(run, "text", { selector: "#x" }), { guarantee: "not_executed", reason: "element_not_ready" });
});

test("what was acted on in vain is looked for in no other frame", async () => {
  const asked = tabOf(() => ({ missing: "it did not become true", acted: true }));
  await assert.rejects(askWhere(run, "put", { selector: "#x" }), { guarantee: "executed" });
  assert.deepEqual(asked, [0]);
});
