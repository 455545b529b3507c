// A click by real input.

import assert from "node:assert/strict";
import { mock, test } from "node:test";

import { until } from "./fakes.mjs";

const sent = [];
let move;
globalThis.chrome = { debugger: { sendCommand: async (_, __, { type }) => (sent.push(type), type === "mouseMoved" ? await new Promise((_resolve, reject) => (move = reject)) : {}) } };

const { press } = await import("../extension/page/input.js");

test("a click that was done is none that failed, whatever became of the move before it", async () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  try {
    const clicked = press(7, { x: 1, y: 2 }, { button: "left", count: 1, modifiers: 0 });
    mock.timers.tick(1000);
    await until(() => sent.includes("mouseReleased"));
    move(new Error("the tab went behind another one"));
    await clicked;
    assert.deepEqual(sent, ["mouseMoved", "mousePressed", "mouseReleased"]);
  } finally {
    mock.timers.reset();
  }
});
