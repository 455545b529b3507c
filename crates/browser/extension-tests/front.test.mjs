// A picture of what a window shows, where the debugger cannot attach: never of a tab that the user brought in front meanwhile.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Area } from "./fakes.mjs";

let active = 7;
const looking = new Set();
const bring = (tabId) => {
  active = tabId;
  for (const look of looking) look({ tabId, windowId: 1 });
};
let during = () => {};
let n_taken = 0;
globalThis.chrome = {
  storage: { session: new Area() },
  debugger: { attach: async () => Promise.reject(new Error("DevTools are open")) },
  tabs: {
    get: async (id) => ({ id, windowId: 1, active: id === active, url: "https://a.example/", title: "a" }),
    captureVisibleTab: async () => (n_taken++, during(), "data:image/jpeg;base64,"),
    onActivated: { addListener: (look) => looking.add(look), removeListener: (look) => looking.delete(look) },
  },
};
globalThis.createImageBitmap = async () => ({ width: 1, height: 1 });
globalThis.OffscreenCanvas = class {
  constructor(width, height) {
    Object.assign(this, { width, height, getContext: () => ({ drawImage() {} }), convertToBlob: async () => new Blob(["x"]) });
  }
};

const { screenshot } = await import("../extension/page/read.js");
const run = { tab_id: 7, ended: null, waitLimit: () => 1000 };
const none = { reason: "not_painted", guarantee: "not_executed", hint: /tab_select/ };

test("a tab that another one came in front of is not shown by a picture of that one", async () => {
  assert.equal((await screenshot({}, run)).url, "https://a.example/");
  during = () => bring(8);
  await assert.rejects(screenshot({}, run), none);
  const taken = n_taken;
  await assert.rejects(screenshot({}, run), none);
  assert.equal(n_taken, taken, "nothing is taken of another tab");
  bring(7);
  // The user came back at once.
  during = () => (bring(8), bring(7));
  await assert.rejects(screenshot({}, run), none);
  assert.equal(looking.size, 0);
});
