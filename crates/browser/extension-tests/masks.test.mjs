// What was typed where secrets are typed is in no answer [BROWSER-63].

import assert from "node:assert/strict";
import { beforeEach, mock, test } from "node:test";

import { CommandError } from "../extension/commands/errors.js";
import { withChanges } from "../extension/page/changes.js";
import { pressKey } from "../extension/page/input.js";
import { MASK, masked, maskedAnswer, maskedFailure, noteSecret, watchMasks } from "../extension/page/masks.js";
import { pageText, snapshot } from "../extension/page/read.js";
import { noteTold } from "../extension/tabs/callers.js";
import { watchNavigation } from "../extension/tabs/navigation.js";
import { sendEventsWith } from "../extension/tabs/observed.js";
import { until } from "./fakes.mjs";

const committed = [];
const event = { addListener() {}, removeListener() {} };
const kept = new Map();
let shown = "";

/** A page that shows `shown`. */
const agent = {
  snapshot: ({ part }) => (part && kept.set("s1.1", { text: shown, part, is_cut: false }), { ...about(), text: shown, holes: [], left_out: [], is_cut: false, document_id: "s1", snapshot_id: "s1.1", last_ref: 9 }),
  recall: () => ({ text: "- main", part: {}, is_cut: false }),
  text: () => ({ ...about(), parts: [shown] }),
  quiet: () => ({ document_id: "s1", quiet_ms: 1000 }),
};
const about = () => ({ url: "https://a.example/", title: "a", origin: "https://a.example" });

globalThis.chrome = {
  storage: { session: { get: async () => ({}), set: async () => {} } },
  debugger: { attach: () => Promise.reject(new Error("not here")), onEvent: event, onDetach: event },
  tabs: { get: async () => ({ id: 7, url: "https://a.example/" }), onUpdated: event, onRemoved: event },
  webNavigation: {
    ...Object.fromEntries(["onBeforeNavigate", "onDOMContentLoaded", "onCompleted", "onErrorOccurred", "onHistoryStateUpdated", "onReferenceFragmentUpdated", "onCreatedNavigationTarget"].map((name) => [name, event])),
    onCommitted: { addListener: (listener) => committed.push(listener), removeListener: (listener) => committed.splice(committed.indexOf(listener), 1) },
    getAllFrames: async () => [],
    getFrame: async () => null,
  },
  scripting: { executeScript: async ({ args: [method, args] }) => [{ result: { value: agent[method]?.(args) ?? {} } }] },
};
sendEventsWith(async () => 200);
watchNavigation();
watchMasks();

const FIELD = { ref: "e1" };
const run = (more = {}) => ({ tab_id: 7, ended: null, left_ms: 2000, waitLimit: (ms) => Math.min(ms, 1500), ...more });
const leave = () => [...committed].forEach((listener) => listener({ tabId: 7, frameId: 0, url: "https://a.example/next" }));
/** What each kind of answer tells of the page, to a command after the one that typed. */
async function answers(said) {
  shown = "- main";
  const changes = await withChanges({ changes: true }, run(), async () => ((shown = said), { target: "button" }));
  return [changes, await snapshot({}, run()), await snapshot({ since: "s1.1" }, run()), await pageText({}, run())].map((one) => JSON.stringify(one));
}

beforeEach(leave);

test("a later command does not tell it, whichever way it reads the page", async () => {
  noteSecret(run(), "hunter22", FIELD);
  for (const told of await answers('- main\n- textbox "Password" [ref=e1]: hunter22')) {
    assert.doesNotMatch(told, /hunter/);
    assert.match(told, /••••/);
  }
});

test("the longest is masked first, in whatever order they were typed", () => {
  for (const order of [["hunter", "hunter22"], ["hunter22", "hunter"]]) {
    for (const text of order) noteSecret(run(), text, FIELD);
    assert.equal(masked(run(), "hunter22 and hunter"), "•••• and ••••");
  }
});

test("it is found as the page shows it: with one space for many, in the quotes of a name, in an address", async () => {
  for (const [text, said] of [["correct  horse", "- textbox: correct horse"], ['pa"ss\\word1', `- alert ${JSON.stringify('No: pa"ss\\word1')}`], ["a b&c d", "- link -> /?q=a+b%26c+d"], ["a b&c d", "- link -> /?q=a%20b%26c%20d"]]) {
    noteSecret(run(), text, FIELD);
    for (const told of await answers(said)) assert.match(told, /••••/, `${text}: ${told}`);
  }
});

