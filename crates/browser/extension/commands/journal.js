// What this browser profile knows of every command, written before anything is done about it, so
// that a restarted service worker never runs a command again. Large answers go to a blob store.
//
// A record: {id, state, attempt, fence, entry?, life, at, answer?, is_large?}; the entry is kept until it runs. States only go forward:
//   received -> accepted -> running -> answered -> settled
// `received`: not confirmed by the server, so it has not run. `settled`: the server has given its
// verdict on the answer, which is kept for a while in case the command is delivered again.

const PREFIX = "command:";
// chrome.storage.session holds 10 MB: the answers of all kept records fit.
const INLINE_CHARS = 16 * 1024;
const KEEP_SETTLED_MS = 10 * 60_000;
const KEEP_RECORDS = 200;
const ORDER = ["received", "accepted", "running", "answered", "settled"];

export class Journal {
  #area;
  #blobs;
  #records = new Map();
  /** Answers that could not be written, by command; lost with the worker. */
  #unwritten = new Map();

  /** `area` is a chrome.storage area; `blobs` has `put(key, value)`, `get(key)` and `delete(key)`. */
  constructor(area, blobs) {
    this.#area = area;
    this.#blobs = blobs;
  }

  /** Reads back what the last service worker wrote. */
  async load() {
    const stored = await this.#area.get(null);
    for (const [key, record] of Object.entries(stored)) {
      if (key.startsWith(PREFIX)) this.#records.set(record.id, record);
    }
    return [...this.#records.values()];
  }

  find(id) {
    return this.#records.get(id);
  }

  all(...states) {
    return [...this.#records.values()].filter((record) => states.includes(record.state));
  }

  /**
   * Writes new records, each in the place of an older one of the same command. What cannot be written is known to this worker all the
   * same: delivered again, it is no other command.
   */
  async begin(records) {
    for (const record of records) this.#records.set(record.id, record);
    await this.#put(records);
  }

  async advance(record, state, more = {}) {
    if (ORDER.indexOf(state) < ORDER.indexOf(record.state)) throw new Error(`${record.id}: ${record.state} cannot become ${state}`);
    Object.assign(record, more, { state });
    await this.#write(record);
  }

  /** Keeps an answer; it stays readable with `answerOf` until the record is pruned. */
  async answer(record, answer) {
    const is_large = JSON.stringify(answer).length > INLINE_CHARS;
    try {
      if (is_large) await this.#blobs.put(record.id, answer);
    } catch (error) {
      // What is written still says `running`: another worker knows that the answer was lost.
      console.error(error);
      this.#unwritten.set(record.id, answer);
      Object.assign(record, { state: "answered", is_large });
      return;
    }
    await this.advance(record, "answered", { answer: is_large ? undefined : answer, is_large });
  }

  async answerOf(record) {
    if (this.#unwritten.has(record.id)) return this.#unwritten.get(record.id);
    return record.is_large ? await this.#blobs.get(record.id) : record.answer;
  }

  async forget(record) {
    this.#records.delete(record.id);
    this.#unwritten.delete(record.id);
    await this.#area.remove(PREFIX + record.id);
    if (record.is_large) await this.#blobs.delete(record.id);
  }

  /** Forgets settled records that are old or too many; never one that is still open. */
  async prune(now) {
    const settled = this.all("settled").sort((a, b) => a.at - b.at);
    const surplus = settled.length - KEEP_RECORDS;
    for (const [n, record] of settled.entries()) {
      if (n < surplus || now - record.at > KEEP_SETTLED_MS) await this.forget(record);
    }
  }

  async #write(record) {
    if (this.#records.get(record.id) === record) await this.#put([record]);
  }

  /** Writes records; an area that is full loses what is settled first. */
  async #put(records) {
    const written = Object.fromEntries(records.map((record) => [PREFIX + record.id, record]));
    try {
      await this.#area.set(written);
    } catch {
      for (const record of this.all("settled")) if (!records.includes(record)) await this.forget(record);
      await this.#area.set(written);
    }
  }
}
