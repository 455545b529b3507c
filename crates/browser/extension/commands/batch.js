// Several commands of one tab as one: `batch {steps: [{action|what, …}]}` -> `{n_done, steps: [{action, result}]}`.
//
// Steps are counted as in `steps`, from 0: `steps[1]` and `failed_step: 1` are the second, and `progress.step` is how many are done.
// Each step has a run of its own, which ends with the whole. The first that fails is the last that is tried; the failure
// says which one it was and what those before it came to. A cancel and the limit stop the step that is under way, and count
// as done only when that has stopped.

import { CommandError, dropAbsent } from "./errors.js";
import { Run } from "./run.js";

const TOLD_CHARS = 12_000;

/** `act(params, run)` does one step. */
export async function inSteps(steps, run, act) {
  const done = [];
  for (const [n, step] of steps.entries()) {
    if (run.ended) return;
    const action = step.action ?? step.what;
    run.report({ step: n, step_total: steps.length, message: action }, { steps: bounded(done) });
    const end = await oneStep(step, n, run, act);
    if (end.status !== "complete") throw failed(steps, n, action, end, done);
    done.push(dropAbsent({ action, result: end.result }));
  }
  run.report({ step: steps.length, step_total: steps.length });
  return { n_done: done.length, steps: done };
}

async function oneStep(step, n, whole, act) {
  const run = new Run(whole.id, Math.max(1, whole.left_ms), (progress) => whole.report({ step: n, ...progress }));
  Object.assign(run, { tab_id: whole.tab_id, lane: whole.lane, own_port: whole.own_port, server: whole.server, caller: whole.caller, opening: whole.opening, secrets: whole.secrets, step: n, look: whole.look });
  const outcome = run.outcome(() => act(step, run));
  // What stops the whole stops the step, and says whether it did.
  const forget = whole.onStop(async (status) => {
    if (status === "cancelled") run.cancel();
    else run.stop(status, new CommandError("tool_failed", "the batch ended"));
    const { error } = await outcome;
    return error?.goes_on !== true;
  });
  try {
    return await outcome;
  } finally {
    forget();
    whole.engine = run.engine ?? whole.engine;
  }
}

/** `error` is the end of the step as it goes on the wire; without a step before it the batch got as far as that one. */
function failed(steps, n, action, { error }, done) {
  const { code, message, guarantee, reason, hint, goes_on } = error;
  return new CommandError("tool_failed", `steps[${n}] (${action}), of ${steps.length}, failed: ${message}`, {
    guarantee: done.length === 0 ? guarantee : "executed",
    reason: "step_failed",
    hint,
    // What the step may have left at work the whole has.
    goes_on,
    details: { failed_step: n, n_done: done.length, error: dropAbsent({ code, reason, guarantee, goes_on, message: message.slice(0, 2000) }), steps: bounded(done) },
  });
}

/** What the steps came to, as far as there is room to tell it; each is named. */
function bounded(done) {
  let left = TOLD_CHARS;
  return done.map(({ action, result }) => {
    const size = JSON.stringify(result ?? null).length;
    left -= size;
    return left >= 0 ? dropAbsent({ action, result }) : { action, result_chars: size };
  });
}