test("where a text was cut nothing of it is left", async () => {
  noteSecret(run(), "S3CRETPASSWORD", FIELD);
  // Cut where changes are told, in a name, and in a text.
  for (const said of [`- text: ${"x".repeat(285)}S3CRETPASSWORD`, `- button "${"x".repeat(193)}S3CRETP…"`, `- text: ${"x".repeat(1993)}S3CRETP`]) {
    for (const told of await answers(said)) assert.doesNotMatch(told, /S3CRE/, said.slice(-20));
  }
  assert.equal(masked(run(), `- text: ${"x".repeat(90)} S3CRE`).endsWith("S3CRE"), true, "a short line is cut nowhere");
});

test("what is typed behind something else that was typed leaves that masked", () => {
  noteSecret(run(), "hunter22", FIELD);
  for (const char of "ab") noteSecret(run(), char, FIELD, true);
  assert.equal(masked(run(), "hunter22ab hunter22"), "•••• ••••");
});

test("what is typed piece by piece is one text", () => {
  noteSecret(run(), "hu", FIELD);
  for (const char of "nter2") noteSecret(run(), char, FIELD, true);
  assert.equal(masked(run(), "it is hunter2"), "it is ••••");
  noteSecret(run(), "xy", { ref: "e2" }, true);
  assert.equal(masked(run(), "hunter2xy"), "••••xy", "another field has another text");
});

test("when the page is left it is no secret of the next one, but of the command that typed it", () => {
  const first = run();
  noteSecret(first, "admin", FIELD);
  leave();
  assert.equal(masked(first, "admin"), "••••");
  assert.equal(masked(run(), "admin"), "admin");
  noteSecret(first, "admin", FIELD);
  assert.equal(masked(run({ tab_id: 8 }), "admin"), "admin", "nor of another tab");
});

test("at most 20 are remembered, and short ones are not", () => {
  for (let n = 10; n < 40; n++) noteSecret(run(), `secret${n}`, FIELD);
  noteSecret(run(), "12", FIELD);
  assert.equal(masked(run(), "secret19 secret20 12"), "secret19 •••• 12");
});

test("words of the page are masked in an answer and in a failure; names of things are not", () => {
  noteSecret(run(), "example", FIELD);
  const answer = { url: "https://example.com/", origin: "https://example.com", target: 'button "example"', dialog: { type: "alert", message: "example" }, fields: [{ target: "textbox", value: "example" }], n_filled: 1 };
  assert.deepEqual(maskedAnswer(run(), answer), { ...answer, target: 'button "••••"', dialog: { type: "alert", message: "••••" }, fields: [{ target: "textbox", value: "••••" }] });
  const failure = maskedFailure(run(), new CommandError("tool_failed", 'covered by alert "example"', { reason: "element_not_ready", details: { failed: [{ index: 0, error: "example" }] } }));
  assert.deepEqual([failure.message, failure.reason, failure.details], ['covered by alert "••••"', "element_not_ready", { failed: [{ index: 0, error: "••••" }] }]);
});

test("a ref stays what it is, whatever of it looks like a secret; an address does not", () => {
  const run = { tab_id: 7, secrets: ["e12"] };
  assert.equal(masked(run, '- textbox "PIN" [ref=e12]: e12\n  - text: see [ref=x] e12'), '- textbox "PIN" [ref=e12]: ••••\n  - text: see [ref=x] ••••');
  assert.deepEqual(maskedAnswer(run, { url: "https://a.example/?pin=e12", tab_id: 7 }), { url: "https://a.example/?pin=••••", tab_id: 7 });
});

/** A page whose keys go to a field that holds `value`; `press` puts there what it is given. */
const typing = { field: "key1", value: "" };
const pressing = () => run({ caller: { owner: "me" }, onStop: () => () => {}, onEnd: () => {} });
const secretField = () => ({ is_secret: true, origin: "https://a.example", ...typing, from: typing.value.length, to: typing.value.length });

async function press(key) {
  const told = (await pressKey({ key }, pressing())).key;
  if (told === MASK) typing.value += key;
  return told;
}

