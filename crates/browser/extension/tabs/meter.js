// A budget for what each tab tells of itself. A page that logs without end would take the time of
// every other tab: over its budget the browser is asked to say nothing of that kind for a while, so that
// the rest costs nothing, and then to go on. What is said at the start of each while is a sample.

import { watchPages } from "./navigation.js";
import { on, send } from "./sessions.js";
import { record } from "./observed.js";

const PAUSE_MS = 1000;
/** A tab that is over its budget again this soon is left alone for twice as long. */
const SOON_MS = 5000;
const LONGEST_MS = 60_000;
/** What a tab may tell: `most` at once, and `per_s` for long. A message counts for one, and for each thousand characters of it. */
const BUDGETS = {
  Runtime: { kind: "console", most: 1000, per_s: 200, what: "messages of the console", events: ["Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Runtime.executionContextCreated"] },
  Log: { kind: "console", most: 1000, per_s: 200, what: "entries of the log", events: ["Log.entryAdded"] },
  // When the browser goes on to tell of scripts it begins with all that there are: not before the page is left.
  Debugger: { kind: "console", most: 2000, per_s: 300, until_left: true, what: "scripts", events: ["Debugger.scriptParsed", "Debugger.scriptFailedToParse"] },
  Network: { kind: "network", most: 3000, per_s: 300, grows: true, what: "events of requests", events: ["Network.requestWillBeSent", "Network.responseReceived", "Network.dataReceived", "Network.loadingFinished", "Network.loadingFailed"] },
};

export class Bucket {
  #left;
  #at;

  constructor({ most, per_s }, now) {
    Object.assign(this, { most, per_s });
    this.#left = most;
    this.#at = now;
  }

  /** Takes from what is left; false when that is nothing. What is taken in vain costs a second at the most. */
  take(cost, now) {
    const grown = Math.min(this.most, this.#left + ((now - this.#at) / 1000) * this.per_s);
    this.#left = Math.max(-this.per_s, grown - cost);
    this.#at = now;
    return this.#left >= 0;
  }
}

/** By tab and domain: `{bucket, is_silent, n_silences, pause_ms, ended_at}`. */
const meters = new Map();

/** `enable(tab_id, domain)` has the browser tell of a domain again. */
export function watchMeter(enable) {
  for (const [domain, budget] of Object.entries(BUDGETS)) {
    for (const event of budget.events) on(event, (tab_id, params) => count(tab_id, domain, budget, params, enable));
  }
  on("Inspector.targetCrashed", forgetMeter);
  // A new session tells of everything.
  on("detached", forgetMeter);
  watchPages((kind, tab_id) => {
    const meter = kind === "committed" && meters.get(keyOf(tab_id, "Debugger"));
    if (meter?.is_silent) goOn(tab_id, "Debugger", meter, enable);
  });
}

export function forgetMeter(tab_id) {
  for (const domain of Object.keys(BUDGETS)) meters.delete(keyOf(tab_id, domain));
}

function count(tab_id, domain, budget, params, enable) {
  const key = keyOf(tab_id, domain);
  const now = performance.now();
  if (!meters.has(key)) meters.set(key, { bucket: new Bucket(budget, now), is_silent: false, n_silences: 0, pause_ms: PAUSE_MS, ended_at: -Infinity });
  const meter = meters.get(key);
  if (meter.bucket.take(costOf(params), now) || meter.is_silent) return;
  meter.pause_ms = budget.grows && now - meter.ended_at < SOON_MS ? Math.min(meter.pause_ms * 2, LONGEST_MS) : PAUSE_MS;
  meter.is_silent = true;
  meter.n_silences++;
  record({ kind: budget.kind, tab_id, ...wordsOf(budget) });
  send(tab_id, `${domain}.disable`).catch(() => {});
  if (!budget.until_left) setTimeout(() => goOn(tab_id, domain, meter, enable), meter.pause_ms);
}

async function goOn(tab_id, domain, meter, enable) {
  if (domain === "Debugger") meter.bucket = new Bucket(BUDGETS.Debugger, performance.now());
  if (domain === "Runtime") await send(tab_id, "Runtime.discardConsoleEntries").catch(() => {});
  if (domain === "Log") await send(tab_id, "Log.clear").catch(() => {});
  meter.is_silent = false;
  meter.ended_at = performance.now();
  await enable(tab_id, domain).catch(() => {});
}

/** Whether events of a tab are left out now. */
export function isSilent(tab_id, domain) {
  return meters.get(keyOf(tab_id, domain))?.is_silent === true;
}

/** Changes whenever events of a tab are, or may have been, left out. */
export function silences(tab_id, domain) {
  const meter = meters.get(keyOf(tab_id, domain));
  return meter ? `${meter.n_silences} ${meter.is_silent}` : "0 false";
}

function wordsOf({ kind, what, per_s, until_left }) {
  const text = `this page makes more than ${per_s} ${what} a second: ${until_left ? "until it is left, what runs in it cannot be stopped" : "only a part of them is kept"}`;
  return kind === "console" ? { source: "raincheck", level: "warning", text } : { url: "", error: text };
}

function costOf({ args, exceptionDetails, entry }) {
  let n_chars = entry?.text?.length ?? exceptionDetails?.exception?.description?.length ?? 0;
  for (const { value, description } of args ?? []) n_chars += typeof value === "string" ? value.length : (description?.length ?? 8);
  return 1 + n_chars / 1000;
}

function keyOf(tab_id, domain) {
  return `${tab_id}/${domain}`;
}
