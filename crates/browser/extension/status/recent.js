// The last commands, as the extension's page shows them: what was asked, in which tab, when, and how it
// ended. What was typed is not among it. It is filled from what passes by anyway (deliveries, starts and
// the items for the server), so that no command waits for it, and lasts until the browser ends.
//
// A row: {id, attempt, action, detail, caller, tab_id?, url?, title?, at, limit_ms, began_at?, ended_at?, end?, reason?, message?, engine?}
// `caller` is {owner, key, n}: the n-th connection that commands came from, and whose it is.
// `end` is a status of the wire, or `dropped` for what the server gave up before it began.

import { parseChord, writtenBy } from "../page/keys.js";

const KEY = "recent";
const KEEP = 50;
const WRITE_MS = 400;
const MAX_DETAIL = 200;
const MAX_TEXT = 300;
const ENDS = new Set(["complete", "error", "timeout", "cancelled"]);

export class Recent {
  #area;
  #now;
  #later;
  #rows = new Map();
  #is_writing = false;

  /** `area` is a chrome.storage area; what is new is written at most every 400 ms. */
  constructor(area, { now = Date.now, later = setTimeout } = {}) {
    this.#area = area;
    this.#now = now;
    this.#later = (work, ms) => later(work, ms);
  }

  /** Reads back what the last service worker wrote. */
  async load() {
    const stored = (await this.#area.get(KEY))[KEY];
    for (const row of Array.isArray(stored) ? stored : []) this.#rows.set(row.id, row);
  }

  /** A command came. The same attempt once more changes nothing. */
  delivered(entry) {
    const known = this.#rows.get(entry.correlation_id);
    if (known && (known.end === undefined || known.attempt === entry.attempt)) return;
    this.#put({
      id: entry.correlation_id,
      attempt: entry.attempt,
      action: text(entry.params?.action ?? entry.params?.what ?? "?", 60),
      detail: detailOf(entry.params ?? {}),
      caller: this.#callerOf(entry.caller),
      tab_id: entry.tab_id,
      at: this.#now(),
      limit_ms: entry.deadline_ms,
    });
  }

  /** A command has its turn. */
  began(id) {
    this.#change(id, { began_at: this.#now() });
  }

  /** Which page a command is at work in. */
  within(id, tab) {
    this.#change(id, { tab_id: tab.id, url: text(tab.url ?? "", MAX_TEXT), title: text(tab.title ?? "", MAX_TEXT) });
  }

  /** What the server is told; the first end that it is told counts. */
  told(items) {
    for (const { correlation_id: id, status, error, engine, tab_id } of items) {
      if (!ENDS.has(status)) continue;
      const row = this.#rows.get(id);
      if (!row || (row.end !== undefined && row.end !== "dropped")) continue;
      const more = { ended_at: this.#now(), end: status, engine };
      if (tab_id !== undefined) more.tab_id = tab_id;
      if (error) Object.assign(more, { reason: error.reason, message: text(error.message ?? error, MAX_TEXT) });
      this.#change(id, more);
    }
  }

  /** The rows, the newest first. What is not open and has no end is one that the server gave up. */
  list(isOpen) {
    for (const row of this.#rows.values()) if (row.end === undefined && !isOpen(row.id)) this.#change(row.id, { end: "dropped", ended_at: this.#now() });
    return [...this.#rows.values()].reverse();
  }

  /** Forgets what has ended. */
  clear() {
    for (const row of this.#rows.values()) if (row.end !== undefined) this.#rows.delete(row.id);
    this.#write();
  }

  /** Connections are told apart by numbers: their own names say nothing to people. */
  #callerOf(caller) {
    const owner = text(caller?.owner ?? "", 60);
    const key = `${owner}/${text(caller?.connection ?? "", 60)}`;
    const known = [...this.#rows.values()].map((row) => row.caller);
    const n = known.find((one) => one.key === key)?.n ?? 1 + Math.max(0, ...known.map((one) => one.n));
    return { owner, key, n };
  }

  #put(row) {
    this.#rows.delete(row.id);
    this.#rows.set(row.id, row);
    // The oldest that has ended goes first: one that runs stays in sight.
    for (const old of [...this.#rows.values()]) {
      if (this.#rows.size <= KEEP) break;
      if (old.end !== undefined) this.#rows.delete(old.id);
    }
    this.#write();
  }

  #change(id, more) {
    const row = this.#rows.get(id);
    if (!row) return;
    Object.assign(row, more);
    this.#write();
  }

  #write() {
    if (this.#is_writing) return;
    this.#is_writing = true;
    this.#later(() => {
      this.#is_writing = false;
      this.#area.set({ [KEY]: [...this.#rows.values()].slice(-2 * KEEP) }).catch((error) => console.warn(error.message));
    }, WRITE_MS);
  }
}

/** What a command is about, in one line. What is typed or answered is told by its length. */
export function detailOf(params) {
  const { action = params.what, url, ref, selector, script, text: words, key, value, accept, name } = params;
  const parts = [];
  if (typeof url === "string") parts.push(url);
  if (typeof script === "string") parts.push(script);
  if (action === "page_tools" && typeof name === "string") parts.push(name);
  if (typeof (ref ?? selector) === "string") parts.push(ref ?? selector);
  if (typeof key === "string") parts.push(toldOfKey(key));
  if (typeof words === "string") parts.push(action === "wait_for" ? `“${words}”` : counted(words));
  if (typeof value === "string") parts.push(counted(value));
  if (action === "dialog") parts.push(accept === false ? "dismiss" : "accept");
  if (action === "dialog_policy") parts.push(params.policy ?? "");
  return text(parts.join(" · ").replace(/\s+/g, " ").trim(), MAX_DETAIL);
}

/** A character may be one of a secret that is pressed key by key; what is no key may be all of it. */
function toldOfKey(key) {
  if (writtenBy(key) !== null) return "one character";
  return parseChord(key) === null ? counted(key) : key;
}

function counted(words) {
  const n_characters = [...words].length;
  return `${n_characters} character${n_characters === 1 ? "" : "s"}`;
}

function text(words, most) {
  const all = String(words);
  return all.length <= most ? all : `${all.slice(0, most - 1).toWellFormed()}…`;
}
