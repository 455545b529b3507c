// A session as a script [BROWSER-58, BROWSER-59]: what is noted of an act, what never is, and what a replay puts in.

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { Area } from "./fakes.mjs";

const CALLER = { owner: "me", connection: "c" };
let elements;

/** `elements`: what the agent says of a target, by its ref or selector. */
function browser() {
  const area = new Area();
  const onCommitted = { addListener() {}, removeListener() {} };
  globalThis.chrome = {
    storage: { session: area },
    tabs: { get: async () => ({ url: "https://a.example/form" }) },
    webNavigation: { onCommitted, getAllFrames: async () => [{ frameId: 0, parentFrameId: -1, url: "https://a.example/" }] },
    scripting: {
      async executeScript({ args: [method, { ref, selector }] }) {
        if (method === "keysAreSecret") return [{ result: { value: { is_secret: elements.focus === "secret" } } }];
        const found = elements[ref ?? selector];
        return [{ result: found ? { value: { selectors: found.selectors ?? [], is_secret: found.is_secret ?? false, origin: "https://a.example", field: found.field ?? "" } } : { missing: `no element matches ${selector}` } }];
      },
    },
  };
}

const { startRecording, stopRecording, showRecording, recorderOf, scriptOf, namesIn } = await import("../extension/tabs/recording.js");
const { dropSettings } = await import("../extension/tabs/settings.js");
const run = (more = {}) => ({ caller: CALLER, tab_id: 7, ended: null, left_ms: 10_000, ...more });

beforeEach(async () => {
  browser();
  await chrome.storage.session.set({ "setting:recording:me/c": null });
  await dropSettings(() => true);
  elements = { e1: { selectors: ["#name"] }, e2: { selectors: ['[name="pw"]'], is_secret: true, field: "User Pw" }, e3: { selectors: [] }, "#own": { selectors: ["#own"] } };
});

/** Records acts and returns the script. */
async function recorded(...acts) {
  await startRecording({}, run());
  for (const params of acts) await (await recorderOf(run(), params))?.note(params);
  return await stopRecording({}, run());
}

test("a step is a call whose target is no ref", async () => {
  const script = await recorded(
    { action: "click", ref: "e1", button: "right", tab_id: 7, wait_ms: 5, idempotency_key: "k" },
    { action: "fill", ref: "e1", text: "Ada" },
    { action: "navigate", url: "https://a.example/next" },
    { what: "snapshot" },
    { action: "page_tools" },
    { action: "drag", from: { ref: "e1" }, to: { x: 1, y: 2 } },
  );
  assert.deepEqual(script, {
    action: "batch",
    steps: [
      { action: "click", button: "right", selector: "#name" },
      { action: "fill", text: "Ada", selector: "#name" },
      { action: "navigate", url: "https://a.example/next" },
      { action: "drag", from: { selector: "#name" }, to: { x: 1, y: 2 } },
    ],
    recorded: { url: "https://a.example/form", n_steps: 4 },
  });
});

test("a secret is never noted: a name stands in its place, and its origin with it", async () => {
  const script = await recorded(
    { action: "fill", ref: "e2", text: "hunter2" },
    { action: "type", ref: "e2", text: "hunter2" },
    { action: "fill_form", fields: [{ ref: "e1", value: "Ada" }, { ref: "e2", value: "hunter2" }] },
    { action: "fill", ref: "e1", text: "hunter2", secret: true },
    // What is not there any more may have been a secret.
    { action: "fill", selector: "#gone", text: "hunter2" },
  );
  assert.ok(!JSON.stringify(script).includes("hunter2"), JSON.stringify(script));
  assert.deepEqual(script.values, { user_pw: null, user_pw_2: null, user_pw_3: null, secret: null, secret_2: null });
  assert.deepEqual(script.steps[0], { action: "fill", text: "{{secret:user_pw}}", selector: '[name="pw"]', origin: "https://a.example" });
  assert.deepEqual(script.steps[2].fields[1], { selector: '[name="pw"]', value: "{{secret:user_pw_3}}" });
  assert.equal(script.steps[2].origin, "https://a.example");
  assert.equal(script.steps[4].selector, "#gone");
});

test("single keys are noted unless they go where a secret is typed", async () => {
  elements.focus = "secret";
  const written = ["h", "Shift+p", "Shift+1", "Space", " ", "é"].map((key) => ({ action: "press", key }));
  const others = ["Enter", "Control+a", "Shift+Tab"].map((key) => ({ action: "press", key }));
  const script = await recorded(...written, ...others);
  assert.deepEqual(script.steps, others);
  assert.deepEqual([script.recorded.n_left_out, script.recorded.left_out.length], [6, 6]);
});

