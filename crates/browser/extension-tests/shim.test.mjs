// `document.modelContext` as it is given to pages of a browser that has none: it does as WebMCP says.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import vm from "node:vm";

const source = readFileSync(new URL("../extension/page/shim.js", import.meta.url), "utf8");

function page() {
  class Document {}
  class Navigator {}
  const globals = { isSecureContext: true, Document, Navigator, document: new Document(), navigator: new Navigator(), location: { origin: "https://a.example" }, AbortController, DOMException, Event, EventTarget };
  const context = vm.createContext(Object.assign(globals, { window: globals }));
  vm.runInContext(source, context);
  return context.document.modelContext;
}

test("a second tool of the same name is rejected as WebMCP says, and the first one stays", async () => {
  const context = page();
  const tool = (answer) => ({ name: "add", description: "Adds", execute: async () => answer });
  await context.registerTool(tool(1));
  await assert.rejects(context.registerTool(tool(2)), { name: "InvalidStateError" });
  assert.throws(() => context.provideContext({ tools: [tool(3), tool(4)] }), { name: "InvalidStateError" });
  const [registered, ...more] = await context.getTools();
  assert.equal(more.length, 0);
  assert.equal(await context.executeTool(registered, {}), "1");
});
