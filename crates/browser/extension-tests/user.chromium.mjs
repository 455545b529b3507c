// What the user does on the extension's page, as a client of `browser-mcp` sees it: a built server, a real
// Chromium and its extension. `node --test user.chromium.mjs`.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { ID, launch, open } from "./chromium.mjs";
import { serve, until } from "./server.mjs";

const FOREVER = "for (;;) {}";
const folder = mkdtempSync(join(tmpdir(), "raincheck-user-"));
let [server, browser, page, web, origin, tab_id] = [];

before(async () => {
  server = await serve(folder);
  browser = await launch(join(folder, "extension"));
  const other = () => `http://shop.localhost:${web.address().port}/frame`;
  const pages = { "/frame": () => "<p id=deep>inside", "/around": () => `<title>Around</title><p>outside<iframe src="${other()}"></iframe>` };
  const body = (path) => (pages[path] ?? (() => "<title>A page</title><p>words"))();
  web = createServer((asked, answer) => answer.writeHead(200, { "Content-Type": "text/html" }).end(body(asked.url))).listen(0, "127.0.0.1");
  await new Promise((done) => web.once("listening", done));
  origin = `http://127.0.0.1:${web.address().port}`;
  await until(async () => (await server.call("observe", { what: "health", wait_for_browser_ms: 20_000, wait_ms: 20_000 })).ok);
  ({ tab_id } = await server.end({ action: "tab_new", url: `${origin}/` }));
  page = await open(browser, "status/status.html");
});

after(async () => {
  await browser?.close();
  await server?.close();
  web?.close();
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
});

test("a stop on the page ends the command, says whose wish it was, and leaves the tab alive [BROWSER-26]", async () => {
  const begun = await server.call("interact", { action: "execute_js", script: FOREVER, tab_id, wait_ms: 0, timeout_ms: 120_000 });
  await page.until(`document.querySelector("#live .detail")?.textContent === ${JSON.stringify(FOREVER)} && !document.querySelector("#live .waits")`);
  assert.equal(await page.run(`chrome.action.getBadgeText({})`), "1");
  const { caller } = (await page.run(`chrome.runtime.sendMessage({ to: "worker", kind: "desk", ask: "state" })`)).live[0];
  assert.deepEqual([caller.owner, caller.n], ["local", 1]);
  await page.run(`document.querySelector("#live .stop").click()`);
  const { status, error_info } = await server.endOf(begun);
  assert.deepEqual([status, error_info.code, error_info.guarantee], ["error", "cancelled", "unknown"]);
  assert.match(error_info.message, /^the user stopped it/);
  assert.match(error_info.hint, /ask the user/);
  assert.equal((await server.end({ action: "execute_js", script: "6 * 7", tab_id })).result, 42);
  await page.until(`[...document.querySelectorAll("#recent .end")].some((one) => one.textContent === "stopped")`);
});

test("while it is paused commands are refused, also by a service worker that was started again [BROWSER-25]", async () => {
  await press("Pause");
  await page.send("ServiceWorker.enable");
  await page.send("ServiceWorker.stopAllWorkers");
  const { status, error_info } = await server.end({ action: "execute_js", script: "document.title = 'touched'", tab_id });
  assert.deepEqual([status, error_info.code, error_info.guarantee, error_info.details?.reason], ["error", "peer_not_ready", "not_executed", "paused"]);
  assert.match(error_info.hint, /Resume/);
  await page.until(`document.querySelector("#notice-title").textContent === "Paused"`);
  assert.equal(await page.run(`chrome.action.getBadgeText({})`), "II");
  await press("Resume");
  assert.equal((await server.end({ action: "execute_js", script: "document.title", tab_id })).result, "A page");
});

test("stop all pauses first: what waits in the server's line does not follow", async () => {
  const script = (n) => ({ action: "execute_js", script: n === 0 ? FOREVER : "document.title = 'touched'", tab_id, wait_ms: 0, timeout_ms: 120_000 });
  const begun = [];
  for (let n = 0; n < 4; n++) begun.push(await server.call("interact", script(n)));
  await page.until(`document.querySelector("#live .detail")?.textContent === ${JSON.stringify(FOREVER)} && !document.querySelector("#live .waits")`);
  await press("Stop all and pause");
  const reasons = [];
  for (const one of begun) reasons.push((await server.endOf(one)).error_info.details?.reason);
  assert.deepEqual(reasons, ["stopped_by_user", "paused", "paused", "paused"]);
  await press("Resume");
  assert.equal((await server.end({ action: "execute_js", script: "document.title", tab_id })).result, "A page");
});

test("a closed site is left alone, and not even its title is told [BROWSER-27]", async () => {
  await closeSites("127.0.0.1");
  for (const call of [
    { action: "execute_js", script: "document.body.textContent", tab_id },
    { action: "tab_close", tab_id },
    { what: "page_text", tab_id },
    { action: "tab_new", url: `${origin}/new` },
  ]) {
    const { status, error_info } = await server.end(call);
    assert.deepEqual([status, error_info.code, error_info.guarantee, error_info.details?.reason], ["error", "url_blocked", "not_executed", "origin_closed"], JSON.stringify(call));
  }
  const tabs = await server.end({ what: "tabs" });
  assert.ok(!JSON.stringify(tabs).includes("A page"), JSON.stringify(tabs));
  await closeSites("");
  assert.match(JSON.stringify((await server.end({ what: "page_text", tab_id })).result), /words/);
  assert.deepEqual(page.faults, []);
});

