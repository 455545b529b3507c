// One queue per tab: what is done in a tab is done in order, tabs do not wait for each other.

export class Lanes {
  #tails = new Map();

  /** Runs `work` after everything that was given to this lane before; a lane of null is no lane. */
  run(lane, work) {
    if (lane === null) return work();
    const before = this.#tails.get(lane) ?? Promise.resolve();
    const done = before.then(work);
    const tail = done.then(ignore, ignore).then(() => {
      if (this.#tails.get(lane) === tail) this.#tails.delete(lane);
    });
    this.#tails.set(lane, tail);
    return done;
  }

  get size() {
    return this.#tails.size;
  }
}

function ignore() {}