test("a key that moves the focus on went where that was before it", async () => {
  await startRecording({}, run());
  for (const [before, after] of [["secret", "button"], ["text", "secret"], ["text", "text"]]) {
    const params = { action: "press", key: "7" };
    elements.focus = before;
    const recorder = await recorderOf(run(), params);
    elements.focus = after;
    await recorder.note(params);
  }
  // The field that a key is sent to counts, wherever the focus is.
  elements.focus = "text";
  for (const ref of ["e1", "e2"]) {
    const params = { action: "press", key: "7", ref };
    await (await recorderOf(run(), params)).note(params);
  }
  const script = await stopRecording({}, run());
  assert.deepEqual(script.steps, [{ action: "press", key: "7" }, { action: "press", key: "7", selector: "#name" }]);
  assert.equal(script.recorded.n_left_out, 3);
});

test("a recorded replay notes names again in the place of the values that the server put in", async () => {
  for (const value of ["s3cret-value", "{{secret:b}}"]) {
    const script = await recorded(
      { action: "fill", ref: "e1", text: value, secret: true },
      { action: "fill_form", fields: [{ ref: "e1", value, secret: true }, { ref: "#own", value: "Ada" }] },
      { action: "select", ref: "e1", value, secret: true },
      { action: "wait_for", text: value, secret: true },
    );
    assert.equal(script.recorded.n_steps, 4);
    assert.ok(!JSON.stringify(script).includes(value), JSON.stringify(script));
    assert.equal(script.steps[1].fields[1].value, "Ada");
    assert.equal(Object.keys(script.values).length, 4);
  }
});

test("an act is none the worse for what could not be noted", async () => {
  const params = { action: "click", ref: "e1" };
  await startRecording({}, run());
  const full = await recorderOf(run(), params);
  chrome.storage.session.max_bytes = 10;
  await full.note(params);
  chrome.storage.session.max_bytes = Infinity;
  assert.equal((await showRecording({}, run())).n_steps, 0, "the storage refused it");
  // A step that is too large may be told of all the same.
  const large = { action: "execute_js", script: "x".repeat(50_000) };
  const partly = await recorderOf(run(), large);
  chrome.storage.session.max_bytes = 5_000;
  await partly.note(large);
  chrome.storage.session.max_bytes = Infinity;
  assert.deepEqual((await showRecording({}, run())).script.recorded.n_left_out, 1);
  // Another recording took its place: it is not a step of that one.
  const stale = await recorderOf(run(), params);
  await stopRecording({}, run());
  await startRecording({}, run());
  await stale.note(params);
  assert.equal((await showRecording({}, run())).n_steps, 0);
  // It was given up while the page was asked.
  const gone = await recorderOf(run(), params);
  const { executeScript } = chrome.scripting;
  chrome.scripting.executeScript = async (asked) => {
    await dropSettings((name) => name === "recording:me/c");
    return await executeScript(asked);
  };
  await gone.note(params);
  await assert.rejects(stopRecording({}, run()), { reason: "no_recording" });
});

test("noting takes a quarter of what is left of a command, and no more", async () => {
  let n_asked = 0;
  chrome.scripting.executeScript = () => (n_asked++, new Promise(() => {}));
  const fields = Array.from({ length: 40 }, (_, n) => ({ ref: `e${n}`, value: "x" }));
  await startRecording({}, run());
  const recorder = await recorderOf(run({ left_ms: 400 }), { action: "fill_form", fields });
  for (const { ref } of fields) await recorder.reached({ ref });
  await recorder.note({ action: "fill_form", fields });
  assert.equal((await stopRecording({}, run())).recorded.n_left_out, 1);
  // The first look took it all.
  assert.ok(n_asked < 10, `asked ${n_asked} times`);
});

test("what was not found before an act is not looked for after it", async () => {
  elements["#late"] = undefined;
  const acts = [{ action: "click", selector: "#late" }, { action: "wait_for", selector: "#late" }];
  await startRecording({}, run());
  for (const params of acts) {
    delete elements["#late"];
    const recorder = await recorderOf(run(), params);
    await recorder.reached({ selector: "#late" });
    elements["#late"] = { selectors: ["#of-the-next-page"] };
    await recorder.note(params);
  }
  assert.deepEqual((await stopRecording({}, run())).steps.map((step) => step.selector), ["#late", "#of-the-next-page"]);
});

test("a page that is held up holds up no command: what it did not say is not noted", async () => {
  const { executeScript } = chrome.scripting;
  chrome.scripting.executeScript = async (asked) => (asked.args[0] === "keysAreSecret" ? await new Promise(() => {}) : await executeScript(asked));
  const script = await recorded({ action: "press", key: "h" }, { action: "press", key: "Enter" });
  assert.deepEqual([script.steps.length, script.recorded.n_left_out], [1, 1]);
});

