// What a caller does in a tab, as a script that can be replayed: calls of `interact` whose targets are no refs.
//
// `record_start` -> `{tab_id, url}` · `record_stop` -> `{action: "batch", steps, values?, recorded: {url, n_steps, left_out?}}`, or a list of them where
//   one batch does not hold all steps · `observe recording` -> `{is_on, tab_id, url, n_steps, script}`
//
// An act is noted once it has succeeded. Its target is the one that the page's agent finds at the act, just before it. What is
// typed where secrets are typed is not noted: `{{secret:NAME}}` stands in its place, and `values` names what a replay needs.
// One recording per caller; it lasts until the browser ends, or the next one begins.

import { CommandError, dropAbsent } from "../commands/errors.js";
import { call } from "../page/agents.js";
import { framesOf, ownFrames } from "../page/frames.js";
import { writtenBy } from "../page/keys.js";
import { askWhere } from "../page/reach.js";
import { whereKeysGo } from "../page/secret-keys.js";
import { nameOf } from "./callers.js";
import { dropSettings, readSetting, writeSetting } from "./settings.js";

const MAX_STEPS = 500;
const MAX_BYTES = 128 * 1024;
const MAX_LEFT_OUT = 20;
const MAX_RECORDINGS = 20;
const BATCH_STEPS = 50;
/** The longest that one target is looked for, and the part of what is left of a command that all of noting may take. */
const LOOK_MS = 1000;
const SHARE = 1 / 4;
const PLACEHOLDER = /^\{\{secret:([a-z0-9_]{1,40})\}\}$/;

/** What is noted of each act beside its target. Anything else changes nothing that a replay would need. */
const NOTED = {
  execute_js: ["script"],
  navigate: ["url"],
  back: [],
  forward: [],
  reload: [],
  click: ["button", "count", "modifiers"],
  hover: [],
  type: ["text", "origin"],
  fill: ["text", "origin"],
  press: ["key"],
  select: ["value"],
  scroll: ["x", "y"],
  wait_for: ["text", "url", "state", "network_idle"],
  fill_form: ["origin"],
  upload: ["files"],
  drag: [],
  emulate: ["viewport", "device", "network", "cpu"],
  page_tools: ["name", "arguments", "origin", "schema_hash"],
};

// ---- the actions -----------------------------------------------------------------------------

export async function startRecording(_, run) {
  const known = await read(run.caller);
  if (known?.is_on) throw new CommandError("tool_failed", `tab ${known.tab_id} is recorded already`, { guarantee: "not_executed", reason: "recording_already" });
  const { url } = await chrome.tabs.get(run.tab_id);
  await makeRoom(run.caller);
  await write(run.caller, { id: crypto.randomUUID(), is_on: true, tab_id: run.tab_id, url, steps: [], bytes: 0, names: [], left_out: [], n_left_out: 0 });
  return { tab_id: run.tab_id, url };
}

export async function stopRecording(_, run) {
  const known = await read(run.caller);
  if (!known?.is_on) throw none();
  await write(run.caller, { ...known, is_on: false });
  return scriptOf(known);
}

export async function showRecording(_, run) {
  const known = await read(run.caller);
  if (!known) throw none();
  return { is_on: known.is_on, tab_id: known.tab_id, url: known.url, n_steps: known.steps.length, script: scriptOf(known) };
}

/** Gives up the oldest recordings where there are too many, of callers that may be gone. */
async function makeRoom(caller) {
  const own = nameOf(caller);
  const names = [...(await readSetting("recordings", [])).filter((name) => name !== own), own];
  const gone = new Set(names.splice(0, Math.max(0, names.length - MAX_RECORDINGS)).map((name) => `recording:${name}`));
  if (gone.size > 0) await dropSettings((name) => gone.has(name));
  await writeSetting("recordings", names);
}

function none() {
  return new CommandError("tool_failed", "nothing is recorded for this caller", { guarantee: "not_executed", reason: "no_recording" });
}

/** The steps as arguments of `interact`: of one batch, or of several in order. */
export function scriptOf({ steps, url, left_out, n_left_out }) {
  const batches = [];
  for (let n = 0; n === 0 || n < steps.length; n += BATCH_STEPS) {
    const part = steps.slice(n, n + BATCH_STEPS);
    const values = Object.fromEntries(namesIn(part).map((name) => [name, null]));
    batches.push(dropAbsent({ action: "batch", steps: part, values: Object.keys(values).length > 0 ? values : undefined }));
  }
  batches[0].recorded = dropAbsent({ url, n_steps: steps.length, n_left_out: n_left_out || undefined, left_out: left_out.length > 0 ? left_out : undefined });
  return batches.length === 1 ? batches[0] : batches;
}

