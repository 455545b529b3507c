// A storage area, a blob store and a server for tests of the command's life.

import { Journal } from "../extension/commands/journal.js";
import { Runner } from "../extension/commands/runner.js";

/** `chrome.storage.session`: what is put in is copied, as the real one does. */
export class Area {
  stored = {};
  max_bytes = Infinity;
  async get(names) {
    return structuredClone(names === null ? this.stored : Object.fromEntries(Object.entries(this.stored).filter(([name]) => [names].flat().includes(name))));
  }
  async set(more) {
    const next = { ...this.stored, ...structuredClone(more) };
    if (Buffer.byteLength(JSON.stringify(next)) > this.max_bytes) throw new Error("Session storage quota bytes exceeded");
    this.stored = next;
  }
  async remove(names) {
    for (const name of [names].flat()) delete this.stored[name];
  }
}

export class Blobs extends Map {
  async put(key, value) {
    this.set(key, structuredClone(value));
  }
}

/** Answers posts as the server does; `refuses` are commands it does not (or no longer) know. */
export class Server {
  items = [];
  ended = new Set();
  refuses = new Set();
  is_up = true;
  is_full = false;
  max_bytes = Infinity;

  post = async (items) => {
    if (!this.is_up) throw new TypeError("Failed to fetch");
    if (JSON.stringify(items).length > this.max_bytes) return { status: 413, json: { code: "too_large", max_bytes: this.max_bytes } };
    this.items.push(...structuredClone(items));
    return { status: 200, json: { results: items.map((item) => this.#verdict(item)) } };
  };

  #verdict({ correlation_id, status }) {
    if (this.refuses.has(correlation_id)) return { correlation_id, accepted: false, reason: "unknown" };
    if (this.is_full) return { correlation_id, accepted: false, reason: "storage_unavailable" };
    const is_end = !["accepted", "pending", "progress"].includes(status);
    if (is_end && this.ended.has(correlation_id)) return { correlation_id, accepted: false, reason: "already_terminal" };
    if (is_end) this.ended.add(correlation_id);
    return { correlation_id, accepted: true };
  }

  /** The statuses posted about one command, in order. */
  told(id) {
    return this.items.filter((item) => item.correlation_id === id).map((item) => item.status);
  }

  last(id) {
    return this.items.findLast((item) => item.correlation_id === id);
  }
}

/** One profile: storage that outlives its workers, and a worker made by `start`. */
export class Profile {
  area = new Area();
  blobs = new Blobs();
  server = new Server();
  ran = [];
  now = 1_000_000;
  paused = [];

  /** `act(entry, run)` is what commands do; a tab's commands share a lane. */
  async start(act = (entry) => entry.params.value) {
    const { area, blobs, server } = this;
    this.journal = new Journal(area, blobs);
    this.runner = new Runner({
      journal: this.journal,
      post: server.post,
      target: async (entry) => ({ tab_id: entry.tab_id, lane: entry.tab_id ?? null }),
      perform: async (entry, run) => {
        this.ran.push(entry.correlation_id);
        return await act(entry, run);
      },
      now: () => this.now,
      pause: (work) => this.paused.push(work),
    });
    await this.runner.recover();
    return this.runner;
  }

  /** Lets every pause end. */
  wake() {
    for (const work of this.paused.splice(0)) work();
  }

  /** Waits until no command is open and every answer has its verdict. */
  async settled() {
    await until(() => this.journal.all("received", "accepted", "running", "answered").length === 0);
  }
}

export function command(id, more = {}) {
  return { id: `q-${id}`, correlation_id: id, type: "browser_action", params: { action: "execute_js" }, attempt: 1, fence: 7, accept_ms: 3000, deadline_ms: 5000, ...more };
}

/** Lets the event loop turn until something holds. */
export async function until(holds) {
  for (let turns = 0; !holds(); turns++) {
    if (turns > 100_000) throw new Error("it never came");
    await new Promise((done) => setImmediate(done));
  }
}

/** Work that goes on until its run is stopped, and ends then. */
export function untilStopped(run, stop = () => {}) {
  return new Promise((resolve) =>
    run.onStop((status) => {
      const told = stop(status);
      resolve();
      return told;
    }),
  );
}