async function intoField(field, keys, value = "") {
  Object.assign(typing, { field, value });
  for (const key of keys) assert.equal(await press(key), MASK);
}

test("what is pressed key by key where secrets are typed is one text, and no answer says which keys", async () => {
  agent.keysAreSecret = secretField;
  await noteTold({ owner: "me" }, 7, "https://a.example");
  noteSecret(run(), "open", FIELD);
  await intoField("key1", [" ", "S", "e"], "open");
  assert.equal(await press("Enter"), "Enter");
  assert.equal(masked(run(), "It is open Se. It was open."), `It is ${MASK}. It was ${MASK}.`);
  agent.keysAreSecret = () => ({ is_secret: false, origin: "https://a.example" });
  assert.equal(await press("x"), "x");
  leave();
});

test("a text that was pressed stays masked, whatever is pressed elsewhere after it", async () => {
  agent.keysAreSecret = secretField;
  await intoField("key1", "hunter2");
  await intoField("key2", "hunter2");
  await intoField("key2", "9", "hunter2");
  assert.equal(masked(run(), "pw: hunter2, again: hunter29"), `pw: ${MASK}, again: ${MASK}`);
  leave();
  noteSecret(run(), "hunter22", { selector: "#pw" });
  await intoField("key3", "4711");
  assert.equal(masked(run(), "pw: hunter22 pin: 4711"), `pw: ${MASK} pin: ${MASK}`);
  leave();
});

test("what stands in the field counts: after a Backspace, in the middle, and where it takes no more", async () => {
  agent.keysAreSecret = secretField;
  await intoField("key1", "hunter2");
  await intoField("key1", "34", "hunter");
  assert.equal(masked(run(), "hunter2 hunter34"), `${MASK} ${MASK}`);
  leave();
  agent.keysAreSecret = () => ({ ...secretField(), from: 0, to: 1 });
  await intoField("key1", "X", "hunter2");
  assert.equal(masked(run(), "Xunter2"), MASK);
  leave();
  agent.keysAreSecret = () => ({ ...secretField(), value: "hunter2", from: 7, to: 7 });
  await intoField("key1", "xyz");
  assert.equal(masked(run(), "hunter2"), MASK);
  leave();
});

test("what is pressed is one text also where fields hold a character each, show it in groups, or not at all", async () => {
  agent.keysAreSecret = secretField;
  for (const [n, digit] of [..."4711"].entries()) await intoField(`box${n}`, digit);
  assert.equal(masked(run(), "code 4711 is wrong"), `code ${MASK} is wrong`);
  leave();
  for (const [stands, key] of [["", "4"], ["4", "9"], ["49", "2"], ["492", "9"], ["4929 ", "1"]]) await intoField("card", key, stands);
  assert.equal(masked(run(), "49291 or 4929 1"), `${MASK} or ${MASK}`);
  leave();
  agent.keysAreSecret = () => ({ ...secretField(), value: "", from: 0, to: 0 });
  await intoField("widget", "hunter2");
  assert.equal(masked(run(), "hunter2"), MASK);
  leave();
});

test("keys of which nobody says where they go are one text until something else is pressed", async () => {
  agent.keysAreSecret = () => ({ is_secret: true, origin: "https://a.example" });
  for (const key of [..."sesam", "Tab", ..."sesam"]) await press(key);
  assert.equal(masked(run(), "It is sesam and sesam."), `It is ${MASK} and ${MASK}.`);
  leave();
});

test("a long secret that is pressed takes the place of no other", async () => {
  agent.keysAreSecret = secretField;
  noteSecret(run(), "hunter22", FIELD);
  await intoField("key1", "a password of 27 characters");
  assert.equal(masked(run(), "hunter22"), MASK);
  leave();
});

test("a key for a password field of another origin than the last answer named is not pressed, unless that is said [BROWSER-21]", async () => {
  agent.keysAreSecret = () => ({ is_secret: true, origin: "https://look-alike.example" });
  await assert.rejects(pressKey({ key: "s" }, pressing()), { reason: "other_origin", guarantee: "not_executed" });
  await assert.rejects(pressKey({ key: "s", origin: "https://a.example" }, pressing()), { reason: "other_origin" });
  assert.equal((await pressKey({ key: "s", origin: "https://look-alike.example" }, pressing())).key, MASK);
  assert.equal((await pressKey({ key: "Enter" }, pressing())).key, "Enter");
  agent.keysAreSecret = () => ({ is_secret: false, origin: "https://look-alike.example" });
  assert.equal((await pressKey({ key: "s" }, pressing())).key, "s");
  await assert.rejects(pressKey({ key: "s", origin: "https://a.example" }, pressing()), { reason: "other_origin" });
  leave();
});

