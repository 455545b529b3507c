// `execute_js {script}` -> the value itself, as data (see serialize.js); `undefined` is no result at all.
//
// Engines, best first: `debugger` works under every content security policy, tells errors in full
// and can stop a script; `scripting` runs where the page's policy allows code from text.

import { CommandError, dropAbsent, invalid, navigatedAway, tabGone } from "../commands/errors.js";
import { freeFromDialog } from "../tabs/dialogs.js";
import { isSilent, silences } from "../tabs/meter.js";
import { watchTab } from "../tabs/navigation.js";
import { SCRIPT_NAME, attach, on, send, stopScript } from "../tabs/sessions.js";
import { readSetting, writeSetting } from "../tabs/settings.js";
import { hasCleanBuiltIns, inCleanRealm } from "./realm.js";
import { LIMITS, serialize } from "./serialize.js";

const ENGINES = { debugger: byDebugger, scripting: byScripting };
const DECLARES_OR_AWAITS = /\b(let|const|class|await|using)\b/;
const NAVIGATED = /navigated or closed|Cannot find context|context was destroyed|Frame with ID \d+ was removed/i;

const UNATTACHED = new Set(["not_attachable", "debugger_refused", "devtools_open"]);
const DETACHED = /Detached while|not attached/i;
const COLLECTED_MS = [0, 10, 40, 100];
const COLLECT_LIMIT_MS = 1000;
const GONE_MS = 100;

let counter = 0;

export async function executeJs({ script }, run) {
  if (typeof script !== "string") throw invalid("`script` is missing");
  const wanted = await readSetting("engine", "auto");
  const left_out = [];
  for (const [name, engine] of Object.entries(ENGINES)) {
    if (wanted !== "auto" && wanted !== name) continue;
    try {
      run.engine = name;
      return await engine(script, run);
    } catch (error) {
      // Only an engine that could not begin gives way to the next one.
      if (!error.is_engine_missing) throw error;
      left_out.push(`${name}: ${error.message}`);
    }
  }
  run.engine = undefined;
  throw new CommandError("tool_failed", `no engine can run scripts in this page: ${left_out.join("; ")}`, { guarantee: "not_executed", reason: "no_engine" });
}

/** `configure {what: "engine", engine}` -> `{engine}`. */
export async function setEngine({ value = "auto", engine = value }) {
  if (engine !== "auto" && !ENGINES[engine]) throw invalid(`engine must be one of auto, ${Object.keys(ENGINES).join(", ")}`);
  await writeSetting("engine", engine);
  return { engine };
}

// ---- chrome.debugger ---------------------------------------------------------------------

async function byDebugger(script, run) {
  const { tab_id } = run;
  await attach(tab_id).catch((error) => {
    throw UNATTACHED.has(error.reason) ? missing(error.message) : error;
  });
  const name = `${SCRIPT_NAME}${++counter}.js`;
  const group = name;
  let script_id;
  let is_at_work = false;
  const watched = silences(tab_id, "Debugger");
  run.onEnd(on("Debugger.scriptParsed", (id, told) => id === tab_id && told.url === name && (script_id = told.scriptId)));
  settleOnNavigation(run, async () => {
    if ((await freeFromDialog(run)) === false) return false;
    const is_free = await stopScript(tab_id, (frames) => frames.some((frame) => frame.location.scriptId === script_id));
    // What was on the thread has answered before this: what has not waits for something, and nothing stops that.
    await new Promise((done) => setTimeout(done));
    if (is_free && is_at_work) await collect(tab_id, group, () => !is_at_work);
    return is_free && !is_at_work;
  });
  run.onEnd(() => send(tab_id, "Runtime.releaseObjectGroup", { objectGroup: group }).catch(() => {}));
  try {
    is_at_work = true;
    let reply = await evaluate(tab_id, script, name, group);
    // In a block a name may be declared that the page has declared, too.
    if (isDeclaredAlready(reply)) reply = await evaluate(tab_id, `{ ${script}\n}`, name, group);
    if (script_id === undefined && isIllegalReturn(reply)) reply = await evaluate(tab_id, `(async () => {${script}\n})()`, name, group);
    // In REPL mode a promise is given back as it is.
    if (!reply.exceptionDetails && reply.result.subtype === "promise") {
      reply = await send(tab_id, "Runtime.awaitPromise", { promiseObjectId: reply.result.objectId, generatePreview: false });
    }
    is_at_work = false;
    if (reply.exceptionDetails) throw await thrown(tab_id, script_id !== undefined || isUnwatched(tab_id, watched), reply.exceptionDetails);
    return await valueOf(tab_id, reply.result);
  } catch (error) {
    is_at_work = false;
    if (error instanceof CommandError) throw error;
    // A promise that nothing holds any more never settles, and nothing waits for it; the limit ends it like any other.
    if (/Promise was collected/.test(error.message)) return await stopped(run);
    throw await cutShort(tab_id, error.message);
  }
}

