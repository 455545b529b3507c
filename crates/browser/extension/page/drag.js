// `drag {from: {ref|selector|x, y}, to: {ref|selector|x, y}}` -> `{target, input: "real"}`, and what came of it as with `click`.
//
// By real input. Where the page's element is draggable the browser would begin a drag of its own, which nothing but a
// person's mouse can steer: it is intercepted, and its events are given to the page.

import { CommandError } from "../commands/errors.js";
import { on, send } from "../tabs/sessions.js";
import { mouse, move, prepare, told, withConsequences } from "./input.js";
import { ask, reach } from "./reach.js";

const STEPS = 8;
const INTERCEPT_MS = 2000;

export async function drag({ from, to }, run) {
  if (!(await prepare(run))) {
    throw new CommandError("tool_failed", "the debugger cannot attach, and nothing else drags", { guarantee: "not_executed", reason: "not_attachable" });
  }
  // Both are there before anything is done.
  await placeOf(run, to, {});
  const start = await placeOf(run, from, { enabled: true, hit: true });
  const held = new Held(run.tab_id, start);
  const forget = run.onStop(() => held.letGo());
  await send(run.tab_id, "Input.setInterceptDrags", { enabled: true });
  try {
    const done = await withConsequences(run, () => carry(run, held, start, to));
    return told(start, true, done);
  } finally {
    forget();
    await held.letGo();
    await send(run.tab_id, "Input.setInterceptDrags", { enabled: false }).catch(() => {});
  }
}

async function carry(run, held, start, to) {
  const { tab_id } = run;
  const frame_id = start.at?.frame_id;
  await ask(run, "watchDrag", { frame_id });
  await held.press();
  // A page that is scrolled to show the end moves the start along, which does not matter any more.
  const end = await placeOf(run, to, {});
  for (let n = 1; n <= STEPS && !held.data; n++) {
    if (run.ended) return;
    await held.moveTo(between(start, end, n / STEPS));
    if (n === 2) await held.intercepted(await ask(run, "dragBegan", { frame_id }).catch(() => ({})));
  }
  if (run.ended) return;
  if (!held.data) return await held.release(end);
  for (const type of ["dragEnter", "dragOver", "dragOver", "drop"]) await send(tab_id, "Input.dispatchDragEvent", { type, x: end.x, y: end.y, data: held.data });
  held.is_held = false;
}

/** The mouse while its button is held. */
class Held {
  is_held = false;
  data = null;

  constructor(tab_id, start) {
    Object.assign(this, { tab_id, start });
    this.stop = on("Input.dragIntercepted", (id, { data }) => {
      if (id !== tab_id) return;
      this.data = data;
      this.wake?.();
    });
  }

  async press() {
    await move(this.tab_id, this.start);
    this.is_held = true;
    await mouse(this.tab_id, "mousePressed", this.start, { button: "left", buttons: 1, clickCount: 1 });
  }

  moveTo(place) {
    return move(this.tab_id, place, { button: "left", buttons: 1 });
  }

  /** A drag that the page lets begin is handed over soon. */
  async intercepted({ began }) {
    if (!began || this.data) return;
    await Promise.race([new Promise((resolve) => (this.wake = resolve)), new Promise((resolve) => setTimeout(resolve, INTERCEPT_MS))]);
  }

  async release(place) {
    this.is_held = false;
    await mouse(this.tab_id, "mouseReleased", place, { button: "left", buttons: 0, clickCount: 1 });
  }

  /** Puts down where it was taken up what is still held. */
  async letGo() {
    this.stop();
    if (!this.is_held) return;
    this.is_held = false;
    if (this.data) await send(this.tab_id, "Input.dispatchDragEvent", { type: "dragCancel", x: this.start.x, y: this.start.y, data: this.data }).catch(() => {});
    await mouse(this.tab_id, "mouseReleased", this.start, { button: "left", buttons: 0, clickCount: 1 }).catch(() => {});
  }
}

async function placeOf(run, { ref, selector, x, y }, needs) {
  if (x !== undefined) return { x, y, what: `the point ${x}, ${y}` };
  return await reach(run, { ref, selector }, needs);
}

function between(start, end, part) {
  return { x: start.x + (end.x - start.x) * part, y: start.y + (end.y - start.y) * part };
}
