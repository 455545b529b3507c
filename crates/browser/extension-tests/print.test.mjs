// A page that prints stands still until its preview is closed [BROWSER-22].

import assert from "node:assert/strict";
import { test } from "node:test";

import { Area } from "./fakes.mjs";

const listeners = [];
globalThis.chrome = {
  runtime: { id: "own", onMessage: { addListener: (listener) => listeners.push(listener) } },
  storage: { session: new Area() },
};

const { freeFromDialog, watchDialogs } = await import("../extension/tabs/dialogs.js");
watchDialogs();

const tell = (tab_id, is_open, id = "own") => listeners.forEach((listener) => listener({ to: "worker", kind: "print", is_open }, { id, tab: tab_id === undefined ? undefined : { id: tab_id } }));

/** How a command of a tab that is to end is told. */
async function ended(tab_id) {
  const run = { tab_id, ended: { error: { message: "it ran longer than 10 ms" } } };
  return [await freeFromDialog(run), run.ended.error.message];
}

test("a command that a print preview holds up names it when it is to end", async () => {
  tell(7, true);
  const [is_free, words] = await ended(7);
  assert.equal(is_free, false);
  assert.match(words, /print preview is open/);
  assert.deepEqual(await ended(8), [undefined, "it ran longer than 10 ms"]);
  tell(7, false);
  assert.deepEqual(await ended(7), [undefined, "it ran longer than 10 ms"]);
});

test("nobody else tells of it", async () => {
  tell(7, true, "another");
  tell(undefined, true);
  assert.deepEqual(await ended(7), [undefined, "it ran longer than 10 ms"]);
});