test("a frame of a closed site in another page is not read [BROWSER-27]", async () => {
  const { tab_id: around } = await server.end({ action: "tab_new", url: `${origin}/around` });
  const read = async (what) => JSON.stringify((await server.end({ what, tab_id: around })).result);
  await until(async () => (await read("page_text")).includes("inside"));
  const click = { action: "click", selector: "#deep", tab_id: around, timeout_ms: 60_000 };
  assert.equal((await server.end(click)).status, "complete");
  await closeSites("shop.localhost");
  for (const what of ["page_text", "snapshot"]) {
    const said = await read(what);
    assert.deepEqual([said.includes("outside"), said.includes("inside"), said.includes("closed to commands by the user")], [true, false, true], said);
  }
  assert.equal((await server.end(click)).error_info.guarantee, "not_executed");
  await closeSites("");
});

test("pages that commands cannot look into are told at once by their kind [BROWSER-36]", async () => {
  const shown = async (url) => {
    const before = new Set((await server.end({ what: "tabs" })).result.map((row) => row.tab_id));
    const { targetId } = await browser.send("Target.createTarget", { url });
    let row;
    await until(async () => (row = (await server.end({ what: "tabs" })).result.find((one) => !before.has(one.tab_id) && one.status === "complete")));
    return { tab_id: row.tab_id, close: () => browser.send("Target.closeTarget", { targetId }) };
  };
  for (const [url, reason, way_on] of [
    [`view-source:${origin}/`, "view_source", /execute_js/],
    ["chrome://version/", "browser_page", /navigate/],
    [`chrome-extension://${ID}/icons/icon.svg`, "extension_page", /navigate/],
  ]) {
    const tab = await shown(url);
    for (const call of [{ what: "snapshot" }, { what: "page_text" }, { action: "click", selector: "a" }, { action: "execute_js", script: "1" }]) {
      const { status, error_info } = await server.end({ ...call, tab_id: tab.tab_id });
      assert.deepEqual([status, error_info.guarantee, error_info.details?.reason], ["error", "not_executed", reason], `${url}: ${JSON.stringify(call)}`);
      assert.match(error_info.hint, way_on);
    }
    // The way on works from there.
    assert.equal((await server.end({ action: "navigate", url: `${origin}/`, tab_id: tab.tab_id })).status, "complete", url);
    assert.match(JSON.stringify((await server.end({ what: "page_text", tab_id: tab.tab_id })).result), /words/);
    await tab.close();
  }
  // No certificate to be had there.
  const { tab_id: warned } = await server.end({ action: "tab_new" });
  await server.end({ action: "navigate", url: origin.replace("http:", "https:"), tab_id: warned });
  const { error_info } = await server.end({ what: "snapshot", tab_id: warned });
  assert.deepEqual([error_info.guarantee, error_info.details?.reason], ["not_executed", "certificate_page"]);
  await server.end({ action: "tab_close", tab_id: warned });
});

test("with several profiles a tab finds its browser, and health names each [BROWSER-7]", async () => {
  const other = await launch(join(folder, "extension"));
  try {
    let known = [];
    const until_ms = Date.now() + 120_000;
    while (known.length !== 2 && Date.now() < until_ms) {
      await new Promise((done) => setTimeout(done, 50));
      known = (await server.call("observe", { what: "health" })).browsers.filter((one) => one.connected);
    }
    assert.equal(known.length, 2);
    const opened = [];
    for (const { browser_id } of known) opened.push((await server.end({ action: "tab_new", url: `${origin}/?${browser_id}`, browser_id })).tab_id);
    assert.ok(opened.every(Number.isInteger), JSON.stringify(opened));
    for (let round = 0; round < 2; round++) {
      for (const [n, { browser_id }] of known.entries()) {
        const { result } = await server.end({ action: "execute_js", script: "location.search", tab_id: opened[n] });
        assert.equal(result, `?${browser_id}`);
      }
    }
  } finally {
    await other.close();
  }
});

// ---- the page ----------------------------------------------------------------

async function press(words) {
  const button = `[...document.querySelectorAll("button")].find((one) => one.textContent === ${JSON.stringify(words)} && one.checkVisibility() && !one.disabled)`;
  await page.until(`${button} !== undefined`);
  await page.run(`${button}.click()`);
  const is_paused = words !== "Resume";
  await page.until(`document.querySelector("#notice").hidden !== ${is_paused}`);
}

async function closeSites(sites) {
  await page.run(`(() => {
    document.querySelector("#closed-list").value = ${JSON.stringify(sites)};
    document.querySelector("#origins").dispatchEvent(new Event("input", { bubbles: true }));
    document.querySelector("#origins-save").click();
  })()`);
  await page.until(`document.querySelector("#origins-saved").textContent === "Saved"`);
}
