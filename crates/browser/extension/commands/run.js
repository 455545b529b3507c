// One run of a command: its clock, and the ways it can be stopped. The first end counts.

import { CommandError, asCommandError, unfinished } from "./errors.js";

/** What a cancel ends a command as, unless it is somebody else's than the server's. */
export const ON_REQUEST = { status: "cancelled", message: "cancelled on request" };

const STOP_GRACE_MS = 3000;

export class Run {
  #resolve;
  #end = new Promise((resolve) => (this.#resolve = resolve));
  #stops = new Set();
  #ends = [];
  #limit_ms;
  #begun;
  #has_begun = false;
  /** Settles with the work, however that ends. */
  #work = Promise.resolve(true);
  ended = null;
  engine = undefined;

  constructor(id, limit_ms, report = () => {}) {
    this.id = id;
    this.#limit_ms = limit_ms;
    this.#begun = performance.now();
    this.report = report;
  }

  /** Resolves once it has ended. */
  get over() {
    return this.#end;
  }

  /** Milliseconds until the limit. */
  get left_ms() {
    return Math.max(0, this.#limit_ms - (performance.now() - this.#begun));
  }

  /** Milliseconds for a wait that still leaves time to tell what was missing. */
  waitLimit(most_ms) {
    return Math.max(0, Math.min(most_ms, this.left_ms - 250));
  }

  /** Registers how to stop what runs now; returns how to take that back. */
  onStop(stop) {
    this.#stops.add(stop);
    return () => this.#stops.delete(stop);
  }

  /** Registers what is done when the run has ended, however it did. */
  onEnd(act) {
    this.#ends.push(act);
  }

  /** What is cancelled before it began does not begin. */
  cancel({ status, message, reason } = ON_REQUEST) {
    const guarantee = this.#has_begun ? "unknown" : "not_executed";
    this.stop("cancelled", new CommandError("cancelled", message, { guarantee, reason }), status);
  }

  /**
   * Ends the run as it is: the end is noted first, then the work is stopped. Where a stop answers false, fails, or takes
   * too long, or the work does not come to its end after it, the end is `unfinished`. `told` is the status that the server is told.
   */
  stop(status, error, told = status) {
    if (this.ended) return;
    this.ended = { status: told, error: error.toWire() };
    const stops = [...this.#stops].map((stop) => Promise.resolve().then(() => stop(status)));
    this.#isOver(stops, status).then((is_over) => {
      if (!is_over) this.ended = unfinished(this.ended);
      this.#resolve(this.ended);
    });
  }

  async #isOver(stops, status) {
    const grace = new Promise((done) => setTimeout(done, STOP_GRACE_MS, false));
    const ends = await Promise.race([Promise.allSettled(stops), grace]);
    if (!ends || !ends.every((end) => end.status === "fulfilled" && end.value !== false)) return false;
    // Where the page or the tab went away nothing of it is left.
    return status === "error" || (await Promise.race([this.#work, grace]));
  }

  /** Lets the work go on until it ends, is stopped, or reaches the limit. Never rejects. */
  async outcome(work) {
    const timer = setTimeout(() => {
      const message = `it ran longer than ${this.#limit_ms} ms`;
      this.stop("timeout", new CommandError("execution_timeout", message, { hint: "pass a larger timeout_ms" }));
    }, this.#limit_ms);
    const begin = () => {
      if (this.ended) return;
      this.#has_begun = true;
      return work();
    };
    const done = Promise.resolve().then(begin);
    this.#work = done.then(
      () => true,
      () => true,
    );
    done.then(
      (result) => this.#finish({ status: "complete", result }),
      (error) => this.#finish({ status: "error", error: asCommandError(error).toWire() }),
    );
    try {
      return await this.#end;
    } finally {
      clearTimeout(timer);
      for (const act of this.#ends) act();
    }
  }

  #finish(end) {
    if (this.ended) return;
    this.ended = end;
    this.#resolve(end);
  }
}
