// Pause: while the user wants peace every command is refused before it begins. It outlives the service
// worker and the browser; only the user ends it.

import { CommandError } from "../commands/errors.js";

const KEY = "paused_at";

export class Pause {
  #area;
  /** When it began, in milliseconds since 1970; null while commands are taken. */
  since = null;

  /** `area` is a chrome.storage area that outlives the browser. */
  constructor(area) {
    this.#area = area;
  }

  async load() {
    this.since = (await this.#area.get(KEY))[KEY] ?? null;
  }

  /** Counts from this call on; resolves when it is written. */
  async set(is_on, now = Date.now()) {
    this.since = is_on ? (this.since ?? now) : null;
    await this.#area.set({ [KEY]: this.since });
  }

  /** Fails while it is on. Called before anything of a command is done. */
  check() {
    if (this.since === null) return;
    throw new CommandError("peer_not_ready", "the user has paused commands in this browser", {
      guarantee: "not_executed",
      reason: "paused",
      hint: "ask the user to press Resume on the page of the Raincheck extension, then call again",
    });
  }
}
