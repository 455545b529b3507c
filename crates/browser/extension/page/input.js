// Input to a page. With the debugger it is real: the page cannot tell it from a user's. Where no
// debugger can be attached the agent sends the same events itself.
//
// `click {ref|selector, button?, count?, modifiers?}`, `hover {ref|selector}` -> `{target, input: "real|events"}`, and what came of it: `dialog {type, message, outcome}`, `opened_tab_id`,
//   or as `navigate` has it: `url, title, navigated, loaded, status`, `reason`, `download`
// `type|fill {ref|selector, text, origin?}` -> `{target, value, input}` · `press {key, ref?|selector?, origin?}` -> `{key, …}`
// `select {ref|selector, value}` -> `{target, value, label}` · `scroll {ref?|selector?, x?, y?}` -> `{x, y, max_x, max_y}`

import { CommandError, dropAbsent, invalid } from "../commands/errors.js";
import { arrival, follow, watchTab } from "../tabs/navigation.js";
import { onDialog } from "../tabs/open-dialogs.js";
import { mayType } from "../tabs/secrets.js";
import { actAsFocused, send, tryAttach } from "../tabs/sessions.js";
import { flagsOf, heldKeys, keyOf, maskOf, parseChord, writtenBy } from "./keys.js";
import { MASK, endKeys, noteKey, noteSecret } from "./masks.js";
import { ask, reach } from "./reach.js";
import { whereKeysGo } from "./secret-keys.js";

const BUTTONS = { left: { number: 0, bit: 1, event: "click" }, middle: { number: 1, bit: 4, event: "auxclick" }, right: { number: 2, bit: 2, event: "contextmenu" } };
const CONSEQUENCE_MS = 80;
const HOVER_MS = 50;
const SECRET_MS = 2500;
const CONSEQUENCE_LIMIT_MS = 5000;
const KEYED_CHARS = 200;
const ARRIVAL_LIMIT_MS = 3000;
const ARRIVAL_PAUSE_MS = 20;
const OTHER_PROGRAM = "other_program";
const PAGES = new Set(["http:", "https:", "file:", "ftp:", "about:", "blob:", "data:", "javascript:", "filesystem:", "view-source:", "chrome:", "chrome-extension:"]);

export async function click(params, run) {
  const can_be_real = await prepare(run);
  const place = await reach(run, params, { enabled: true, hit: true });
  const is_real = can_be_real && !(await isOutOfReach(run, place));
  const scheme = outsideOf(place.href);
  // The browser would ask the user, in the middle of the tab, which then takes no input until that is answered.
  if (scheme) await ask(run, "holdLink", place.at);
  const { button = "left", count = 1 } = params;
  const modifiers = maskOf(params.modifiers ?? []);
  const done = await withConsequences(run, async () => {
    if (is_real) await press(run.tab_id, place, { button, count, modifiers });
    else await ask(run, "mouse", { ...place.at, kinds: eventsOf(button, count), init: { button: BUTTONS[button].number, ...flagsOf(modifiers) } });
  });
  return { ...told(place, is_real, done), ...(scheme && !done.end ? leftToUser(scheme) : {}) };
}

export async function hover(params, run) {
  const can_be_real = await prepare(run);
  const place = await reach(run, params, { hit: true });
  const is_real = can_be_real && !(await isOutOfReach(run, place));
  const done = await withConsequences(run, async () => {
    if (is_real) await move(run.tab_id, place);
    else await ask(run, "mouse", { ...place.at, kinds: ["pointerover", "mouseover", "mouseenter", "pointermove", "mousemove"] });
  });
  return told(place, is_real, done);
}

export async function type(params, run) {
  const text = textOf(params);
  const is_real = await prepare(run);
  const place = await reach(run, params, { enabled: true, editable: true });
  await mayType(run, params, place);
  place.is_secret ||= params.secret === true;
  if (place.is_secret) noteSecret(run, text, place.at, true);
  if (!is_real) return { target: place.what, input: "events", value: shownValue(place, (await ask(run, "insert", { ...place.at, text })).value) };
  const { is_focused } = await ask(run, "focus", place.at);
  if (!is_focused) throw new CommandError("tool_failed", `${place.what} does not take the focus`, { guarantee: "not_executed", reason: "element_not_ready" });
  const done = await withConsequences(run, async () => {
    if (text.length > KEYED_CHARS || place.is_secret) return await send(run.tab_id, "Input.insertText", { text });
    for (const char of text) {
      if (run.ended) return;
      const key = keyOf(char === "\n" ? "Enter" : char);
      if (key.keyCode === 0) await send(run.tab_id, "Input.insertText", { text: char });
      else await strike(run.tab_id, { ...key, modifiers: 0 });
    }
  });
  return dropAbsent({ ...told(place, is_real, done), value: shownValue(place, await valueAfter(run, place, text)) });
}

/**
 * What stands in a field after keys were sent. Keys for a frame of another process are still on their way when the
 * browser has taken them; a page that writes something else of them is believed after a while.
 */