// Where a key goes is asked of the page, and of the frames on the way to the focus.
const FRAMES = [
  { frameId: 5, parentFrameId: 0, url: "https://ads.example/" },
  { frameId: 6, parentFrameId: 0, url: "https://look-alike.example/" },
];

/** `frames[n]` is what the agent of a frame says; one that is not there never answers. A place is the `n`th of the page. */
async function pressAmong(frames, all = FRAMES) {
  const { executeScript } = chrome.scripting;
  const { getAllFrames, getFrame } = chrome.webNavigation;
  const silent = [];
  chrome.webNavigation.getAllFrames = async () => [{ frameId: 0, parentFrameId: -1, url: "https://a.example/" }, ...all];
  chrome.webNavigation.getFrame = async ({ frameId }) => all.find((frame) => frame.frameId === frameId) ?? null;
  chrome.scripting.executeScript = async ({ target: { frameIds: [id] }, args }) => {
    const answer = frames[id];
    if (args && args[0] !== "keysAreSecret") return [{ result: { value: {} } }];
    if (!answer) return (silent.push(id), await new Promise(() => {}));
    if (!args) return [{ result: { index: all.findIndex((frame) => frame.frameId === id), is_reached: false, origin: new URL(all.find((frame) => frame.frameId === id).url).origin } }];
    return [{ result: { value: answer } }];
  };
  mock.timers.enable({ apis: ["setTimeout", "Date"] });
  try {
    let end;
    pressKey({ key: "s" }, pressing()).then(({ key }) => (end = key), ({ reason, message }) => (end = reason ?? message));
    await until(() => (mock.timers.tick(10), end !== undefined));
    return { end, silent };
  } finally {
    mock.timers.reset();
    Object.assign(chrome.webNavigation, { getAllFrames, getFrame });
    chrome.scripting.executeScript = executeScript;
    leave();
  }
}

const OPEN = { is_secret: false, origin: "https://a.example" };
const FOREIGN = { is_secret: true, origin: "https://look-alike.example" };
const inside = (...path) => ({ ...OPEN, inside: { path } });

test("a frame that hangs takes no check away [BROWSER-21]", async () => {
  const { end, silent } = await pressAmong({ 0: FOREIGN });
  assert.deepEqual([end, silent], ["other_origin", []]);
  assert.equal((await pressAmong({ 0: OPEN })).end, "s");
});

test("a password field in a frame of another origin is asked for as one in the page is [BROWSER-21]", async () => {
  assert.equal((await pressAmong({ 0: inside(1), 6: FOREIGN })).end, "other_origin", "while another frame hangs");
  assert.equal((await pressAmong({ 0: inside(1), 5: OPEN, 6: { ...FOREIGN, is_secret: false } })).end, "s");
  assert.equal((await pressAmong({ 0: inside(0), 5: OPEN, 6: FOREIGN })).end, MASK, "the page has it elsewhere: masked, and not asked for");
  assert.equal((await pressAmong({ 0: OPEN, 5: OPEN, 6: { ...FOREIGN, has_focus: true } })).end, "other_origin", "the page has not heard of it yet");
});

test("where nobody says where keys go they are for the origin of the tab, or of the frame, as a secret [BROWSER-21]", async () => {
  assert.equal((await pressAmong({ 6: FOREIGN })).end, MASK, "the tab is of the origin that was told");
  await noteTold({ owner: "me" }, 7, "https://b.example");
  assert.equal((await pressAmong({ 6: FOREIGN })).end, "other_origin");
  await noteTold({ owner: "me" }, 7, "https://a.example");
  assert.equal((await pressAmong({ 0: inside(1), 5: OPEN })).end, "other_origin", "the frame hangs");
  assert.equal((await pressAmong({ 0: inside(-1), 5: OPEN })).end, "other_origin", "nobody knows which frame it is, and one hangs");
  assert.equal((await pressAmong({ 0: inside(1), 5: OPEN }, [])).end, "other_origin", "there is no such frame");
});
