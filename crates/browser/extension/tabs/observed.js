// What happens in tabs, as bounded batches of events for `POST /events`:
//
//   {kind: "console", tab_id, at, level, text, source: "console|exception|log", url?, line?, column?}
//   {kind: "network", tab_id, at, request_id, method, url, type, status?, mime?, bytes?, duration_ms?, from_cache?, error?,
//    body?, body_cut?, binary?: {bytes}}                  body: text answers of fetch and XHR only
//   {kind: "dialog", tab_id, at, type, message, url, outcome: "dismissed|accepted|open"}
//   {kind: "tab", tab_id, at, event: "open|updated|activated|replaced|closed", url?, title?, window_id?, new_tab_id?}
//   {kind: "navigation", tab_id, at, url, transition?, error?}
//   {kind: "user", at, paused}                            the user paused commands, or resumed them
//   {kind, at, dropped: n}                                n events of this kind did not fit
//
// `at` is milliseconds since 1970.

import { whyClosed } from "../status/origins.js";

const MAX_WAITING = 1000;
const MAX_BATCH = 200;
const FLUSH_MS = 100;
const RETRY_MS = 2000;
const MAX_TEXT = 8192;

const waiting = [];
const dropped = new Map();
let send = null;
let timer = null;
let sending = null;
let is_refused = false;
let n_recorded = 0;

/** `post(batch)` resolves with the HTTP status, or rejects while there is no server. */
export function sendEventsWith(post) {
  send = post;
}

export function record(event) {
  // Of a closed origin it is told that a tab is there, since commands look for it, and no more.
  if (event.url && whyClosed(event.url) !== null) {
    if (event.kind === "tab") record({ ...event, url: undefined, title: undefined });
    return;
  }
  if (waiting.length >= MAX_WAITING) {
    const oldest = waiting.shift();
    dropped.set(oldest.kind, (dropped.get(oldest.kind) ?? 0) + 1);
  }
  waiting.push({ at: Date.now(), ...event });
  n_recorded++;
  schedule(FLUSH_MS);
}

/** Text of a page in a bounded form that says how much is missing. */
export function bounded(text, most = MAX_TEXT) {
  const all = String(text);
  return all.length <= most ? all : `${all.slice(0, most).toWellFormed()}… [cut: ${all.length - most} more characters]`;
}

/** Sends what happened so far, so that it is there before what is told next; waits no longer than `limit_ms`. */
export async function sendNow(limit_ms) {
  let timer;
  const late = new Promise((done) => (timer = setTimeout(done, limit_ms)));
  await Promise.race([sendAll(), late]);
  clearTimeout(timer);
}

/** Sends batch after batch of what waits now; what cannot be sent waits on. */
async function sendAll() {
  const until = n_recorded;
  await sending;
  while (waiting.length > 0 && n_recorded - waiting.length < until && !is_refused) await flush();
}

function schedule(ms) {
  timer ??= setTimeout(flush, ms);
}

function flush() {
  clearTimeout(timer);
  timer = null;
  sending ??= sendBatch().finally(() => {
    sending = null;
    if (waiting.length > 0) schedule(is_refused ? RETRY_MS : FLUSH_MS);
  });
  return sending;
}

async function sendBatch() {
  if (waiting.length === 0) return;
  for (const [kind, count] of dropped) waiting.unshift({ kind, at: Date.now(), dropped: count });
  dropped.clear();
  const batch = waiting.splice(0, MAX_BATCH);
  try {
    const status = await send(batch);
    if (status === 401 || status === 403 || status >= 500) throw new Error(`answered ${status}`);
    is_refused = false;
  } catch {
    is_refused = true;
    waiting.unshift(...batch.slice(-(MAX_WAITING - waiting.length)));
  }
}