async function valueAfter(run, place, text) {
  const last = Date.now() + (place.at.frame_id > 0 ? ARRIVAL_LIMIT_MS : 0);
  for (;;) {
    const read = await ask(run, "value", place.at).catch(() => undefined);
    if (run.ended || typeof read?.value !== "string" || read.value.includes(text) || Date.now() >= last) return read?.value;
    await sleep(ARRIVAL_PAUSE_MS);
  }
}

export async function fill(params, run) {
  const text = textOf(params);
  const is_real = await prepare(run);
  const place = await reach(run, params, { enabled: true, editable: true });
  await mayType(run, params, place);
  place.is_secret ||= params.secret === true;
  if (place.is_secret) noteSecret(run, text, place.at);
  const done = await withConsequences(run, () => ask(run, "fill", { ...place.at, text, origin: place.origin }));
  return { ...told(place, is_real, done), value: shownValue(place, done.value?.value), input: "events" };
}

/** What is typed where secrets are typed is in no answer, also while the page shows it. */
function shownValue(place, value) {
  return place.is_secret && value ? MASK : value;
}

export async function pressKey(params, run) {
  const chord = typeof params.key === "string" ? parseChord(params.key) : null;
  if (!chord) throw invalid("`key` is a character, a name such as Enter or ArrowDown, or a chord such as Control+A");
  const is_real = await prepare(run);
  if (params.ref !== undefined || params.selector !== undefined) {
    const place = await reach(run, params, { enabled: true });
    await ask(run, "focus", place.at);
  }
  const written = writtenBy(params.key);
  // What is written after a key that writes nothing, or in another element, is another text.
  if (written === null || params.ref !== undefined || params.selector !== undefined) endKeys(run);
  const { is_secret, asks, ...field } = written === null ? { is_secret: false, asks: [] } : await whereKeysGo(run.tab_id, run.waitLimit(SECRET_MS));
  for (const asked of asks) await mayType(run, params, asked);
  if (is_secret) noteKey(run, written, field);
  const done = await withConsequences(run, async () => {
    if (is_real) await strike(run.tab_id, chord);
    else await ask(run, "key", { key: chord.key, code: chord.code, modifiers: chord.modifiers });
  });
  return { key: is_secret ? MASK : params.key, ...told({}, is_real, done) };
}

export async function select(params, run) {
  if (params.value === undefined) throw invalid("`value` is missing");
  await prepare(run);
  const place = await reach(run, params, { enabled: true });
  const done = await withConsequences(run, () => ask(run, "select", { ...place.at, value: params.value }));
  const { what, ...chosen } = done.value ?? {};
  return { ...told({ what }, false, done), ...chosen };
}

export async function scroll(params, run) {
  const { ref, selector, x, y } = params;
  for (const [name, value] of Object.entries({ x, y })) if (value !== undefined && !Number.isFinite(value)) throw invalid(`\`${name}\` is not a number`);
  if (ref === undefined && selector === undefined && x === undefined && y === undefined) throw invalid("pass `ref`, `selector`, or `x` and `y`");
  if (ref !== undefined || selector !== undefined) await run.recorder?.reached(ref === undefined ? { selector } : { ref });
  return await ask(run, "scroll", { ref, selector, x, y });
}

/** The mouse does not reach a frame of another process while its tab is behind another one. */
async function isOutOfReach(run, place) {
  return place.at.frame_id > 0 && !(await chrome.tabs.get(run.tab_id)).active;
}

/** Attaches where that can be; a tab behind another one is made to paint and to take input. */
export async function prepare(run) {
  if (!(await tryAttach(run.tab_id))) return false;
  const tab = await chrome.tabs.get(run.tab_id);
  if (!tab.active) await actAsFocused(run.tab_id);
  return true;
}

/**
 * Does something and waits for what it sets off: a navigation until its page is there, a download, a
 * dialog that is left open. None of them makes the action a failure.
 */
