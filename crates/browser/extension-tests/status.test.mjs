// Parts of the extension's page: the list of the last commands, rules for origins, words, icons.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { inflateSync } from "node:zlib";

import { hasRules, readRule, setOrigins, shown, whyClosed, whyFrameClosed } from "../extension/status/origins.js";
import { Recent, detailOf } from "../extension/status/recent.js";
import { askerOf, clock, endOf, hostOf, lasting, linkOf, noticeOf, span } from "../extension/status/words.js";
import { record, sendEventsWith, sendNow } from "../extension/tabs/observed.js";
import { SIZES, pixels, svg } from "./draw-icons.mjs";
import { Area, command } from "./fakes.mjs";

const isOpen = () => true;
const end = (id, status = "complete", more = {}) => ({ correlation_id: id, status, ...more });

function list() {
  const later = [];
  const area = new Area();
  const recent = new Recent(area, { now: () => 5, later: (work) => later.push(work) });
  return { area, recent, flush: () => Promise.all(later.splice(0).map((work) => work())) };
}

test("the last fifty commands are kept, the newest first, and one that runs is not pushed out", async () => {
  const { recent } = list();
  recent.delivered(command("runs"));
  for (let n = 0; n < 60; n++) {
    recent.delivered(command(`c${n}`));
    recent.told([end(`c${n}`)]);
  }
  const rows = recent.list(isOpen);
  assert.deepEqual([rows.length, rows[0].id, rows.at(-1).id], [50, "c59", "runs"]);
});

test("the list outlives the service worker, and is written once for many changes", async () => {
  const { area, recent, flush } = list();
  let n_writes = 0;
  const set = area.set.bind(area);
  area.set = async (more) => (n_writes++, await set(more));
  for (let n = 0; n < 20; n++) recent.delivered(command(`c${n}`));
  await flush();
  const next = new Recent(area);
  await next.load();
  assert.deepEqual([n_writes, next.list(isOpen).length], [1, 20]);
});

test("the first end counts, interim words are none, and what the server gave up is told so", () => {
  const { recent } = list();
  for (const id of ["a", "b"]) recent.delivered(command(id));
  recent.told([end("a", "accepted"), end("a", "pending"), end("a", "progress")]);
  assert.equal(recent.list(isOpen)[1].end, undefined);
  recent.told([end("a", "timeout", { error: { code: "execution_timeout", message: "too long" } })]);
  recent.told([end("a", "complete")]);
  const rows = recent.list((id) => id !== "b");
  assert.deepEqual(rows.map((row) => [row.id, row.end, row.message]), [["b", "dropped", undefined], ["a", "timeout", "too long"]]);
  recent.delivered(command("a"));
  assert.equal(recent.list(isOpen).find((row) => row.id === "a").end, "timeout", "the same attempt once more");
  recent.delivered(command("a", { attempt: 2 }));
  assert.equal(recent.list(isOpen)[0].end, undefined, "a new attempt");
});

test("callers are told apart by numbers that stay", () => {
  const { recent } = list();
  for (const [id, caller] of [["a", { owner: "local", connection: "x" }], ["b", { owner: "local", connection: "y" }], ["c", { owner: "local", connection: "x" }], ["d", undefined]]) {
    recent.delivered(command(id, { caller }));
  }
  assert.deepEqual(recent.list(isOpen).map((row) => row.caller.n), [3, 1, 2, 1]);
  assert.deepEqual([askerOf({ owner: "local", n: 1 }, 1), askerOf({ owner: "local", n: 2 }, 2), askerOf({ owner: "ann", n: 1 }, 1)], ["", "client 2", "ann"]);
});

test("what is typed is counted and not kept [BROWSER-28]", () => {
  for (const [params, told] of [
    [{ action: "fill", selector: "#pw", text: "hunter2" }, "#pw · 7 characters"],
    [{ action: "type", ref: "e3", text: "x" }, "e3 · 1 character"],
    [{ action: "select", ref: "e3", value: "secret" }, "e3 · 6 characters"],
    [{ action: "press", key: "s" }, "one character"],
    [{ action: "press", key: "Shift+s" }, "one character"],
    [{ action: "press", key: "Space" }, "one character"],
    [{ action: "press", key: "hunter2" }, "7 characters"],
    [{ action: "press", key: "Control+Shift+K" }, "Control+Shift+K"],
    [{ action: "press", key: "Enter" }, "Enter"],
    [{ action: "wait_for", text: "Thank you" }, "“Thank you”"],
    [{ action: "execute_js", script: "1 +\n  1" }, "1 + 1"],
    [{ action: "navigate", url: "https://a.example/" }, "https://a.example/"],
    [{ action: "dialog", accept: false, text: "hunter2" }, "7 characters · dismiss"],
    [{ what: "tabs" }, ""],
  ]) assert.equal(detailOf(params), told);
  assert.ok(detailOf({ action: "execute_js", script: "x".repeat(5000) }).length <= 200);
});

