// The tools that a page declares [BROWSER-56, BROWSER-57]: what is told of them is bounded, and a call is bound to what was told.

import assert from "node:assert/strict";
import { test } from "node:test";

import { abortDeclared, callDeclared, listDeclared } from "../extension/page/declared.js";
import { choose, hashOf, pageTools, shownTools } from "../extension/page/tools.js";
import { Run } from "../extension/commands/run.js";

const ORIGIN = "https://a.example";
const schema = { type: "object", properties: { a: { type: "number" } } };
const add = { name: "add", description: "Adds", schema };

async function listed(tools, frame_id = 0, origin = ORIGIN) {
  return { frame_id, origin, tools: await Promise.all(tools.map(async (tool) => ({ origin, ...tool, schema_hash: await hashOf(tool) }))) };
}

test("a hash is the same in whatever order members stand, and another one for another word", async () => {
  const hash = await hashOf(add);
  assert.match(hash, /^[0-9a-f]{32}$/);
  assert.equal(await hashOf({ schema: { properties: schema.properties, type: "object" }, description: "Adds", name: "add" }), hash);
  for (const other of [{ description: "Adds." }, { name: "Add" }, { schema: { type: "object" } }, { annotations: { readOnlyHint: true } }, { title: "x" }]) {
    assert.notEqual(await hashOf({ ...add, ...other }), hash);
  }
});

test("a list is bounded in number and in characters, and says what is missing", async () => {
  const many = await listed(Array.from({ length: 150 }, (_, n) => ({ ...add, name: `add${n}` })));
  const { tools, left_out } = shownTools([many]);
  assert.equal(tools.length, 100);
  assert.match(left_out[0], /^50 tools/);

  const long = await listed(Array.from({ length: 90 }, (_, n) => ({ name: `t${n}`, description: "x".repeat(5000) })));
  const told = shownTools([long]);
  assert.ok(JSON.stringify(told).length < 50_000);
  assert.match(told.tools[0].description, /\[cut: 4000 more characters\]$/);
  assert.match(told.left_out[0], /^\d+ tools/);

  const large = await listed([{ name: "large", schema: { enum: Array(9000).fill("x") } }, { name: "huge", schema: { enum: Array(90_000).fill("x") } }]);
  const shown = shownTools([large]);
  assert.equal(shown.tools[0].schema, undefined);
  assert.ok(shown.tools[0].schema_chars > 8000);
  assert.match(shown.left_out[0], /^1 tools: .*too long/);
});

test("a call means the tool that was listed, or none", async () => {
  const page = await listed([add]);
  const { schema_hash } = page.tools[0];
  const asked = { name: "add", origin: ORIGIN, schema_hash };
  assert.equal(choose([page], asked).frame_id, 0);
  const changed = await listed([{ ...add, description: "Deletes" }]);
  const moved = await listed([add], 0, "https://b.example");
  const frames = [await listed([add], 3), await listed([add], 5)];
  for (const [documents, reason] of [
    [[], "no_page_tool"],
    [[changed], "page_tool_changed"],
    [[moved], "page_tool_origin"],
    [frames, "page_tool_ambiguous"],
  ]) {
    assert.throws(() => choose(documents, asked), { reason, guarantee: "not_executed" });
  }
  // The page's own comes before those of frames.
  assert.equal(choose([page, ...frames], asked).frame_id, 0);
  assert.equal(choose([changed, frames[0]], asked).frame_id, 3);
  // What is too large to be bound is never called, whatever hash is passed.
  const huge = { ...page, tools: [{ ...page.tools[0], schema_hash: null }] };
  for (const given of [null, undefined, schema_hash]) assert.throws(() => choose([huge], { ...asked, schema_hash: given }), { reason: "page_tool_changed" });
});