export async function withConsequences(run, act) {
  const seen = { dialog: undefined, is_asked: false, opened_tab_id: undefined };
  const wake = {};
  const is_open = new Promise((resolve) => (wake.dialog = resolve));
  const is_asked = new Promise((resolve) => (wake.asked = resolve));
  const stopDialogs = onDialog((tab_id, { type, message, outcome }) => {
    if (tab_id !== run.tab_id) return;
    seen.dialog = { type, message, outcome };
    if (outcome === "open") wake.dialog();
  });
  const stopTab = watchTab(run.tab_id, (kind, { opened_tab_id, url }) => {
    if (kind === "opened") seen.opened_tab_id = opened_tab_id;
    if (kind !== "asked" && kind !== "begun" && kind !== "moved") return;
    seen.is_asked = true;
    if (kind === "asked") seen.outside = outsideOf(url);
    wake.asked();
  });
  const limited = { own_port: run.own_port, onStop: (stop) => run.onStop(stop), left_ms: Math.min(run.waitLimit(CONSEQUENCE_LIMIT_MS), CONSEQUENCE_LIMIT_MS) };
  // Followed from before the act, so that nothing of it is missed.
  const followed = follow(run.tab_id, limited).catch((error) => ({ kind: "failed", error }));
  const late = sleep(limited.left_ms, { kind: "slow" });
  try {
    const acted = act().catch(async (error) => {
      // The browser takes the debugger away where a page hands over to another program.
      await Promise.race([is_asked, sleep(CONSEQUENCE_MS)]);
      if (!seen.outside) throw error;
    });
    const value = await Promise.race([acted, is_open]);
    await Promise.race([is_asked, is_open, followed, sleep(CONSEQUENCE_MS)]);
    if (!seen.is_asked || seen.dialog?.outcome === "open") return { value, ...seen };
    // The browser hands it to another program, or asks the user; the page stays.
    if (seen.outside) return { value, ...seen, end: leftToUser(seen.outside) };
    return { value, ...seen, end: await ending(run, await Promise.race([followed, late])) };
  } finally {
    stopDialogs();
    stopTab();
  }
}

function leftToUser(scheme) {
  return { navigated: false, reason: OTHER_PROGRAM, scheme };
}

/** The scheme of an address that is for another program, such as `mailto:`. */
function outsideOf(url) {
  const scheme = /^[a-z][a-z\d+.-]*:/i.exec(url ?? "")?.[0].toLowerCase();
  return scheme && !PAGES.has(scheme) ? scheme : undefined;
}

async function ending(run, end) {
  if (end.kind === "slow" || end.kind === "stopped") return { navigating: true };
  if (end.kind === "failed") {
    if (end.error.reason === "tab_gone") return { tab_closed: true };
    return { navigated: false, reason: end.error.message };
  }
  const { tab_id: _, ...there } = await arrival(run.tab_id, run, end);
  return there;
}

export function told(place, is_real, { dialog, opened_tab_id, end }) {
  return dropAbsent({ target: place.what, input: is_real ? "real" : "events", dialog, opened_tab_id, ...end });
}

export async function press(tab_id, place, { button, count, modifiers }) {
  // The page hears of the move with the next picture, for which a tab behind another one may take its time, or before a
  // press. What it does when it is scrolled it does with that picture, too, and before the press.
  const moved = mouse(tab_id, "mouseMoved", place, { modifiers });
  moved.catch(() => {});
  await (place.has_scrolled ? moved : Promise.race([moved, sleep(HOVER_MS)]));
  for (let n = 1; n <= count; n++) {
    await mouse(tab_id, "mousePressed", place, { button, buttons: BUTTONS[button].bit, clickCount: n, modifiers });
    await mouse(tab_id, "mouseReleased", place, { button, buttons: 0, clickCount: n, modifiers });
  }
  // Whatever became of the move: the click is done.
  await moved.catch(() => {});
}

/** What a page hears of clicks, where they are not real. */
function eventsOf(button, count) {
  const once = ["pointerdown", "mousedown", "pointerup", "mouseup", BUTTONS[button].event];
  const all = Array.from({ length: count }, () => once).flat();
  return count > 1 && button === "left" ? [...all, "dblclick"] : all;
}

/**
 * Moves the mouse, and has the page hear of it now: by itself it hears with its next picture, which a tab that is not shown
 * paints seconds later. That no button is let go is nothing to a page, and what comes before it is told first.
 */
export async function move(tab_id, place, more = {}) {
  mouse(tab_id, "mouseMoved", place, more).catch(() => {});
  await mouse(tab_id, "mouseReleased", place, { ...more, button: "none" });
}

export function mouse(tab_id, type, { x, y }, more = {}) {
  return send(tab_id, "Input.dispatchMouseEvent", { type, x, y, ...more });
}

async function strike(tab_id, { key, code, keyCode, text, modifiers }) {
  const event = (type, one, mask, more = {}) =>
    send(tab_id, "Input.dispatchKeyEvent", { type, key: one.key, code: one.code, windowsVirtualKeyCode: one.keyCode, modifiers: mask, ...more });
  const held = heldKeys(modifiers);
  let mask = 0;
  for (const one of held) await event("rawKeyDown", one, (mask |= one.bit));
  const commands = modifiers & 6 && key.toLowerCase() === "a" ? { commands: ["selectAll"] } : {};
  await event(text ? "keyDown" : "rawKeyDown", { key, code, keyCode }, modifiers, { ...(text ? { text } : {}), ...commands });
  await event("keyUp", { key, code, keyCode }, modifiers);
  for (const one of held.reverse()) await event("keyUp", one, (mask &= ~one.bit));
}

function textOf({ text }) {
  if (typeof text !== "string") throw invalid("`text` is missing");
  return text;
}

function sleep(ms, value) {
  return new Promise((done) => setTimeout(done, ms, value));
}