/** A promise that nothing holds any more is settled by no one: once the browser has found that out, its script is over. */
async function collect(tab_id, group, is_over) {
  const find = async () => {
    await send(tab_id, "Runtime.releaseObjectGroup", { objectGroup: group });
    // Whoever asks for the objects of a prototype is told of those that are left after a collection.
    const { result } = await send(tab_id, "Runtime.evaluate", { expression: "({})", objectGroup: group });
    await send(tab_id, "Runtime.queryObjects", { prototypeObjectId: result.objectId, objectGroup: group });
    for (const ms of COLLECTED_MS) {
      if (is_over()) return;
      await new Promise((done) => setTimeout(done, ms));
    }
  };
  await Promise.race([find().catch(() => {}), new Promise((done) => setTimeout(done, COLLECT_LIMIT_MS))]);
}

/** Whether the browser may have taken the script without a word: the page makes too many to be told of each. */
function isUnwatched(tab_id, watched) {
  return isSilent(tab_id, "Debugger") || silences(tab_id, "Debugger") !== watched;
}

/** Why the debugger gave no answer: the page or the tab went away, or the debugger did. */
async function cutShort(tab_id, message) {
  await new Promise((done) => setTimeout(done, GONE_MS));
  const tab = await chrome.tabs.get(tab_id).catch(() => null);
  if (!tab) return tabGone(tab_id, "unknown");
  if (DETACHED.test(message)) return taken();
  return NAVIGATED.test(message) ? navigatedAway(tab.pendingUrl || tab.url) : new CommandError("tool_failed", message, { reason: "browser_error" });
}

function taken() {
  return new CommandError("tool_failed", "the debugger was taken from the tab while it ran", { reason: "debugger_taken", goes_on: true });
}

/** REPL mode lets scripts declare a name again and await; without it a returned promise is awaited in the same step. */
function evaluate(tab_id, script, name, group) {
  const is_repl = DECLARES_OR_AWAITS.test(script);
  return send(tab_id, "Runtime.evaluate", {
    expression: `${script}\n//# sourceURL=${name}`,
    objectGroup: group,
    awaitPromise: !is_repl,
    replMode: is_repl,
    userGesture: true,
  });
}

/** A `return` outside a function is refused before anything of the script has run. */
function isIllegalReturn({ exceptionDetails: told }) {
  return told !== undefined && !told.stackTrace && told.exception?.description === "SyntaxError: Illegal return statement";
}

/** A name that is declared already is refused before anything of the script has run. */
function isDeclaredAlready({ exceptionDetails: told }) {
  return told !== undefined && !told.stackTrace && /^SyntaxError: Identifier '.*' has already been declared$/.test(told.exception?.description ?? "");
}

async function valueOf(tab_id, remote) {
  if (remote.type === "undefined") return undefined;
  if (remote.type === "symbol") return remote.description;
  if (remote.subtype === "proxy") return `[${remote.description}]`;
  if (remote.objectId === undefined) return primitive(remote);
  const reply = (await hasCleanBuiltIns(tab_id)) ? await serialized(tab_id, remote) : await inCleanRealm(tab_id, remote);
  if (reply.exceptionDetails) throw new CommandError("tool_failed", "the result could not be read", { guarantee: "executed", reason: "unreadable_result" });
  return reply.result.value.value;
}

function serialized(tab_id, { objectId }) {
  return send(tab_id, "Runtime.callFunctionOn", { functionDeclaration: serialize.toString(), objectId, arguments: [{ value: LIMITS }], returnByValue: true });
}