/** A page whose own `modelContext` has these tools, as the two functions see it. */
function pageOf(context, testing) {
  const before = Object.getOwnPropertyDescriptor(globalThis, "navigator");
  Object.defineProperty(globalThis, "navigator", { configurable: true, value: { modelContextTesting: testing } });
  Object.assign(globalThis, { self: { origin: ORIGIN }, window: globalThis, document: { modelContext: context } });
  return () => {
    if (before) Object.defineProperty(globalThis, "navigator", before);
    else delete globalThis.navigator;
    for (const name of ["self", "window", "document"]) delete globalThis[name];
  };
}

test("every draft's way to list and to call is known, and a tool that changed is not called", async () => {
  const text = JSON.stringify(schema);
  const called = [];
  const execute = async (input) => (called.push(input), JSON.stringify({ sum: input.a + 1 }));
  const tool = { name: "add", description: "Adds", inputSchema: schema };
  const ways = {
    objects: [{ getTools: async () => [tool], executeTool: async (_, input) => execute(JSON.parse(JSON.stringify(input))) }],
    texts: [{ getTools: async () => [{ ...tool, inputSchema: text }], executeTool: async (_, input) => execute(JSON.parse(input)) }],
    "as a server": [{ listTools: () => ({ tools: [tool] }), callTool: async ({ arguments: input }) => execute(input) }],
    "for tests": [undefined, { listTools: () => [{ ...tool, inputSchema: text }], executeTool: async (_, input) => execute(JSON.parse(input)) }],
  };
  for (const [name, [context, testing]] of Object.entries(ways)) {
    const leave = pageOf(context, testing);
    const told = await listDeclared(false, false, 10);
    assert.deepEqual(told.tools.map((one) => one.name), ["add"], name);
    const [{ way, description, schema: given }] = told.tools;
    const wanted = { way, name: "add", description, schema: given };
    assert.deepEqual(await callDeclared(wanted, { a: 2 }, '{"a":2}', "key"), { value: '{"sum":3}' }, name);
    const n = called.length;
    assert.deepEqual(await callDeclared({ ...wanted, description: "Other" }, { a: 2 }, '{"a":2}', "key"), { changed: "other" }, name);
    assert.deepEqual(await callDeclared({ ...wanted, schema: { type: "object" } }, { a: 2 }, '{"a":2}', "key"), { changed: "other" }, name);
    assert.deepEqual(await callDeclared({ ...wanted, name: "none" }, { a: 2 }, '{"a":2}', "key"), { changed: "gone" }, name);
    assert.equal(called.length, n, name);
    leave();
  }
});

test("a list is cut off in the page already, and a context that fails is said", async () => {
  let leave = pageOf({ getTools: async () => Array.from({ length: 7 }, (_, n) => ({ name: `t${n}`, description: "x" })) });
  const told = await listDeclared(false, false, 3);
  assert.deepEqual([told.tools.length, told.n_more], [3, 4]);
  leave();
  leave = pageOf({ getTools: async () => { throw new Error("no"); } });
  assert.equal((await listDeclared(false, false, 3)).error, "no");
  leave();
});

/** A tab whose page declares `add`; `answer()` is what its document does when a tool is called. */
function tabOf(answer, told = [], more = []) {
  const onCommitted = { addListener() {}, removeListener() {} };
  const tools = [{ way: "document", name: "add", description: "Adds", schema }];
  globalThis.chrome = {
    tabs: { get: async () => ({ url: `${ORIGIN}/` }) },
    webNavigation: { onCommitted, getAllFrames: async () => [{ frameId: 0, parentFrameId: -1, url: `${ORIGIN}/` }] },
    scripting: {
      async executeScript({ func, world, target }) {
        const at = { frameId: 0, documentId: "D" };
        if (func === listDeclared) return [{ ...at, result: { origin: ORIGIN, is_native: false, n_more: 0, tools: world === "MAIN" ? [...tools, ...more] : [] } }];
        assert.deepEqual(target.documentIds, ["D"]);
        if (func === abortDeclared) return told.push("abort"), [{ ...at, result: true }];
        told.push("call");
        return [{ ...at, result: await answer() }];
      },
    },
  };
}

