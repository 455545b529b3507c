// Several commands as one [BROWSER-43]: how far the whole got is told by how far its steps got.

import assert from "node:assert/strict";
import { test } from "node:test";

import { inSteps } from "../extension/commands/batch.js";
import { CommandError } from "../extension/commands/errors.js";
import { Run } from "../extension/commands/run.js";

const STEPS = [{ action: "click" }, { action: "type" }];

/** The failure of a batch whose step `failing` fails with a guarantee. */
async function failure(failing, guarantee) {
  let n = 0;
  const act = async () => {
    if (n++ === failing) throw new CommandError("tool_failed", "it did not work", { guarantee, reason: "x", hint: "look" });
    return "done";
  };
  const end = await new Run("batch", 60_000).outcome(() => inSteps(STEPS, new Run("whole", 60_000), act));
  assert.equal(end.status, "error");
  return end.error;
}

for (const guarantee of ["not_executed", "unknown", "executed"]) {
  test(`a first step that is ${guarantee} makes the batch so`, async () => {
    const error = await failure(0, guarantee);
    assert.equal(error.guarantee, guarantee);
    assert.deepEqual({ ...error.details.error }, { code: "tool_failed", reason: "x", guarantee, message: "it did not work" });
    assert.equal(error.hint, "look");
  });

  test(`after a step that was done the batch is executed, whatever the next one is (${guarantee})`, async () => {
    const error = await failure(1, guarantee);
    assert.equal(error.guarantee, "executed");
    assert.deepEqual([error.details.failed_step, error.details.n_done, error.details.error.guarantee], [1, 1, guarantee]);
  });
}

test("a batch goes on when the step under way may, whatever its words are [BROWSER-43]", async () => {
  for (const goes_on of [true, false]) {
    const run = new Run("batch", 60_000);
    const act = async (_, step) => {
      const stopped = new Promise((resolve) => step.onStop(() => (resolve(), !goes_on)));
      await stopped;
      throw new CommandError("tool_failed", "what it began may still go on in the tab");
    };
    const end = run.outcome(() => inSteps(STEPS, run, act));
    await new Promise((turn) => setImmediate(turn));
    run.cancel();
    const { status, error } = await end;
    assert.deepEqual([status, error.goes_on], goes_on ? ["error", true] : ["cancelled", undefined]);
  }
});

test("what a step that fails leaves at work the whole leaves, whichever step it is", async () => {
  for (const failing of [0, 1]) {
    let n = 0;
    const act = async () => {
      if (n++ === failing) throw new CommandError("tool_failed", "the debugger was taken", { reason: "debugger_taken", goes_on: true });
      return "done";
    };
    const { error } = await new Run("batch", 60_000).outcome(() => inSteps(STEPS, new Run("whole", 60_000), act));
    assert.equal(error.goes_on, true, `step ${failing}`);
  }
});
