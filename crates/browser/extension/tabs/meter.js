// A budget for what each tab tells of itself. A page that logs without end would take the time of
// every other tab: over its budget the browser is asked to say nothing of that kind for a while, so that
// the rest costs nothing, and then to go on. What is said at the start of each while is a sample.

import { on, send } from "./sessions.js";
import { record } from "./observed.js";

const PAUSE_MS = 1000;
/** What a tab may tell: `most` at once, and `per_s` for long. A message counts for one, and for each thousand characters of it. */
const BUDGETS = {
  Runtime: { kind: "console", most: 1000, per_s: 200, what: "messages of the console", events: ["Runtime.consoleAPICalled", "Runtime.exceptionThrown"] },
  Log: { kind: "console", most: 1000, per_s: 200, what: "entries of the log", events: ["Log.entryAdded"] },
  Network: { kind: "network", most: 8000, per_s: 1000, what: "events of requests", events: ["Network.requestWillBeSent", "Network.responseReceived", "Network.loadingFinished", "Network.loadingFailed"] },
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

const buckets = new Map();
const silent = new Set();

/** `enable(tab_id, domain)` has the browser tell of a domain again. */
export function watchMeter(enable) {
  for (const [domain, budget] of Object.entries(BUDGETS)) {
    for (const event of budget.events) on(event, (tab_id, params) => count(tab_id, domain, budget, params, enable));
  }
  on("Inspector.targetCrashed", forgetMeter);
}

export function forgetMeter(tab_id) {
  for (const domain of Object.keys(BUDGETS)) buckets.delete(keyOf(tab_id, domain));
}

function count(tab_id, domain, budget, params, enable) {
  const key = keyOf(tab_id, domain);
  const now = performance.now();
  if (!buckets.has(key)) buckets.set(key, new Bucket(budget, now));
  if (buckets.get(key).take(costOf(params), now) || silent.has(key)) return;
  silent.add(key);
  record({ kind: budget.kind, tab_id, ...wordsOf(budget) });
  send(tab_id, `${domain}.disable`).catch(() => {});
  setTimeout(async () => {
    silent.delete(key);
    if (domain === "Runtime") await send(tab_id, "Runtime.discardConsoleEntries").catch(() => {});
    if (domain === "Log") await send(tab_id, "Log.clear").catch(() => {});
    await enable(tab_id, domain).catch(() => {});
  }, PAUSE_MS);
}

/** Whether events of a tab are left out now. */
export function isSilent(tab_id, domain) {
  return silent.has(keyOf(tab_id, domain));
}

function wordsOf({ kind, what, per_s }) {
  const text = `this page makes more than ${per_s} ${what} a second: only a part of them is kept`;
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
