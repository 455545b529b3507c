// The life of a delivered command:
//
//   journal, and post `accepted` -> the server confirms -> run in the tab's lane -> keep the answer, and post it
//
// Nothing runs before it is written down and the server has confirmed, nothing runs twice, and an answer is
// posted again until the server has given its verdict.

import { CommandError, asCommandError, dropAbsent } from "./errors.js";
import { Lanes } from "./lanes.js";
import { ON_REQUEST, Run } from "./run.js";

const INTERIM_MS = 2000;
const DEFAULT_LIMIT_MS = 10_000;
const DEFAULT_ACCEPT_MS = 3000;
const SUREST_MAX_BYTES = 64 * 1024;
const UNSTORED = "storage_unavailable";
const AGAIN_MS = 2000;

export class Runner {
  #journal;
  #post;
  #target;
  #perform;
  #placeOf;
  #now;
  #pause;
  #life = crypto.randomUUID();
  #lanes = new Lanes();
  #runs = new Map();
  /** Whether commands that came just now are written down; promises. */
  #written = new WeakMap();
  /** How runs ended whose answers are not kept yet. */
  #ends = new WeakMap();
  #turns = new Map();
  #sending = new Set();

  /**
   * `post(items)` resolves with `{status, json}` or rejects when there is no server.
   * `target(entry)` resolves with `{tab_id, lane}`, and more that the run is to know; `perform(entry, run)` does
   * the work; `placeOf(entry, run)` resolves with what the answer says of where it was done.
   */
  constructor({ journal, post, target, perform, placeOf = async () => ({}), now = Date.now, pause = setTimeout }) {
    this.#journal = journal;
    this.#post = post;
    this.#target = target;
    this.#perform = perform;
    this.#placeOf = placeOf;
    this.#now = now;
    this.#pause = (work, ms) => pause(work, ms);
  }

  /** How many commands have not ended. */
  get open() {
    return this.#journal.all("received", "accepted", "running").length;
  }

