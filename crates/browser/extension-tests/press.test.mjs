// A click by real input.

import assert from "node:assert/strict";
import { mock, test } from "node:test";

import { until } from "./fakes.mjs";

const sent = [];
let move;
globalThis.chrome = { debugger: { sendCommand: async (_, __, { type }) => (sent.push(type), type === "mouseMoved" ? await new Promise((_resolve, reject) => (move = reject)) : {}) } };

const { move: moveMouse, press } = await import("../extension/page/input.js");

test("a move is heard of before the next picture, which may be seconds away: something is let go that no page hears of", async () => {
  const commands = [];
  const answer = async (_, __, command) => (commands.push(command), command.type === "mouseMoved" ? await new Promise(() => {}) : {});
  const { sendCommand } = chrome.debugger;
  chrome.debugger.sendCommand = answer;
  try {
    await moveMouse(7, { x: 1, y: 2 }, { button: "left", buttons: 1 });
    const at = { x: 1, y: 2, buttons: 1 };
    assert.deepEqual(commands, [{ ...at, type: "mouseMoved", button: "left" }, { ...at, type: "mouseReleased", button: "none" }]);
  } finally {
    chrome.debugger.sendCommand = sendCommand;
  }
});

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
