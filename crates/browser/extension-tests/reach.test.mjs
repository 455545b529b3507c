// The place that an act is done at: where the element is now, also when its act was noted meanwhile [BROWSER-58].

import assert from "node:assert/strict";
import { test } from "node:test";

import { Area } from "./fakes.mjs";

const place = { x: 10, y: 10 };
const asked = [];
globalThis.chrome = {
  storage: { session: new Area() },
  webNavigation: { onCommitted: { addListener() {}, removeListener() {} }, getAllFrames: async () => [{ frameId: 0, parentFrameId: -1, url: "https://a.example/" }] },
  scripting: {
    async executeScript({ args: [method] }) {
      asked.push(method);
      if (method === "check") return [{ result: { value: { is_met: true } } }];
      return [{ result: { value: { ...place, what: "button" } } }];
    },
  },
  tabs: { get: async () => ({ id: 7, url: "https://a.example/", title: "A" }) },
  debugger: { onEvent: { addListener() {} }, onDetach: { addListener() {} }, attach: async () => assert.fail("attached") },
};
const { reach } = await import("../extension/page/reach.js");
const { scroll } = await import("../extension/page/input.js");
const { waitFor } = await import("../extension/page/read.js");

const run = (recorder) => ({ tab_id: 7, ended: null, waitLimit: (ms) => Math.min(ms, 10_000), recorder });

test("an element that moved while its act was noted is met where it is now", async () => {
  let n_noted = 0;
  const recorder = {
    async reached() {
      n_noted++;
      place.y = 110;
    },
  };
  const { x, y } = await reach(run(recorder), { selector: "#go" }, { hit: true });
  assert.deepEqual([x, y, n_noted], [10, 110, 1]);
});

test("whatever is aimed at an element is noted before it is done", async () => {
  for (const [act, method, params] of [[scroll, "scroll", { ref: "e1" }], [waitFor, "check", { selector: "#a" }]]) {
    asked.length = 0;
    await act(params, run({ reached: async () => asked.push("noted") }));
    assert.deepEqual(asked, ["noted", method]);
  }
});