/** How a call of `add` ends in that tab. */
async function endOf(answer) {
  tabOf(answer);
  const { tools } = await pageTools({}, { tab_id: 7 });
  const run = Object.assign(new Run("r", 60_000), { tab_id: 7 });
  return await run.outcome(() => pageTools({ name: "add", arguments: { a: 1 }, origin: ORIGIN, schema_hash: tools[0].schema_hash }, run));
}

test("not_executed is said only of a tool that was not called", async () => {
  assert.deepEqual((await endOf(() => ({ value: '{"sum":2}' }))).result, { name: "add", origin: ORIGIN, value: { sum: 2 } });
  const fails = (message) => () => {
    throw new Error(message);
  };
  for (const [answer, guarantee] of [
    [() => ({ changed: "other" }), "not_executed"],
    [fails("No document with id D in tab with id 7"), "not_executed"],
    [fails("The frame was removed."), "unknown"],
    [fails("Frame with ID 0 was removed."), "unknown"],
    [() => null, "unknown"],
    [() => ({ thrown: { name: "Error", message: "No document with id" } }), "unknown"],
  ]) {
    const end = await endOf(answer);
    assert.deepEqual([end.status, end.error.guarantee], ["error", guarantee], String(answer));
  }
});

test("arguments that the tool's schema does not allow are refused before it is called, and named", async () => {
  const told = [];
  tabOf(() => ({ value: "1" }), told);
  const { tools } = await pageTools({}, { tab_id: 7 });
  const call = (input) => {
    const run = Object.assign(new Run("r", 60_000), { tab_id: 7 });
    return run.outcome(() => pageTools({ name: "add", arguments: input, origin: ORIGIN, schema_hash: tools[0].schema_hash }, run));
  };
  const { error } = await call({ a: "one" });
  assert.deepEqual([error.reason, error.guarantee, told], ["page_tool_arguments", "not_executed", []]);
  assert.match(error.message, /`arguments\.a` is not of the type number/);
  assert.deepEqual([(await call({ a: 1 })).status, told], ["complete", ["call"]]);
});

test("a cancel tells the tool, once it was called, and does not say that it stopped", async () => {
  const told = [];
  tabOf(() => new Promise(() => {}), told);
  const { tools } = await pageTools({}, { tab_id: 7 });
  const run = Object.assign(new Run("r", 60_000), { tab_id: 7 });
  const end = run.outcome(() => pageTools({ name: "add", origin: ORIGIN, schema_hash: tools[0].schema_hash }, run));
  while (!told.includes("call")) await new Promise((done) => setTimeout(done, 1));
  run.cancel();
  const { error } = await end;
  assert.deepEqual([told, error.guarantee], [["call", "abort"], "unknown"]);
  assert.match(error.message, /may still go on/);
});

test("what cannot be called by its name is not listed, and that is said", async () => {
  tabOf(() => null, [], [{ way: "document", name: "x".repeat(129) }, { way: "document", description: "none" }, "no object"]);
  const { tools, left_out } = await pageTools({}, { tab_id: 7 });
  assert.deepEqual([tools.map(({ name }) => name), left_out], [["add"], ["2 tools: they have no name, or one of more than 128 characters"]]);
});

test("a frame that the user closed is not looked at, and that is said", async () => {
  tabOf(() => null);
  const { setOrigins } = await import("../extension/status/origins.js");
  await setOrigins({ mode: "all_but", closed: ["b.example"], open: [] }, { local: { set: async () => {} } });
  const frames = [{ frameId: 0, parentFrameId: -1, url: `${ORIGIN}/` }, { frameId: 5, parentFrameId: 0, url: "https://b.example/" }];
  chrome.webNavigation.getAllFrames = async () => frames;
  const { tools, left_out } = await pageTools({}, { tab_id: 7 });
  assert.deepEqual([tools.length, left_out], [1, ["a frame: b.example is closed to commands by the user"]]);
  await setOrigins({ mode: "all_but", closed: [], open: [] }, { local: { set: async () => {} } });
});