test("a rule is a host with its subdomains, a host with a port, or an origin", async () => {
  for (const [typed, rule] of [
    [" Example.COM ", "example.com"],
    ["*.example.com", "example.com"],
    ["localhost:5173", "localhost:5173"],
    ["example.com:443", "example.com:443"],
    ["https://example.com:8443/path", "https://example.com:8443"],
    ["bücher.example", "xn--bcher-kva.example"],
    ["[::1]", "[::1]"],
    ["a/b", null],
    ["a b", null],
    ["a.*.example", null],
    ["user@example.com", null],
    ["about:blank", null],
  ]) assert.equal(readRule(typed), rule, typed);
});

test("closed pages are closed in every spelling, and open ones alone are open when it is so [BROWSER-27]", async () => {
  const storage = { local: new Area() };
  await setOrigins({ mode: "all_but", closed: ["bank.example", "localhost:5173", "https://mail.example", ""], open: [] }, storage);
  for (const [address, is_closed] of [
    ["https://bank.example/", true],
    ["https://www.bank.example:8443/a", true],
    ["https://bank.example./", true],
    ["view-source:https://bank.example/", true],
    ["blob:https://bank.example/1", true],
    ["https://notbank.example/", false],
    ["https://bank.example.evil.example/", false],
    ["http://localhost:5173/", true],
    ["http://localhost:5174/", false],
    ["https://mail.example/", true],
    ["http://mail.example/", false],
    ["about:blank", false],
  ]) assert.equal(whyClosed(address) !== null, is_closed, address);
  assert.deepEqual(shown("https://bank.example/", "Balance: 5"), { url: "", title: "", closed_by_user: true });
  await setOrigins({ mode: "only", closed: ["admin.example.com"], open: ["example.com"] }, storage);
  for (const [address, is_closed] of [
    ["https://www.example.com/", false],
    ["https://admin.example.com/", true],
    ["https://other.example/", true],
    ["file:///etc/passwd", true],
    ["data:text/html,x", true],
    ["about:blank", false],
  ]) assert.equal(whyClosed(address) !== null, is_closed, address);
  await assert.rejects(setOrigins({ mode: "only", closed: ["a b"], open: [] }, storage), /a b/);
  await setOrigins({ mode: "all_but", closed: [], open: [] }, storage);
  assert.equal(hasRules(), false);
});

test("a frame of a closed origin is closed, and what is inside it; other frames are not [BROWSER-27]", async () => {
  const storage = { local: new Area() };
  const frames = [
    { frameId: 0, parentFrameId: -1, url: "https://open.example/" },
    { frameId: 4, parentFrameId: 0, url: "https://bank.example/widget" },
    { frameId: 5, parentFrameId: 4, url: "about:srcdoc" },
    { frameId: 6, parentFrameId: 0, url: "about:srcdoc" },
  ];
  globalThis.chrome = { webNavigation: { getAllFrames: async () => frames } };
  const closed = async () => await Promise.all([0, 4, 5, 6, 9].map(async (id) => (await whyFrameClosed(1, id)) !== null));
  assert.deepEqual(await closed(), [false, false, false, false, false]);
  await setOrigins({ mode: "all_but", closed: ["bank.example"], open: [] }, storage);
  assert.deepEqual(await closed(), [false, true, true, false, false]);
  await setOrigins({ mode: "only", closed: [], open: ["other.example"] }, storage);
  assert.deepEqual(await closed(), [true, true, true, true, false]);
  await setOrigins({ mode: "all_but", closed: [], open: [] }, storage);
});

