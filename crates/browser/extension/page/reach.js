// Calls to the agent in a page, and waiting until an element can be acted on.

import { CommandError, invalid, navigatedAway } from "../commands/errors.js";
import { readSetting, writeSetting } from "../tabs/settings.js";

const POLL_MS = [20, 50, 100, 100, 200];
const ELEMENT_MS = 5000;
const GONE = /Frame with ID \d+ was removed|No frame with id|context was destroyed|The frame was removed|tab was closed|No tab with id/i;

/** Calls one method of the agent; puts the agent into the page where it is not there yet. */
export async function ask(run, method, args = {}) {
  const reply = await call(run.tab_id, method, args);
  if (reply.missing !== undefined) throw notFound(reply.missing);
  if (reply.error !== undefined) throw new CommandError("tool_failed", reply.error, { guarantee: "not_executed", reason: "page_error" });
  return reply.value;
}

/** Waits until an element is there, visible, still, and not covered; fails with what was missing last. */
export async function reach(run, args, needs) {
  const limit = performance.now() + run.waitLimit(ELEMENT_MS);
  for (let tries = 0; ; tries++) {
    const reply = await call(run.tab_id, "locate", { ...pick(args), ...needs }).catch((error) => ({ gone: error }));
    if (reply.value && reply.value.why === undefined) return reply.value;
    if (reply.error !== undefined) throw invalid(reply.error);
    if (reply.gone && !(reply.gone.reason === "navigated")) throw reply.gone;
    if (run.ended) return new Promise(() => {});
    if (performance.now() > limit || (args.ref !== undefined && reply.missing)) {
      throw notFound(reply.missing ?? reply.value?.why ?? "the page was busy with a navigation");
    }
    await pause(tries);
  }
}

/** Polls the page until `check` holds; a navigation in between does not matter. */
export async function until(run, limit_ms, check) {
  const limit = performance.now() + limit_ms;
  for (let tries = 0; !run.ended; tries++) {
    const met = await check().catch((error) => {
      if (error.reason === "navigated") return null;
      throw error;
    });
    if (met) return met;
    if (performance.now() > limit) return null;
    await pause(tries);
  }
  return new Promise(() => {});
}

export function pick({ ref, selector }) {
  if ((ref === undefined) === (selector === undefined)) throw invalid("pass one of `ref` and `selector`");
  return ref === undefined ? { selector: String(selector) } : { ref: String(ref) };
}

/** Refs are never used twice in a tab, so that an old one cannot name an element of another page. */
export async function lastRef(tab_id) {
  return await readSetting(`last_ref:${tab_id}`, 0);
}

export async function keepLastRef(tab_id, last_ref) {
  if (last_ref > (await lastRef(tab_id))) await writeSetting(`last_ref:${tab_id}`, last_ref);
}

async function call(tab_id, method, args) {
  const target = { tabId: tab_id, frameIds: [0] };
  try {
    const asked = { target, func: (method, args) => globalThis.raincheckAgent?.(method, args) ?? null, args: [method, args] };
    let [{ result }] = await chrome.scripting.executeScript(asked);
    if (!result) {
      await chrome.scripting.executeScript({ target, files: ["page/agent.js"] });
      [{ result }] = await chrome.scripting.executeScript(asked);
    }
    if (!result) throw new Error("The frame was removed.");
    return result;
  } catch (error) {
    if (GONE.test(error.message)) throw navigatedAway();
    throw new CommandError("tool_failed", `this page cannot be read: ${error.message}`, { guarantee: "not_executed", reason: "page_not_scriptable", hint: "navigate to a web page first" });
  }
}

function notFound(message) {
  return new CommandError("tool_failed", message, { guarantee: "not_executed", reason: "element_not_ready", hint: "take a snapshot to see what is on the page" });
}

function pause(tries) {
  return new Promise((done) => setTimeout(done, POLL_MS[Math.min(tries, POLL_MS.length - 1)]));
}
