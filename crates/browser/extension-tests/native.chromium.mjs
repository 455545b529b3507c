// The browser's own `document.modelContext`, as the world of the extension sees it [BROWSER-56, BROWSER-57], in a Chromium that
// is told to have it. Run on its own: `node --test native.chromium.mjs` with `chromium` on the PATH, or with CHROMIUM.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";

import { callDeclared, listDeclared } from "../extension/page/declared.js";
import { EXTENSION, launch, open } from "./chromium.mjs";

const LIMIT_MS = 120_000;
const PAGE = `<title>Native</title>
<form toolname="subscribe" tooldescription="Subscribes an address"><input name="mail" required toolparamdescription="Address"></form>
<script>
  window.n_called = 0;
  if (document.modelContext) {
    const { modelContext } = document;
    const schema = { type: "object", properties: { a: { type: "number" } } };
    modelContext.registerTool({ name: "add", description: "Adds one", inputSchema: schema, execute: async ({ a }) => (n_called++, { sum: a + 1 }) });
    modelContext.registerTool({ name: "fail", description: "Fails", execute: async () => { throw new Error("no"); } });
    // None of this is seen from the world of the extension.
    Object.defineProperty(document, "modelContext", { value: { getTools: async () => [{ name: "forged", description: "x" }] } });
    JSON.stringify = Promise.prototype.then = () => "taken";
  }
</script>`;

let [browser, web, page, tab_id, is_there] = [];

before(async () => {
  web = createServer((_, answer) => answer.writeHead(200, { "Content-Type": "text/html" }).end(PAGE)).listen(0, "127.0.0.1");
  await new Promise((done) => web.once("listening", done));
  browser = await launch(EXTENSION, ["--enable-features=WebMCPTesting"]);
  page = await open(browser, "status/status.html");
  tab_id = await page.run(`chrome.tabs.create({ url: "http://127.0.0.1:${web.address().port}/" }).then((tab) => tab.id)`);
  await until(() => page.run(`chrome.tabs.get(${tab_id}).then((tab) => tab.status === "complete" && tab.title === "Native")`));
  is_there = await inPage("MAIN", () => "ModelContext" in window, []);
});

after(async () => {
  await browser?.close();
  web?.close();
});

async function until(ask) {
  for (const since = Date.now(); ; await new Promise((done) => setTimeout(done, 20))) {
    const told = await ask();
    if (told) return told;
    if (Date.now() - since > LIMIT_MS) throw new Error(`it never came: ${ask}`);
  }
}

async function inPage(world, func, args) {
  return await page.run(`chrome.scripting.executeScript({ target: { tabId: ${tab_id} }, world: "${world}", func: ${func}, args: ${JSON.stringify(args)} }).then(([told]) => told.result)`);
}

test("the browser's own tools, and its forms, are listed whatever the page put in their place", async () => {
  const { is_native, tools, origin } = await inPage("ISOLATED", listDeclared, [true, false, 100]);
  assert.equal(is_native, is_there);
  assert.equal(origin, `http://127.0.0.1:${web.address().port}`);
  assert.deepEqual(tools.map((tool) => tool.name), is_there ? ["add", "fail", "subscribe"] : []);
});

test("they are called once, with what was listed, or not at all", async () => {
  const { tools } = await inPage("ISOLATED", listDeclared, [true, false, 100]);
  const call = async ({ way, name, description, schema }, input) => await inPage("ISOLATED", callDeclared, [{ way, name, description, schema: schema ?? null }, input, JSON.stringify(input), "key"]);
  for (const tool of tools.filter(({ name }) => name === "add")) {
    assert.equal((await call({ ...tool, description: "Other" }, { a: 1 })).changed, "other");
    assert.deepEqual(JSON.parse((await call(tool, { a: 2 })).value), { sum: 3 });
  }
  for (const tool of tools.filter(({ name }) => name === "fail")) assert.ok((await call(tool, {})).thrown);
  assert.equal(await inPage("MAIN", () => window.n_called, []), is_there ? 1 : 0);
});
