// Which downloads are told: those that began in tabs of commands, and nothing of what the person closed [BROWSER-64].

import assert from "node:assert/strict";
import { beforeEach, mock, test } from "node:test";

import { Area } from "./fakes.mjs";

let heard;
let items = [];
const event = { addListener() {} };
globalThis.chrome = {
  runtime: { onConnect: event },
  storage: { session: new Area() },
  debugger: { onEvent: { addListener: (listener) => (heard = listener) }, onDetach: event },
  runtime: { onConnect: event },
  downloads: { search: async () => items },
};

const { listDownloads, watchDownloads } = await import("../extension/tabs/downloads.js");
const { watchDebugger } = await import("../extension/tabs/sessions.js");
const { hasOpened, hear, noteOpened, noteTold, useTab } = await import("../extension/tabs/callers.js");
const { dropSettings, readSetting } = await import("../extension/tabs/settings.js");
const { setOrigins } = await import("../extension/status/origins.js");
watchDebugger();
watchDownloads();

const caller = { owner: "local", connection: "one" };
const run = { caller, ended: null, own_port: 7001, waitLimit: () => 0 };
const begun = (url) => heard({ tabId: 7 }, "Page.downloadWillBegin", { url });
const file = (id, url, more = {}) => ({ id, url, finalUrl: url, referrer: "", filename: `/home/me/${id}.pdf`, mime: "application/pdf", state: "complete", bytesReceived: 3, totalBytes: 3, startTime: new Date().toISOString(), ...more });
const close = (...closed) => setOrigins({ mode: "all_but", closed, open: [] }, { local: { set: async () => {} } });
const ids = async (wanted = {}) => (await listDownloads(wanted, run)).map((row) => row.download_id);
const later = (ms) => new Date(Date.now() + ms).toISOString();

beforeEach(async () => {
  items = [];
  await close();
  await dropSettings(() => true);
  await useTab(caller, 7);
});

test("a download is told to who works in its tab, and to nobody else of the same owner while those give commands", async () => {
  mock.timers.enable({ apis: ["Date"], now: Date.now() });
  try {
    const url = "https://open.example/a.pdf";
    const [other, stranger] = [{ owner: "local", connection: "two" }, { owner: "else", connection: "three" }];
    await hear(caller);
    begun(url);
    items = [file(1, url)];
    const idsOf = async (caller) => (await listDownloads({}, { ...run, caller })).map((row) => row.download_id);
    assert.deepEqual([await idsOf(caller), await idsOf(other), await idsOf(stranger)], [[1], [], []]);
    await assert.rejects(listDownloads({ id: "1" }, { ...run, caller: other }), { reason: "no_download" });
    // Its client has begun anew: it has another name.
    mock.timers.tick(11 * 60_000);
    assert.deepEqual([await idsOf(other), await idsOf(stranger)], [[1], []]);
    await useTab(stranger, 7);
    assert.deepEqual(await idsOf(stranger), [1]);
  } finally {
    mock.timers.reset();
  }
});

test("a file of a closed origin is not told, whichever way it came, nor given out by its id", async () => {
  const [open, bank] = ["https://open.example/a.pdf", "https://bank.example/statement.pdf"];
  items = [file(1, open), file(2, bank), file(3, `${open}?3`, { finalUrl: bank }), file(4, `${open}?4`, { referrer: "https://bank.example/" }), file(5, `blob:${bank}`)];
  for (const { url } of items) begun(url);
  assert.deepEqual(await ids(), [1, 2, 3, 4, 5]);
  await close("bank.example");
  assert.deepEqual(await ids(), [1]);
  for (const id of ["2", "3", "4", "5"]) await assert.rejects(listDownloads({ id }, run), { reason: "no_download", guarantee: "not_executed" });
});

test("nor one of the server's own listener, or of a metadata address", async () => {
  items = [file(1, "http://127.0.0.1:7001/poll"), file(2, "http://169.254.169.254/latest"), file(3, "http://127.0.0.1:7002/a")];
  for (const { url } of items) begun(url);
  assert.deepEqual(await ids(), [3]);
});

test("what was seen to begin once is one download: a later one of the same address is the person's own", async () => {
  const url = "https://open.example/a.pdf";
  begun(url);
  items = [file(3, url, { startTime: later(120_000) }), file(2, url, { startTime: later(20_000) }), file(1, url)];
  assert.deepEqual(await ids(), [1]);
  await assert.rejects(listDownloads({ id: "2" }, run), { reason: "no_download" });
  items = [file(3, url, { startTime: later(120_000) })];
  assert.deepEqual(await ids(), [], "also where the first is not listed any more");
});

test("of an owner whose name begins with another one's name nothing is that one's", async () => {
  const url = "https://open.example/a.pdf";
  const [one, inner] = ["https://issuer.example/#spiffe://d/a", "https://issuer.example/#spiffe://d/a/b"];
  for (const connection of ["c", undefined]) {
    await useTab({ owner: inner, connection }, 8);
    heard({ tabId: 8 }, "Page.downloadWillBegin", { url });
    items = [file(1, url)];
    const told = async (owner) => (await listDownloads({}, { ...run, caller: { owner, connection: "new" } })).length;
    assert.deepEqual([await told(one), await told(inner)], [0, 1]);
  }
  await noteOpened({ owner: inner, connection: "c" }, 8);
  assert.deepEqual([await hasOpened({ owner: one }, 8), await hasOpened({ owner: inner }, 8)], [false, true]);
  await noteOpened({ owner: "a/b" }, 8);
  assert.equal(await hasOpened({ owner: "a", connection: "b" }, 8), false);
});

test("what is noted of a download has a bound, however many worked in its tab", async () => {
  for (let n = 0; n < 200; n++) await noteTold({ owner: "local", connection: `${n}` }, 7, "https://open.example");
  const url = "https://open.example/a.pdf";
  begun(url);
  items = [file(1, url)];
  assert.deepEqual(await ids(), [1], "who works there now is among them");
  const [noted] = await readSetting("downloads", []);
  assert.ok(noted.by.length <= 16, `${noted.by.length} names`);
});