/** What a document with these two contexts lists. */
async function listOf({ inDocument, inNavigator }, max_chars = 1000) {
  const before = Object.fromEntries(["document", "window", "self", "navigator"].map((name) => [name, Object.getOwnPropertyDescriptor(globalThis, name)]));
  const set = (name, value) => Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
  set("document", { get modelContext() { return inDocument?.(); } });
  set("navigator", { get modelContext() { return inNavigator?.(); } });
  set("window", {});
  set("self", { origin: ORIGIN });
  try {
    return await listDeclared(false, false, 100, max_chars);
  } finally {
    for (const [name, descriptor] of Object.entries(before)) descriptor ? Object.defineProperty(globalThis, name, descriptor) : delete globalThis[name];
  }
}

test("a frame of another origin by the name of the list, or a getter that throws, hides no tools", async () => {
  const foreign = new Proxy({}, { get: () => { throw new Error("Blocked a frame"); } });
  const inNavigator = () => ({ getTools: async () => [{ name: "add" }] });
  const odd = () => { throw new Error("no"); };
  assert.deepEqual((await listOf({ inDocument: () => foreign, inNavigator })).tools.map(({ name }) => name), ["add"]);
  assert.deepEqual((await listOf({ inDocument: odd, inNavigator })).tools.map(({ name }) => name), ["add"]);
});

test("what is too long, or nested without end, is left in the page; its name is told", async () => {
  const endless = {};
  endless.self = endless;
  const all = [{ name: "long", description: "x".repeat(2000) }, { name: "large", inputSchema: { enum: Array(500).fill("xy") } }, { name: "endless", inputSchema: endless }, { name: "y".repeat(5000) }, { name: "add", description: "Adds" }];
  const { tools } = await listOf({ inDocument: () => ({ getTools: async () => all }) });
  assert.deepEqual(tools.map(({ name, is_large }) => [name, is_large]), [["long", true], ["large", true], ["endless", true], [undefined, true], ["add", undefined]]);
  assert.ok(JSON.stringify(tools).length < 500);
  const many = Array.from({ length: 100 }, (_, n) => ({ name: `t${n}`, description: "x".repeat(900) }));
  const told = await listOf({ inDocument: () => ({ getTools: async () => many }) });
  assert.ok(JSON.stringify(told).length < 25_000, "nor are many of them more than 16 of the largest");

  tabOf(() => null, [], [{ way: "document", name: "long", is_large: true }]);
  const shown = await pageTools({}, { tab_id: 7 });
  assert.deepEqual([shown.tools.length, shown.left_out], [1, ["1 tools: what they say of themselves is too long"]]);
});

test("the document that was checked is the one that is read, and what it says of its origin is checked, too", async () => {
  const { setOrigins } = await import("../extension/status/origins.js");
  tabOf(() => null);
  const { executeScript } = chrome.scripting;
  const targets = [];
  chrome.webNavigation.getAllFrames = async () => [{ frameId: 0, parentFrameId: -1, url: `${ORIGIN}/`, documentId: "D" }, { frameId: 5, parentFrameId: 0, url: "https://ads.example/", documentId: "F" }];
  chrome.scripting.executeScript = async (given) => {
    targets.push(given.target);
    if (given.target.documentIds?.[0] === "D") return await executeScript(given);
    return [{ frameId: 5, documentId: "G", result: { origin: "https://bank.example", is_native: false, n_more: 0, tools: [{ way: "document", name: "pay" }] } }];
  };
  await setOrigins({ mode: "all_but", closed: ["bank.example"], open: [] }, { local: { set: async () => {} } });
  const { tools, left_out } = await pageTools({}, { tab_id: 7 });
  await setOrigins({ mode: "all_but", closed: [], open: [] }, { local: { set: async () => {} } });
  assert.deepEqual([tools.map(({ name }) => name), left_out], [["add"], ["a frame: bank.example is closed to commands by the user"]]);
  assert.ok(targets.every(({ frameIds }) => frameIds === undefined));
});
