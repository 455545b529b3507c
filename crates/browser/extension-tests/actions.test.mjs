// Which actions change a page: only in their time is one left against its wish [BROWSER-22].

import assert from "node:assert/strict";
import { test } from "node:test";

import { Area } from "./fakes.mjs";

globalThis.chrome = {};
const { isReading, perform } = await import("../extension/commands/actions.js");
const { Run } = await import("../extension/commands/run.js");

test("what is asked for, and not only the action, says whether it changes the page", () => {
  const reading = [{ action: "page_tools" }, { action: "trace_start" }, { action: "trace_stop", raw: true }, { what: "snapshot" }, { action: "wait_for", text: "a" }];
  const changing = [{ action: "page_tools", name: "pay" }, { action: "click", ref: "a" }, { action: "navigate", url: "http://a/" }, { action: "execute_js", script: "1" }];
  assert.deepEqual([...reading, ...changing].map(isReading), [true, true, true, true, true, false, false, false, false]);
});

test("a batch reads where each of its steps does", () => {
  const batch = (...steps) => isReading({ action: "batch", steps });
  assert.deepEqual([batch({ action: "hover", ref: "a" }, { what: "snapshot" }), batch({ action: "hover", ref: "a" }, { action: "click", ref: "a" }), batch({ action: "nothing" }), batch(null)], [true, false, false, false]);
});

test("an action is given what has to do with other commands", async () => {
  chrome.storage = { session: new Area() };
  chrome.webNavigation = { getFrame: async () => null };
  const run = new Run("r", 60_000);
  const end = await run.outcome(() => perform({ params: { action: "end_script", of: "c1" } }, run, undefined, { halt: async () => ({ may_go_on: false }) }));
  assert.deepEqual(end.result, { ended: true, reloaded: false });
});