test("what happens on a closed page is not recorded [BROWSER-27]", async () => {
  const storage = { local: new Area() };
  await setOrigins({ mode: "all_but", closed: ["bank.example"], open: [] }, storage);
  const sent = [];
  sendEventsWith(async (batch) => (sent.push(...batch), 200));
  for (const url of ["https://bank.example/balance", "https://open.example/"]) record({ kind: "navigation", tab_id: 1, url });
  record({ kind: "tab", tab_id: 1, event: "updated", url: "https://bank.example/", title: "Balance: 5" });
  await sendNow(60_000);
  assert.deepEqual(sent.map(({ kind, event, url, title }) => [kind, event, url, title]), [["navigation", undefined, "https://open.example/", undefined], ["tab", "updated", undefined, undefined]]);
  await setOrigins({ mode: "all_but", closed: [], open: [] }, storage);
});

test("spans, times and hosts as people read them", () => {
  assert.deepEqual([0, 40, 999.4, 1240, 9949, 9999, 59_400, 120_000, 185_000, 7_800_000].map(span), ["0 ms", "40 ms", "999 ms", "1.2 s", "9.9 s", "10 s", "59 s", "2 min", "3 min 05 s", "2 h 10 min"]);
  assert.deepEqual([400, 3999, 14_000].map(lasting), ["just now", "3 s", "14 s"]);
  assert.equal(span(undefined), "");
  assert.deepEqual(["https://a.example:8/x", "about:blank", "", undefined].map(hostOf), ["a.example:8", "about", "", ""]);
  const noon = new Date(2026, 10, 29, 12, 4, 5).getTime();
  assert.equal(clock(noon, noon, "en-GB"), "12:04:05");
  assert.match(clock(noon, noon + 86_400_000, "en-GB"), /29 Nov.*12:04:05/);
});

test("each state of the link has words, and each that needs the user a next step", () => {
  for (const state of ["refused", "incompatible", "disconnected"]) {
    assert.equal(linkOf({ state })[0], "bad");
    assert.match(noticeOf({ state }, null, 0).words, /browser-mcp/);
  }
  assert.deepEqual([linkOf({ state: "connected", name: "browser-mcp" })[0], noticeOf({ state: "connected" }, null, 0)], ["good", null]);
  assert.match(noticeOf({ state: "connected" }, 1, 2).words, /resume.*stop/);
});

test("what the user stopped or closed is told apart from what failed", () => {
  for (const [row, told] of [
    [{ end: "error", reason: "stopped_by_user" }, ["stopped", "calm"]],
    [{ end: "error", reason: "paused" }, ["refused", "calm"]],
    [{ end: "error", reason: "toString" }, ["failed", "bad"]],
    [{ end: "error" }, ["failed", "bad"]],
    [{ end: "cancelled" }, ["cancelled", "calm"]],
    [{ end: "complete" }, ["done", "good"]],
  ]) assert.deepEqual(endOf(row), told);
});

test("no word of a page becomes markup [BROWSER-28]", () => {
  const folder = new URL("../extension/status/", import.meta.url);
  for (const name of ["status.js", "lists.js"]) {
    const source = readFileSync(new URL(name, folder), "utf8");
    assert.doesNotMatch(source, /innerHTML|outerHTML|insertAdjacent|document\.write|srcdoc|DOMParser|setHTML/, name);
  }
  const html = readFileSync(new URL("status.html", folder), "utf8");
  assert.doesNotMatch(html, /(?:src|href)="[\w-]*:|\son\w+=|<style|style=/, "nothing from outside, nothing inline");
  assert.doesNotMatch(readFileSync(new URL("status.css", folder), "utf8"), /url\(|@import/);
});

test("the icons are those that the script draws", () => {
  const folder = new URL("../extension/icons/", import.meta.url);
  assert.equal(readFileSync(new URL("icon.svg", folder), "utf8"), svg());
  for (const size of SIZES) {
    const file = readFileSync(new URL(`icon-${size}.png`, folder));
    const at = file.indexOf("IDAT");
    const lines = inflateSync(file.subarray(at + 4, at + 4 + file.readUInt32BE(at - 4)));
    const drawn = pixels(size);
    const width = size * 4 + 1;
    assert.equal(lines.length, width * size);
    for (let y = 0; y < size; y++) assert.ok(lines.subarray(y * width + 1, (y + 1) * width).equals(drawn.subarray(y * size * 4, (y + 1) * size * 4)), `${size}: line ${y}`);
  }
});
