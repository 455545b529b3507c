// Ending for good what a command left at work in its page [BROWSER-23]: it acts on that document alone.

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { Area } from "./fakes.mjs";

/** A browser with tabs, each with the document that it shows. */
class Browser {
  documents = new Map([[7, "first"]]);
  resting = new Set();
  transition = "link";
  reloads = [];
  listeners = new Map();

  constructor() {
    const heard = (name) => ({ addListener: (listener) => this.listeners.set(name, listener), removeListener: () => {} });
    const events = (...names) => Object.fromEntries(names.map((name) => [name, heard(name)]));
    globalThis.chrome = {
      storage: { session: new Area() },
      webNavigation: {
        ...events("onBeforeNavigate", "onCommitted", "onDOMContentLoaded", "onCompleted", "onErrorOccurred", "onHistoryStateUpdated", "onReferenceFragmentUpdated", "onCreatedNavigationTarget"),
        getFrame: async ({ tabId, documentId }) => {
          if (documentId !== undefined) return this.resting.has(documentId) ? { documentId, documentLifecycle: "cached" } : null;
          return this.documents.has(tabId) ? { documentId: this.documents.get(tabId) } : null;
        },
      },
      tabs: { ...events("onUpdated", "onRemoved"), get: async (id) => ({ id, url: "http://a/" }) },
      debugger: { attach: async () => {}, detach: async () => {}, sendCommand: async ({ tabId }, method, params) => await this.command(tabId, method, params) },
    };
  }

  async command(tab_id, method, params) {
    if (method === "Page.getFrameTree") return { frameTree: { frame: { loaderId: `loader of ${this.documents.get(tab_id)}` } } };
    if (method === "Page.getNavigationHistory") return { currentIndex: 0, entries: [{ transitionType: this.transition }] };
    if (method !== "Page.reload") return {};
    await this.before_reload?.();
    // As the browser does: the loader has to be the one that the tab shows.
    if (params.loaderId !== `loader of ${this.documents.get(tab_id)}`) throw new Error("loaderId does not match");
    this.reloads.push(tab_id);
    this.shows(tab_id, "anew");
  }

  shows(tab_id, document_id) {
    this.documents.set(tab_id, document_id);
    this.listeners.get("onCommitted")?.({ tabId: tab_id, frameId: 0, url: "http://a/" });
  }
}

let browser;
let n = 0;
/** What the runner was asked; `known` are its commands. */
let runner;

beforeEach(() => {
  browser = new Browser();
  runner = { halted: [], known: new Map(), halt: async (id) => (runner.halted.push(id), runner.known.get(id)) };
});

const { endScript } = await import("../extension/commands/end.js");
const { watchOver } = await import("../extension/commands/left.js");
const { Run } = await import("../extension/commands/run.js");
const { sendEventsWith } = await import("../extension/tabs/observed.js");
const { watchNavigation } = await import("../extension/tabs/navigation.js");

sendEventsWith(async () => 200);

/** Has a command be left at work in a tab; returns its name. */
async function left(tab_id = 7) {
  watchNavigation();
  const id = `c${++n}`;
  const run = Object.assign(new Run(id, 60_000), { tab_id });
  const end = run.outcome(() => {
    watchOver(run);
    run.onStop(() => false);
    return new Promise(() => {});
  });
  await new Promise((turn) => setImmediate(turn));
  run.cancel();
  assert.equal((await end).error.goes_on, true);
  return id;
}

/** Asks to end a command; returns how that ended. */
async function ended(of) {
  // It acts in a run that is not ended here: the debugger lets a tab go a while after the last one.
  const run = new Run(`r${n}`, 60_000);
  return await new Run(`e${++n}`, 60_000).outcome(() => endScript({ of }, run, runner));
}

test("its page is loaded anew, once", async () => {
  const id = await left();
  assert.deepEqual((await ended(id)).result, { ended: true, reloaded: true });
  assert.deepEqual([browser.reloads, runner.halted], [[7], [id]]);
  // The answer of the command goes on to say that it may go on.
  runner.known.set(id, { may_go_on: true });
  assert.deepEqual((await ended(id)).result, { ended: true, reloaded: false });
  assert.deepEqual(browser.reloads, [7]);
});

test("a page that the user went to meanwhile is left alone, also at the last moment", async () => {
  for (const arrives of ["before", "while"]) {
    const id = await left();
    if (arrives === "before") browser.shows(7, "another");
    else browser.before_reload = () => browser.shows(7, "another");
    assert.deepEqual((await ended(id)).result.ended, true, arrives);
    assert.deepEqual(browser.reloads, [], arrives);
    browser = new Browser();
  }
});

test("a tab that is gone has nothing left", async () => {
  const id = await left();
  browser.documents.delete(7);
  assert.deepEqual((await ended(id)).result, { ended: true, reloaded: false });
});

test("what cannot be ended so is not said to have ended, and nothing is done", async () => {
  const form = await left();
  browser.transition = "form_submit";
  const resting = await left();
  const of_form = await ended(form);
  browser.shows(7, "another");
  browser.resting.add("first");
  const rests = await ended(resting);
  const unknown = await ended("nobody");
  const told = [of_form, rests, unknown].map(({ status, error }) => [status, error.reason, error.guarantee]);
  assert.deepEqual(told, [["error", "page_of_form", "not_executed"], ["error", "page_resting", "not_executed"], ["error", "script_unknown", "not_executed"]]);
  assert.deepEqual(browser.reloads, []);
});

test("what is not known to be at work anywhere is over only where its answer leaves nothing open", async () => {
  runner.known.set("over", { may_go_on: false }).set("open", { may_go_on: true });
  assert.deepEqual((await ended("over")).result, { ended: true, reloaded: false });
  assert.equal((await ended("open")).error.reason, "script_unknown");
});

test("a batch that went to another page is at work there [BROWSER-43]", async () => {
  const { inSteps } = await import("../extension/commands/batch.js");
  watchNavigation();
  const run = Object.assign(new Run(`b${++n}`, 60_000), { tab_id: 7 });
  const act = async ({ action }, step) => {
    step.look();
    if (action === "navigate") return void browser.shows(7, "second");
    step.onStop(() => false);
    await new Promise(() => {});
  };
  const end = run.outcome(() => {
    watchOver(run);
    return inSteps([{ action: "navigate" }, { action: "execute_js" }], run, act);
  });
  await new Promise((turn) => setTimeout(turn));
  run.cancel();
  assert.equal((await end).error.goes_on, true);
  assert.deepEqual((await ended(run.id)).result, { ended: true, reloaded: true });
});
