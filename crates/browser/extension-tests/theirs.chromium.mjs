// What is the user's own, and a developer's, in tabs that commands work in, as a client of `browser-mcp` sees it: a built
// server, a real Chromium and its extension. `node --test theirs.chromium.mjs`.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { launch, open } from "./chromium.mjs";
import { serve, until } from "./server.mjs";

const PAGE = `<title>A page</title><p>words</p><button onclick="document.title = 'clicked'">press</button><input value="a draft">
  <script>
    window.n_past = 0;
    const stop = () => { window.is_in = true; debugger; n_past++; };
  </script>`;
const folder = mkdtempSync(join(tmpdir(), "raincheck-theirs-"));
let [server, browser, page, web, origin] = [];

before(async () => {
  server = await serve(folder);
  web = createServer((_, answer) => answer.writeHead(200, { "Content-Type": "text/html" }).end(PAGE)).listen(0, "127.0.0.1");
  await new Promise((done) => web.once("listening", done));
  origin = `http://127.0.0.1:${web.address().port}`;
  // Stands for the metadata service of a cloud.
  browser = await launch(join(folder, "extension"), [`--host-resolver-rules=MAP 169.254.169.254:80 127.0.0.1:${web.address().port}`]);
  await until(async () => (await server.call("observe", { what: "health", wait_for_browser_ms: 20_000, wait_ms: 20_000 })).ok);
  page = await open(browser, "status/status.html");
});

after(async () => {
  await browser?.close();
  await server?.close();
  web?.close();
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
});

test("a pause of a developer's is not resumed, while none is at work there nor by what is at work elsewhere [BROWSER-22]", async () => {
  const [theirs, beside] = [await tab("paused"), await tab("beside")];
  await server.end({ what: "page_text", tab_id: theirs.tab_id });
  const seen = [];
  const developer = await theirs.inspect(({ method }) => seen.push(method));
  await developer("Debugger.enable");
  await developer("Runtime.evaluate", { expression: "setTimeout(stop); 1" });
  await until(async () => (await script(beside, "1"), seen.includes("Debugger.paused")));
  for (let n = 0; n < 5; n++) await script(beside, "1");
  assert.ok(!seen.includes("Debugger.resumed"), seen.join());
  await developer("Debugger.resume");
  await until(async () => (await developer("Runtime.evaluate", { expression: "n_past" })).result.value === 1);
  await developer("Debugger.disable");
  // A page's own `debugger` holds up no command.
  assert.equal((await script(theirs, "stop(); n_past")).result, 2);
});

test("the debugger lets a tab go at once when DevTools of it are opened, and nothing resumes their pauses [BROWSER-22]", async () => {
  const [theirs, beside] = [await tab("inspected"), await tab("beside them")];
  const { tab_id, target_id } = theirs;
  const begun = await server.call("interact", { action: "execute_js", script: "await new Promise(() => {})", tab_id, wait_ms: 0, timeout_ms: 120_000 });
  await until(async () => (await server.call("observe", { what: "command_result", correlation_id: begun.correlation_id, wait_ms: 100 })).status === "pending" && (await isOurs(tab_id)));
  const { targetId: tools } = await browser.send("Target.openDevTools", { targetId: target_id });
  const { error_info } = await server.endOf(begun);
  assert.deepEqual([error_info.guarantee, error_info.details?.reason], ["unknown", "debugger_taken"]);
  // Without the debugger, or not at all.
  assert.equal((await server.end({ action: "execute_js", script: "document.title", tab_id })).engine, "scripting");
  const clicked = await server.end({ action: "click", selector: "button", tab_id });
  assert.deepEqual([clicked.status, clicked.result?.input], ["complete", "events"]);
  assert.match(JSON.stringify((await server.end({ what: "page_text", tab_id })).result), /words/);
  for (const call of [{ what: "pdf" }, { action: "wait_for", network_idle: true }]) {
    const refused = await server.end({ ...call, tab_id });
    assert.deepEqual([refused.error_info?.guarantee, refused.error_info?.details?.reason], ["not_executed", "devtools_open"], JSON.stringify(refused));
  }
  const developer = await theirs.inspect(() => {});
  const of = async (expression) => (await developer("Runtime.evaluate", { expression })).result.value;
  await of("setTimeout(stop)");
  await until(async () => await of("window.is_in === true"));
  for (let n = 0; n < 5; n++) await script(beside, "1");
  assert.equal(await of("n_past"), 0);
  await browser.send("Target.closeTarget", { targetId: tools });
  await until(async () => (await of("n_past")) === 1);
  await until(async () => (await server.end({ action: "execute_js", script: "document.title", tab_id })).engine === "debugger");
});