function primitive({ type, subtype, value, unserializableValue }) {
  if (unserializableValue !== undefined) return unserializableValue;
  if (subtype === "null") return null;
  if (type === "string" && value.length > LIMITS.max_string) return `${value.slice(0, LIMITS.max_string).toWellFormed()}[cut: ${value.length - LIMITS.max_string} more characters]`;
  return value;
}

/** `has_parsed`: whether the browser took the script for one; what it did not has not run. */
async function thrown(tab_id, has_parsed, { text, exception, lineNumber, columnNumber, stackTrace, url }) {
  const is_error = exception?.subtype === "error";
  const told = exception ? await valueOf(tab_id, exception).catch(() => undefined) : undefined;
  const value = is_error ? undefined : told;
  const frame = stackTrace?.callFrames.find((one) => one.url.startsWith(SCRIPT_NAME)) ?? { lineNumber, columnNumber, url };
  const message = is_error ? exception.description.split("\n    at ", 1)[0] : value === undefined ? text : `Uncaught ${JSON.stringify(value)}`;
  return new CommandError("tool_failed", message.slice(0, 4000), {
    guarantee: has_parsed ? "executed" : "not_executed",
    reason: "script_error",
    details: dropAbsent({
      name: exception?.className,
      line: frame.lineNumber + 1,
      column: frame.columnNumber + 1,
      stack: is_error ? exception.description.slice(0, 8000) : undefined,
      cause: is_error ? told?.cause : undefined,
      value,
    }),
  });
}

// ---- chrome.scripting --------------------------------------------------------------------

async function byScripting(script, run) {
  const { tab_id } = run;
  const key = `raincheck-${crypto.randomUUID()}`;
  const target = { tabId: tab_id, frameIds: [0] };
  settleOnNavigation(run, () => false); // nothing can stop it
  try {
    const [{ result: told }] = await chrome.scripting.executeScript({ target, world: "MAIN", func: runInPage, args: [script, key] });
    if (!told) throw missing("the page lets no script in");
    if (told.is_blocked) throw missing("the page's content security policy forbids code from text");
    if (told.error) throw new CommandError("tool_failed", told.error.message, { guarantee: "executed", reason: "script_error", details: told.error });
    const [{ result }] = await chrome.scripting.executeScript({ target, world: "MAIN", func: serialize, args: [LIMITS, key] });
    return result?.value;
  } catch (error) {
    if (error instanceof CommandError || error.is_engine_missing) throw error;
    if (NAVIGATED.test(error.message)) throw navigatedAway();
    throw missing(error.message);
  }
}

/** Runs in the page; the value is left under a symbol for `serialize`. */
async function runInPage(script, key) {
  try {
    let value;
    try {
      value = (0, eval)(script);
    } catch (error) {
      if (!(error instanceof SyntaxError) || !/await is only valid|Illegal return/.test(error.message)) throw error;
      const AsyncFunction = (async () => {}).constructor;
      let body;
      try {
        body = AsyncFunction(`return (${script}\n)`);
      } catch {
        body = AsyncFunction(script);
      }
      value = body();
    }
    globalThis[Symbol.for(key)] = await value;
    return {};
  } catch (error) {
    if (error instanceof EvalError || /Content Security Policy|TrustedScript|Trusted Type/i.test(String(error?.message))) return { is_blocked: true };
    const is_error = error instanceof Error;
    return { error: { name: is_error ? error.name : "thrown", message: is_error ? `${error.name}: ${error.message}` : `Uncaught ${String(error)}`, stack: is_error ? error.stack : undefined } };
  }
}

// ---- both --------------------------------------------------------------------------------

/** A navigation ends the script without a word from the page; `stop` is for the other ends. */
function settleOnNavigation(run, stop) {
  run.onStop((status) => (status === "error" ? undefined : stop()));
  run.onEnd(watchTab(run.tab_id, (kind, { url }) => kind === "committed" && run.stop("error", navigatedAway(url))));
}

/** Waits until a run is stopped, if it is not; never resolves. */
function stopped(run) {
  const over = new CommandError("cancelled", "it has ended");
  return new Promise((_, reject) => (run.ended ? reject(over) : run.onStop(() => reject(over))));
}

function missing(message) {
  return Object.assign(new Error(message), { is_engine_missing: true });
}
