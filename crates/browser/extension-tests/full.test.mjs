// A browser whose storage for this session is full: what is not stored is not known either, and takes nothing else along.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Area } from "./fakes.mjs";

const area = new Area();
const heard = { onEvent: [], onDetach: [] };
const at = (name) => ({ addListener: (listen) => heard[name].push(listen) });
const items = ["a", "b"].map((name, n) => ({ id: n, url: `https://a.example/${name}`, finalUrl: `https://a.example/${name}`, filename: `/d/${name}`, state: "complete", startTime: new Date(Date.now() + 1000).toISOString(), totalBytes: -1, bytesReceived: 1 }));
globalThis.chrome = { storage: { session: area }, debugger: { onEvent: at("onEvent"), onDetach: at("onDetach") }, downloads: { search: async () => items } };
const { readSetting, writeSetting } = await import("../extension/tabs/settings.js");
const { listDownloads } = await import("../extension/tabs/downloads.js");
const { hear, useTab } = await import("../extension/tabs/callers.js");
const { noteDownload } = await import("../extension/tabs/downloads.js");

test("what the storage refused is not read back", async () => {
  await writeSetting("name", "old");
  area.max_bytes = 10;
  await assert.rejects(writeSetting("name", "new"));
  area.max_bytes = Infinity;
  assert.equal(await readSetting("name", null), "old");
});

test("after one download that could not be noted the next ones are [BROWSER-49]", async () => {
  const caller = { owner: "local", connection: "one" };
  await useTab(caller, 7);
  area.max_bytes = 10;
  noteDownload(7, "https://a.example/a");
  await new Promise((done) => setImmediate(done));
  area.max_bytes = Infinity;
  noteDownload(7, "https://a.example/b");
  assert.deepEqual((await listDownloads({}, { caller })).map((row) => row.file_name), ["b"]);
});

test("that a caller was heard of is not worth a command", async () => {
  area.max_bytes = 10;
  await hear({ owner: "local", connection: "two" });
  area.max_bytes = Infinity;
});
