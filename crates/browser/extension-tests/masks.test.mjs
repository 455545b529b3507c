// What was typed where secrets are typed is in no answer [BROWSER-63].

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { CommandError } from "../extension/commands/errors.js";
import { withChanges } from "../extension/page/changes.js";
import { pressKey } from "../extension/page/input.js";
import { MASK, masked, maskedAnswer, maskedFailure, noteSecret, watchMasks } from "../extension/page/masks.js";
import { pageText, snapshot } from "../extension/page/read.js";
import { watchNavigation } from "../extension/tabs/navigation.js";
import { sendEventsWith } from "../extension/tabs/observed.js";

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

test("what is pressed key by key where secrets are typed is one text, and no answer says which keys", async () => {
  const pressed = (more) => run({ caller: { owner: "me" }, onStop: () => () => {}, onEnd: () => {}, ...more });
  const press = async (key) => (await pressKey({ key }, pressed())).key;
  agent.keysAreSecret = () => ({ is_secret: true });
  noteSecret(run(), "open", FIELD);
  for (const key of [" ", "Shift+s", "e"]) assert.equal(await press(key), MASK);
  assert.equal(await press("Enter"), "Enter");
  assert.equal(masked(run(), "It is open Se."), `It is ${MASK}.`);
  leave();
  for (const key of ["s", "e", "s", "a", "m"]) await press(key);
  assert.equal(masked(run(), "It is sesam."), `It is ${MASK}.`);
  // Where nobody says what a key goes to it may be one of a secret.
  agent.keysAreSecret = () => ({});
  assert.equal(await press("e"), MASK);
  agent.keysAreSecret = () => ({ is_secret: false });
  assert.equal(await press("x"), "x");
  assert.equal(masked(run(), "sesamex"), `${MASK}x`);
  leave();
});

test("a key for a password field of another origin than the last answer named is not pressed, unless that is said [BROWSER-21]", async () => {
  const pressed = run({ caller: { owner: "me" }, onStop: () => () => {}, onEnd: () => {} });
  agent.keysAreSecret = () => ({ is_secret: true, origin: "https://look-alike.example" });
  await assert.rejects(pressKey({ key: "s" }, pressed), { reason: "other_origin", guarantee: "not_executed" });
  await assert.rejects(pressKey({ key: "s", origin: "https://a.example" }, pressed), { reason: "other_origin" });
  assert.equal((await pressKey({ key: "s", origin: "https://look-alike.example" }, pressed)).key, MASK);
  assert.equal((await pressKey({ key: "Enter" }, pressed)).key, "Enter");
  leave();
});