// ---- noting ----------------------------------------------------------------------------------

/**
 * What notes the act of a run, or null where its caller records nothing in this tab. It comes before the act: where a key goes is
 * seen only until it has been pressed. Never fails.
 */
export async function recorderOf(run, params) {
  const action = params.action ?? params.what;
  if (!Object.hasOwn(NOTED, action) || (action === "page_tools" && params.name === undefined)) return null;
  const known = await read(run.caller).catch(() => null);
  if (!known?.is_on || known.tab_id !== run.tab_id) return null;
  const recorder = new Recorder(run, action, known.id);
  await recorder.begin(params);
  return recorder;
}

export class Recorder {
  #run;
  #action;
  #id;
  #targets = new Map();
  #tried = new Set();
  #is_key_secret = false;
  #left_ms;

  constructor(run, action, id) {
    this.#run = run;
    this.#action = action;
    this.#id = id;
    this.#left_ms = run.left_ms * SHARE;
  }

  async begin({ key }) {
    if (this.#action === "press" && writtenBy(key) !== null) this.#is_key_secret = await this.#seesSecret();
  }

  /** An element is about to be acted on: what means it later is found now. Never fails. */
  async reached(picked, frame_id) {
    const key = keyOf(picked);
    if (this.#targets.has(key)) return;
    this.#tried.add(key);
    try {
      this.#targets.set(key, await this.#soon(() => this.#look(picked, frame_id)));
    } catch {
      // It is noted as left out, unless its own selector is known.
    }
  }

  async #look(picked, frame_id) {
    const found = await askWhere(this.#run, "stable", { ...picked, frame_id });
    const { selectors, ...told } = found.value;
    return { ...told, selector: await this.#alone(selectors, found.frame_id) };
  }

  /** The first selector that is not taken by a page, or by a frame, that is looked at before this one. */
  async #alone(selectors, frame_id) {
    if (frame_id === 0) return selectors[0];
    const frames = ownFrames(await framesOf(this.#run.tab_id));
    const before = [0, ...frames.map((frame) => frame.frame_id).slice(0, frames.findIndex((frame) => frame.frame_id === frame_id))];
    for (const selector of selectors) {
      const are_taken = await Promise.all(before.map((id) => this.#takes(selector, id)));
      if (!are_taken.includes(true)) return selector;
    }
    return undefined;
  }

  /** Whether a selector matches in a frame. One that does not say so may take it; one that is closed to commands takes nothing. */
  async #takes(selector, frame_id) {
    const told = await call(this.#run.tab_id, "matching", { selector }, frame_id).catch(() => ({}));
    return told.is_closed !== true && told.value?.n !== 0;
  }

  /** Notes an act that succeeded. Never fails: an act is not undone because it could not be noted. */
  async note(params) {
    try {
      await this.#note(params);
    } catch (error) {
      console.warn(`an act was not noted: ${error.message}`);
    }
  }

  async #note(params) {
    const before = await this.#recording();
    if (!before) return;
    const names = [...before.names];
    let step;
    let why = "the recording is full";
    try {
      step = await this.#stepOf(params, names);
    } catch (error) {
      why = error.message;
    }
    // It may have ended meanwhile, or another act may have been noted.
    const known = await this.#recording();
    if (!known) return;
    const { caller } = this.#run;
    const bytes = known.bytes + new TextEncoder().encode(JSON.stringify(step ?? null)).length;
    if (step !== undefined && known.steps.length < MAX_STEPS && bytes <= MAX_BYTES) {
      try {
        return await write(caller, { ...known, steps: [...known.steps, step], bytes, names });
      } catch {
        why = "the browser has no room for it";
      }
    }
    await write(caller, withLeftOut(known, `${this.#action}: ${why}`));
  }

  /** The recording that this is for, while it goes on. */
  async #recording() {
    const known = await read(this.#run.caller);
    return known?.is_on && known.id === this.#id ? known : null;
  }

  async #stepOf(params, names) {
    const step = { action: this.#action };
    for (const name of NOTED[this.#action]) if (params[name] !== undefined && params[name] !== null) step[name] = params[name];
    if (params.ref !== undefined || params.selector !== undefined) await this.#aim(step, params);
    for (const end of ["from", "to"]) if (this.#action === "drag") step[end] = params[end].x !== undefined ? params[end] : await this.#aim({}, params[end]);
    if (this.#action === "fill_form") await this.#fields(step, params, names);
    if (step.text !== undefined && (this.#action !== "wait_for" || params.secret === true)) this.#hide(step, "text", params, names);
    if (step.value !== undefined && params.secret === true) this.#hide(step, "value", params, names);
    if (this.#action === "press" && writtenBy(params.key) !== null && (await this.#isKeySecret(params))) throw new Error("a key that was pressed where a secret is typed");
    return step;
  }

  /** Gives a step the target that lasts. */
  async #aim(step, { ref, selector }) {
    const target = picked({ ref, selector });
    // What was not found before the act may be another element after it.
    if (!this.#tried.has(keyOf(target)) || this.#action === "wait_for") await this.reached(target);
    const found = this.#targets.get(keyOf(target));
    step.selector = found?.selector ?? selector;
    if (step.selector === undefined) throw new Error("no selector means its element alone");
    return step;
  }

  async #fields(step, params, names) {
    step.fields = [];
    for (const { ref, selector, value, secret } of params.fields) {
      const field = await this.#aim({}, { ref, selector });
      field.value = value;
      this.#hide(field, "value", { ref, selector, secret }, names);
      step.fields.push(field);
    }
    // The password of a form goes to the origin that it went to.
    const origins = new Set(params.fields.map((field) => this.#targets.get(keyOf(picked(field)))?.origin));
    const [origin] = origins;
    if (namesIn([step]).length > 0 && origins.size === 1 && origin !== undefined) step.origin ??= origin;
  }

  /** Puts a name in the place of what must not be noted. What is not known to be none is a secret. */
  #hide(step, member, { ref, selector, secret }, names) {
    const found = this.#targets.get(keyOf(picked({ ref, selector })));
    const words = step[member];
    const is_secret = secret === true || found === undefined || found.is_secret;
    if (typeof words !== "string" && typeof words !== "number") return;
    if (!is_secret && !PLACEHOLDER.test(words)) return;
    step[member] = `{{secret:${nameFor(found?.field, names)}}}`;
    if (member === "text" && found) step.origin ??= found.origin;
  }

  /** A key moves the focus on: it is a secret where it went to one before it was pressed, or goes there now. */
  async #isKeySecret({ ref, selector }) {
    if (this.#is_key_secret) return true;
    const is_aimed = ref !== undefined || selector !== undefined;
    if (is_aimed && this.#targets.get(keyOf({ ref, selector }))?.is_secret !== false) return true;
    return await this.#seesSecret();
  }

  async #seesSecret() {
    const { is_secret } = await this.#soon(() => whereKeysGo(this.#run.tab_id)).catch(() => ({ is_secret: true }));
    return is_secret;
  }

  /** A page that a dialog or a script holds up is not waited for, nor does noting take the time that the act needs. */
  async #soon(work) {
    const limit_ms = Math.min(LOOK_MS, this.#left_ms, this.#run.left_ms / 2);
    if (limit_ms <= 0) throw new Error("the page did not answer in time");
    const begun = performance.now();
    let timer;
    const late = new Promise((_, reject) => (timer = setTimeout(reject, limit_ms, new Error("the page did not answer"))));
    try {
      return await Promise.race([work(), late]);
    } finally {
      clearTimeout(timer);
      this.#left_ms -= performance.now() - begun;
    }
  }
}

/** A name for a value: that of its field, and none twice. */
function nameFor(field, names) {
  const base = String(field ?? "").toLowerCase().replace(/[^a-z0-9]+/g, "_").replace(/^_+|_+$/g, "").slice(0, 30) || "secret";
  let name = base;
  for (let n = 2; names.includes(name); n++) name = `${base}_${n}`;
  names.push(name);
  return name;
}

function picked({ ref, selector }) {
  return ref === undefined ? { selector: String(selector) } : { ref: String(ref) };
}

function keyOf({ ref, selector }) {
  return ref === undefined ? `selector ${selector}` : `ref ${ref}`;
}

function withLeftOut(known, why) {
  const left_out = known.left_out.length < MAX_LEFT_OUT ? [...known.left_out, why.slice(0, 200)] : known.left_out;
  return { ...known, left_out, n_left_out: known.n_left_out + 1 };
}

async function read(caller) {
  return await readSetting(`recording:${nameOf(caller)}`, null);
}

async function write(caller, recording) {
  await writeSetting(`recording:${nameOf(caller)}`, recording);
}

/** The names that stand in steps for what a replay needs. */
export function namesIn(steps) {
  const places = steps.flatMap(({ text, value, fields }) => [text, value, ...(Array.isArray(fields) ? fields.map((field) => field.value) : [])]);
  return [...new Set(places.flatMap((place) => (typeof place === "string" ? (PLACEHOLDER.exec(place)?.[1] ?? []) : [])))];
}