test("the debugger lets a tab go soon after its last command [BROWSER-22]", async () => {
  const { tab_id } = await tab("let go");
  await server.end({ what: "page_text", tab_id });
  assert.ok(await isOurs(tab_id));
  const since = Date.now();
  while ((await isOurs(tab_id)) && Date.now() - since < 60_000) await new Promise((done) => setTimeout(done, 100));
  assert.ok(!(await isOurs(tab_id)));
});

test("what a metadata address showed is read by nothing, also where a page led there late [BROWSER-16]", async () => {
  const { tab_id } = await tab("led away");
  const begun = await server.end({ action: "execute_js", script: "setTimeout(() => (location.href = 'http://169.254.169.254/latest'), 0); 1", tab_id });
  assert.equal(begun.status, "complete", JSON.stringify(begun));
  await page.until(`chrome.tabs.get(${tab_id}).then((tab) => tab.status === "complete" && tab.url.startsWith("http://169.254."))`);
  for (const call of [{ action: "execute_js", script: "document.body.innerText" }, { what: "page_text" }, { what: "snapshot" }, { what: "screenshot" }, { what: "pdf" }]) {
    const refused = await server.end({ ...call, tab_id });
    assert.deepEqual([refused.error_info?.code, refused.error_info?.guarantee], ["url_blocked", "not_executed"], JSON.stringify(refused).slice(0, 2000));
    assert.ok(!JSON.stringify(refused).includes("words"));
  }
  // Nor in a frame of another page.
  const { tab_id: around } = await tab("around");
  const put = "new Promise((done) => { const frame = document.createElement('iframe'); frame.onload = () => done(1); frame.src = 'http://169.254.169.254/framed'; document.body.replaceChildren('outside', frame); })";
  assert.equal((await server.end({ action: "execute_js", script: put, tab_id: around })).result, 1);
  for (const what of ["page_text", "snapshot"]) {
    const { result } = await server.end({ what, tab_id: around });
    assert.match(result.text, /outside/);
    assert.doesNotMatch(result.text, /words|press/);
    assert.match(JSON.stringify(result.left_out), /metadata address/);
  }
});

// ---- tabs --------------------------------------------------------------------------------

/** Opens a tab, in front: `{tab_id, target_id, inspect}`. */
async function tab(name) {
  const { tab_id } = await server.end({ action: "tab_new", url: `${origin}/?${encodeURIComponent(name)}`, background: false });
  const { targetInfos } = await browser.send("Target.getTargets");
  const { targetId } = targetInfos.find(({ url }) => url === `${origin}/?${encodeURIComponent(name)}`);
  /** A session of another debugger beside that of the extension. */
  const inspect = async (listener) => {
    const { sessionId } = await browser.send("Target.attachToTarget", { targetId, flatten: true });
    browser.listeners.add((message) => message.sessionId === sessionId && listener(message));
    return (method, params) => browser.send(method, params, sessionId);
  };
  return { tab_id, target_id: targetId, inspect };
}

async function script({ tab_id }, text) {
  return await server.end({ action: "execute_js", script: text, tab_id });
}

/** Whether the extension's debugger is in a tab. */
async function isOurs(tab_id) {
  return await page.run(`chrome.debugger.sendCommand({ tabId: ${tab_id} }, "Page.getNavigationHistory").then(() => true, () => false)`);
}