  get runs() {
    return [...this.#runs.values()];
  }

  /** Takes up what the service worker before this one left behind. */
  async recover() {
    for (const record of await this.#journal.load()) {
      if (record.life === this.#life) continue;
      record.life = this.#life;
      if (record.state === "accepted") await this.#resume(record);
      if (record.state === "running") {
        const error = new CommandError("worker_lost", "the extension's worker was restarted while the command ran; it is not run again", {
          hint: "look at the page before running it again",
        });
        await this.#journal.answer(record, this.#item(record, { status: "error", error: error.toWire() }));
      }
    }
  }

  /** Handles the entries of one poll. */
  async deliver(entries) {
    const fresh = [];
    const repeated = [];
    for (const entry of entries) {
      if (typeof entry?.correlation_id !== "string") continue;
      if (entry.type === "cancel") this.cancel(entry.correlation_id);
      else if (entry.type === "browser_action") {
        const known = this.#journal.find(entry.correlation_id);
        if (!known || (known.state === "settled" && known.attempt !== entry.attempt)) fresh.push(this.#record(entry));
        else repeated.push(this.#again(known, entry));
      }
    }
    if (fresh.length > 0) {
      // At the same time: the browser has what is to be written before it has the post, and keeps it also where this worker is lost.
      const written = this.#journal.begin(fresh).then(() => true, (error) => (complain(error), false));
      for (const record of fresh) this.#written.set(record, written);
      await this.#accept(fresh);
    }
    await Promise.all(repeated);
    await this.#journal.prune(this.#now());
  }

  /** Tells a server that is there (again) everything it may not know. */
  async connected() {
    const now = this.#now();
    const received = this.#journal.all("received");
    const is_late = (record) => now - record.at >= (record.entry.accept_ms ?? DEFAULT_ACCEPT_MS);
    const late = received.filter(is_late);
    await this.#accept(received.filter((record) => !late.includes(record)));
    await this.#disown(late);
    const live = this.#journal.all("accepted", "running");
    if (live.length > 0) await this.#send(live.map((record) => this.#item(record, { status: "pending" })));
    for (const record of this.#journal.all("answered")) await this.#deliverAnswer(record).catch(complain);
  }

  /** `who` says why, where it is not the server that asks. */
  cancel(id, who = ON_REQUEST) {
    const record = this.#journal.find(id);
    const run = this.#runs.get(id);
    if (run) run.cancel(who);
    else if (record?.state === "received" || record?.state === "accepted") {
      // The server asks only where it has confirmed, also when its word is still on its way.
      this.#conclude(record, unstarted(who.status, "cancelled", who.message, who.reason)).catch(complain);
    } else if (record?.state === "answered" || record?.state === "settled") this.#deliverAnswer(record).catch(complain);
  }

  /** Stops a command and waits for its end. Returns `{may_go_on}`: whether its answer leaves open that it goes on; undefined for one that is not known. */
  async halt(id) {
    this.cancel(id);
    const end = await this.#runs.get(id)?.over;
    const record = this.#journal.find(id);
    if (!record) return undefined;
    const answer = end ?? this.#ends.get(record) ?? (await this.#journal.answerOf(record));
    const { goes_on, code, guarantee } = answer?.error ?? {};
    return { may_go_on: !answer || goes_on === true || (code === "worker_lost" && guarantee !== "not_executed") };
  }

  /** An accepted command that had not begun may still run, unless its time is over. */
  async #resume(record) {
    if (this.#now() - record.at < limitOf(record.entry)) this.#start(record);
    else await this.#journal.answer(record, this.#item(record, unstarted("error", "worker_lost", "the extension's worker was restarted too late")));
  }

  #record(entry) {
    const { correlation_id: id, attempt, fence } = entry;
    return { id, attempt, fence, entry, state: "received", life: this.#life, at: this.#now() };
  }

  /** The same command once more: what is known of it is told, it does not run again. */
  async #again(record, entry) {
    Object.assign(record, { attempt: entry.attempt, fence: entry.fence });
    if (record.state === "received") await this.#accept([record]);
    else if (record.state === "answered" || record.state === "settled") await this.#deliverAnswer(record);
    else await this.#send([this.#item(record, { status: "pending" })]);
  }

  async #accept(records) {
    if (records.length === 0) return;
    const verdicts = await this.#send(records.map((record) => this.#item(record, { status: "accepted" })));
    if (verdicts === null) return;
    for (const record of records) {
      // One of an earlier worker was read back.
      const is_written = await (this.#written.get(record) ?? true);
      if (this.#journal.find(record.id) !== record || record.state !== "received") continue;
      const is_accepted = verdicts.get(record.id)?.accepted === true;
      if (is_accepted && !is_written) this.#giveUp(record);
      else if (is_accepted) {
        // Not awaited: lost with the worker, it is only asked for again; `running` is awaited.
        this.#journal.advance(record, "accepted").catch(complain);
        this.#start(record);
      } else {
        await this.#journal.forget(record);
      }
    }
  }

  /** What could not be written down does not run; a server that did confirm it is told so. */
  #giveUp(record) {
    this.#conclude(record, unstarted("error", "worker_lost", "the browser's storage did not take it down")).catch(complain);
  }

  /** What was not confirmed in time does not run; a server that did confirm it is told so. */
  async #disown(records) {
    if (records.length === 0) return;
    const verdicts = await this.#send(records.map((record) => this.#item(record, { status: "accepted" })));
    for (const record of records) {
      if (this.#journal.find(record.id) !== record || record.state !== "received") continue;
      if (verdicts?.get(record.id)?.accepted !== true) await this.#journal.forget(record);
      else await this.#conclude(record, unstarted("error", "worker_lost", "its confirmation came too late"));
    }
  }

  async #start(record) {
    // The server counts from the acceptance: what has not had its turn by then never began.
    const over = () => {
      if (record.state === "accepted") this.#conclude(record, unstarted("error", "peer_not_ready", "another command kept its tab busy until its time was over", "busy")).catch(complain);
    };
    this.#turns.set(record.id, setTimeout(over, limitOf(record.entry)));
    try {
      const place = await this.#target(record.entry);
      await this.#lanes.run(place.lane, () => this.#run(record, place));
    } catch (error) {
      await this.#conclude(record, { status: "error", error: asCommandError(error).toWire() });
    }
  }

  async #run(record, target) {
    clearTimeout(this.#turns.get(record.id));
    this.#turns.delete(record.id);
    if (record.state !== "accepted") return;
    const { entry } = record;
    const run = new Run(record.id, limitOf(entry), (progress, partial) => this.#progress(record, progress, partial));
    Object.assign(run, target);
    // Before the write: a cancel that comes meanwhile finds the run.
    this.#runs.set(record.id, run);
    const interim = setTimeout(() => this.#progress(record), INTERIM_MS);
    let outcome;
    try {
      await this.#journal.advance(record, "running", { entry: undefined });
      outcome = await run.outcome(() => this.#perform(entry, run));
      this.#ends.set(record, outcome);
    } finally {
      clearTimeout(interim);
      this.#runs.delete(record.id);
    }
    const place = await this.#placeOf(entry, run).catch(() => ({}));
    // Not awaited: the next command of the lane need not wait for the server.
    this.#conclude(record, { ...outcome, engine: run.engine, tab_id: run.tab_id, ...place }).catch(complain);
  }

  async #conclude(record, fields) {
    const answer = this.#item(record, fields);
    const kept = this.#journal.answer(record, answer);
    kept.catch(complain);
    await this.#deliverAnswer(record, answer, kept);
  }

  #progress(record, progress, partial) {
    if (record.state !== "running") return;
    this.#send([this.#item(record, progress ? { status: "progress", progress, partial } : { status: "pending" })]);
  }

  /** Posts an answer; without a verdict it stays kept, and is posted again. */
  async #deliverAnswer(record, answer, kept) {
    if (this.#sending.has(record.id)) return;
    this.#sending.add(record.id);
    try {
      const { attempt, fence } = record;
      const told = answer ?? (await this.#journal.answerOf(record)) ?? this.#item(record, lostAnswer());
      const verdict = (await this.#send([{ ...told, ...dropAbsent({ attempt, fence }) }]))?.get(record.id);
      // One that could not be written is kept in memory.
      await kept?.catch(() => {});
      if (!verdict || verdict.reason === UNSTORED) this.#later(record);
      else if (record.state === "answered") await this.#journal.advance(record, "settled");
    } finally {
      this.#sending.delete(record.id);
    }
  }

  /** An answer that did not arrive, or could not be stored, is posted again after a while. */
  #later(record) {
    this.#pause(() => {
      if (record.state === "answered") this.#deliverAnswer(record).catch(complain);
    }, AGAIN_MS);
  }

  /** Posts items; returns the verdicts by command, or null where there are none. */
  async #send(items) {
    let answer;
    try {
      answer = await this.#post(items);
      if (answer.status === 413) answer = await this.#post(items.map((item) => cut(item, answer.json)));
    } catch {
      return null;
    }
    if (answer.status !== 200 || !Array.isArray(answer.json?.results)) return null;
    return new Map(answer.json.results.filter(Boolean).map((verdict, n) => [verdict.correlation_id ?? items[n]?.correlation_id, verdict]));
  }

  #item(record, fields) {
    return dropAbsent({ correlation_id: record.id, attempt: record.attempt, fence: record.fence, ...fields });
  }
}

function complain(error) {
  console.error(error);
}

function limitOf(entry) {
  return entry.deadline_ms ?? DEFAULT_LIMIT_MS;
}

function lostAnswer() {
  const error = new CommandError("worker_lost", "it ended, and its answer was lost", { hint: "look at the page before running it again" });
  return { status: "error", error: error.toWire() };
}

function unstarted(status, code, message, reason) {
  return { status, error: new CommandError(code, message, { guarantee: "not_executed", reason }).toWire() };
}

/** An item whose result did not fit: its size and its beginning. */
export function cut(item, refusal) {
  if (item.result === undefined && item.error === undefined) return item;
  const max = refusal?.max_bytes ?? refusal?.error?.max_bytes ?? SUREST_MAX_BYTES;
  const { result, error, ...rest } = item;
  if (error !== undefined) return { ...rest, error: { code: error.code, message: String(error.message).slice(0, 1000), guarantee: error.guarantee } };
  const text = JSON.stringify(result);
  const total_bytes = new TextEncoder().encode(text).length;
  const message = `the result has ${total_bytes} bytes, more than the server takes at once; this is its beginning`;
  return { ...rest, result: { truncated: true, total_bytes, message, head: text.slice(0, Math.floor(Math.min(max, 1 << 20) / 8)) } };
}