test("what no selector means alone is left out, and that is said", async () => {
  const script = await recorded({ action: "click", ref: "e3" }, { action: "click", ref: "e9" }, { action: "click", selector: "#own" });
  assert.deepEqual(script.steps, [{ action: "click", selector: "#own" }]);
  assert.equal(script.recorded.n_left_out, 2);
});

test("a recording is of one tab and one caller, and bounded", async () => {
  await startRecording({}, run());
  await assert.rejects(startRecording({}, run()), { reason: "recording_already", guarantee: "not_executed" });
  const params = { action: "execute_js", script: "x".repeat(20_000) };
  assert.equal(await recorderOf(run({ tab_id: 8 }), params), null);
  assert.equal(await recorderOf(run({ caller: { owner: "you", connection: "c" } }), params), null);
  for (let n = 0; n < 8; n++) await (await recorderOf(run(), params)).note(params);
  const { n_steps, script } = await showRecording({}, run());
  assert.equal(n_steps, 6);
  assert.equal(script.recorded.n_left_out, 2);
  await stopRecording({}, run());
  assert.equal(await recorderOf(run(), params), null);
  await assert.rejects(stopRecording({}, run()), { reason: "no_recording" });
});

test("of more than twenty recordings the oldest is given up", async () => {
  const caller = (n) => ({ owner: "me", connection: `c${n}` });
  for (let n = 0; n < 21; n++) await startRecording({}, run({ caller: caller(n) }));
  await assert.rejects(stopRecording({}, run({ caller: caller(0) })), { reason: "no_recording" });
  for (const n of [1, 20]) assert.equal((await stopRecording({}, run({ caller: caller(n) }))).recorded.n_steps, 0);
});

test("more steps than a batch takes are several batches, each with the values that it takes", () => {
  const steps = Array.from({ length: 120 }, (_, n) => ({ action: "fill", selector: "#a", text: n === 119 ? "{{secret:last}}" : "x" }));
  const script = scriptOf({ steps, url: "u", left_out: [], n_left_out: 0 });
  assert.deepEqual(script.map((batch) => batch.steps.length), [50, 50, 20]);
  assert.deepEqual(script.map((batch) => batch.values), [undefined, undefined, { last: null }]);
});

test("names stand in the places of texts and values, and nowhere else", () => {
  const steps = [{ action: "fill", selector: "{{secret:c}}", text: "{{secret:a}}" }, { action: "fill_form", fields: [{ selector: "#b", value: "{{secret:b}}" }] }, { action: "fill", text: "say {{secret:d}}" }, { action: "select", value: "{{secret:e}}" }];
  assert.deepEqual(namesIn(steps), ["a", "b", "e"]);
});

test("a text that looks like a name is named itself", async () => {
  const script = await recorded({ action: "fill", ref: "e1", text: "{{secret:x}}" });
  assert.deepEqual([script.steps[0].text, script.values], ["{{secret:secret}}", { secret: null }]);
});

test("a selector of a frame is none that the page, or a frame before it, would take", async () => {
  const frames = [{ frameId: 0, parentFrameId: -1, url: "https://a.example/" }, { frameId: 4, parentFrameId: 0, url: "https://b.example/" }, { frameId: 5, parentFrameId: 0, url: "https://c.example/" }];
  const taken = { 0: ["#a"], 4: ["#b"], 5: ["#a", "#b", "#c"] };
  chrome.webNavigation = { ...chrome.webNavigation, getAllFrames: async () => frames, getFrame: async ({ frameId }) => frames.find((frame) => frame.frameId === frameId) };
  chrome.scripting.executeScript = async ({ target: { frameIds: [id] }, args }) => {
    if (!args) return [{ result: { index: id - 4, is_reached: false, origin: frames.find((frame) => frame.frameId === id).url } }];
    const [method, { selector }] = args;
    if (method === "matching") return [{ result: { value: { n: taken[id].includes(selector) ? 1 : 0 } } }];
    return [{ result: id === 5 ? { value: { selectors: ["#a", "#b", "#c"], is_secret: false, origin: "https://c.example" } } : { missing: "no element matches" } }];
  };
  const act = { action: "click", ref: "f5e1" };
  assert.deepEqual((await recorded(act)).steps, [{ action: "click", selector: "#c" }]);
  // A frame that does not say whether it has one may have it.
  const { executeScript } = chrome.scripting;
  chrome.scripting.executeScript = async (asked) => (asked.target.frameIds[0] === 4 && asked.args?.[0] === "matching" ? [{ result: { error: "busy" } }] : await executeScript(asked));
  assert.deepEqual([(await recorded(act)).recorded.n_steps, (await showRecording({}, run())).script.recorded.n_left_out], [0, 1]);
});
