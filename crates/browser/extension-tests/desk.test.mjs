// What the user does on the extension's page: pause, stop, close origins; and what the page is told.

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { Journal } from "../extension/commands/journal.js";
import { Runner } from "../extension/commands/runner.js";
import { BY_USER, Desk } from "../extension/status/desk.js";
import { setOrigins } from "../extension/status/origins.js";
import { sendEventsWith, sendNow } from "../extension/tabs/observed.js";
import { Area, Blobs, Server, command, until, untilStopped } from "./fakes.mjs";

/** A browser whose storage outlives its workers. */
class Browser {
  session = new Area();
  local = new Area();
  server = new Server();
  blobs = new Blobs();
  pages = new Map([[3, { id: 3, url: "https://shop.example/cart", title: "Your basket" }]]);
  ran = [];
  now = 1_000_000;
  badges = [];
  later = [];

  chrome = {
    storage: { session: this.session, local: this.local },
    action: { setBadgeText: ({ text }) => this.badges.push(text) },
    tabs: { get: async (id) => this.pages.get(id) ?? Promise.reject(new Error(`No tab with id: ${id}`)) },
  };

  /** A worker as `worker.js` puts it together; `act(entry, run)` is what commands do. */
  async start(act = async () => "done") {
    this.journal = new Journal(this.session, this.blobs);
    this.desk = new Desk(this.chrome, this.journal, { now: () => this.now, later: (work) => this.later.push(work) });
    this.runner = new Runner({
      journal: this.journal,
      post: (items) => (this.desk.told(items), this.server.post(items)),
      target: async (entry) => (this.desk.admit(), { tab_id: entry.tab_id, lane: entry.tab_id ?? null }),
      perform: async (entry, run) => (await this.desk.begin(run), this.ran.push(entry.correlation_id), await act(entry, run)),
    });
    this.desk.cancel = (id, who) => this.runner.cancel(id, who);
    await this.desk.load();
    await this.runner.recover();
    this.desk.link(true);
    return this;
  }

  async deliver(...entries) {
    this.desk.delivered(entries);
    await this.runner.deliver(entries);
  }

  ask(ask, more = {}) {
    return this.desk.answer({ ask, ...more });
  }

  async settled() {
    await until(() => this.journal.all("received", "accepted", "running", "answered").length === 0);
  }

  /** Lets what was put off happen: writes of the list, the end of a lit badge. */
  async wait() {
    for (const work of this.later.splice(0)) await work();
  }
}

const sent = [];
sendEventsWith(async (batch) => (sent.push(...batch), 200));

const forever = () => new Promise(() => {});

beforeEach(() => setOrigins({ mode: "all_but", closed: [], open: [] }, { local: new Area() }));

test("while it is paused a command does not run, and its caller is told why, and what to do [BROWSER-25]", async () => {
  const browser = await new Browser().start();
  await browser.ask("pause");
  await browser.deliver(command("a", { tab_id: 3 }));
  await browser.settled();
  const { status, error } = browser.server.last("a");
  assert.deepEqual([browser.ran, status, error.code, error.guarantee, error.reason], [[], "error", "peer_not_ready", "not_executed", "paused"]);
  assert.match(error.hint, /Resume/);
  await browser.ask("resume");
  await browser.deliver(command("b", { tab_id: 3 }));
  await browser.settled();
  assert.deepEqual([browser.ran, browser.server.last("b").status], [["b"], "complete"]);
});

test("a pause outlives the service worker, and what it left behind does not run either [BROWSER-25]", async () => {
  const browser = await new Browser().start(forever);
  await browser.deliver(command("runs", { tab_id: 3 }), command("behind", { tab_id: 3 }));
  await until(() => browser.ran.length === 1);
  await browser.ask("pause");
  await browser.start();
  assert.notEqual((await browser.ask("state")).paused_at, null);
  await browser.runner.connected();
  await browser.settled();
  const { error } = browser.server.last("behind");
  assert.deepEqual([browser.ran, error.reason, error.guarantee], [["runs"], "paused", "not_executed"]);
});

test("a server is told of a pause when it comes, and of each change [BROWSER-25]", async () => {
  const browser = await new Browser().start();
  await sendNow(60_000);
  sent.length = 0;
  await browser.ask("pause");
  browser.desk.connected();
  await browser.ask("resume");
  await sendNow(60_000);
  assert.deepEqual(sent.map((event) => event.paused), [true, true, false]);
});

test("a command that waits in its lane when the pause comes does not begin; what runs goes on", async () => {
  let finish;
  const browser = await new Browser().start(() => new Promise((resolve) => (finish = resolve)));
  await browser.deliver(command("runs", { tab_id: 3 }), command("waits", { tab_id: 3 }));
  await until(() => finish);
  await browser.ask("pause");
  finish("whole");
  await browser.settled();
  assert.deepEqual([browser.server.last("runs").result, browser.server.last("waits").error.reason], ["whole", "paused"]);
  assert.deepEqual(browser.ran, ["runs"]);
});

test("a stop of the user ends a command as a cancel does, and says who it was [BROWSER-26]", async () => {
  const stops = [];
  const browser = await new Browser().start((_, run) => untilStopped(run, (status) => void stops.push(status)));
  await browser.deliver(command("a", { tab_id: 3 }), command("b", { tab_id: 3 }));
  await until(() => browser.ran.length === 1);
  await browser.ask("stop", { id: "a" });
  await until(() => browser.server.ended.has("a"));
  const { status, error } = browser.server.last("a");
  assert.deepEqual([stops, status, error.code, error.message, error.reason, error.guarantee], [["cancelled"], "error", "cancelled", BY_USER.message, "stopped_by_user", "unknown"]);
  await until(() => browser.ran.length === 2);
  await browser.deliver({ type: "cancel", correlation_id: "b" });
  await browser.settled();
  const { status: end, error: told } = browser.server.last("b");
  assert.deepEqual([end, told.reason], ["cancelled", undefined], "a cancel of the server is not the user's");
});

test("what does not stop is not told to have stopped", async () => {
  const browser = await new Browser().start((_, run) => {
    run.onStop(() => false);
    return forever();
  });
  await browser.deliver(command("a", { tab_id: 3 }));
  await until(() => browser.ran.length === 1);
  await browser.ask("stop", { id: "a" });
  await browser.settled();
  const { error } = browser.server.last("a");
  assert.deepEqual([error.goes_on, error.code, error.reason, error.guarantee], [true, "tool_failed", "stopped_by_user", "unknown"]);
});

test("stop all ends what runs and what waits, and nothing comes after it; a result that was there counts [CANCEL-5]", async () => {
  const browser = await new Browser().start((entry, run) => (entry.tab_id === 4 ? "there" : untilStopped(run)));
  browser.pages.set(4, { id: 4, url: "about:blank", title: "" });
  await browser.deliver(command("done", { tab_id: 4 }));
  await browser.settled();
  await browser.deliver(command("runs", { tab_id: 3 }), command("waits", { tab_id: 3 }));
  await until(() => browser.ran.includes("runs"));
  await browser.ask("stop_all");
  await browser.deliver(command("next", { tab_id: 3 }));
  await browser.settled();
  assert.equal(browser.server.last("next").error.reason, "paused");
  const ends = ["done", "runs", "waits"].map((id) => browser.server.last(id).status);
  assert.deepEqual(ends, ["complete", "error", "error"]);
  const reasons = ["runs", "waits"].map((id) => [browser.server.last(id).error.reason, browser.server.last(id).error.guarantee]);
  assert.deepEqual(reasons, [["stopped_by_user", "unknown"], ["stopped_by_user", "not_executed"]]);
});

test("a stop of what has ended, or of what nobody knows, does nothing", async () => {
  const browser = await new Browser().start();
  await browser.deliver(command("a", { tab_id: 3 }));
  await browser.settled();
  await browser.ask("stop", { id: "a" });
  await browser.ask("stop", { id: "nobody" });
  assert.deepEqual(browser.server.last("a").status, "complete");
});

test("the page is told what runs, in which tab, since when, and what ended how", async () => {
  let finish;
  const browser = await new Browser().start(() => new Promise((_, reject) => (finish = reject)));
  await browser.deliver(command("a", { tab_id: 3, params: { action: "click", ref: "e7" }, deadline_ms: 9000, caller: { owner: "ann", connection: "c-7" } }));
  await until(() => finish);
  const before = (await browser.ask("state")).live;
  assert.deepEqual(before, [
    { id: "a", attempt: 1, action: "click", detail: "e7", caller: { owner: "ann", key: "ann/c-7", n: 1 }, tab_id: 3, at: 1_000_000, limit_ms: 9000, began_at: 1_000_000, url: "https://shop.example/cart", title: "Your basket" },
  ]);
  browser.now += 40;
  finish(new Error("it is gone"));
  await browser.settled();
  const { live, recent } = await browser.ask("state");
  assert.deepEqual([live, recent.length, recent[0].end, recent[0].message, recent[0].ended_at], [[], 1, "error", "it is gone", 1_000_040]);
});

test("an origin that the user closed is left alone, and its caller is told [BROWSER-27]", async () => {
  const browser = await new Browser().start();
  await browser.ask("origins", { origins: { mode: "all_but", closed: ["shop.example"], open: [] } });
  await browser.deliver(command("a", { tab_id: 3 }));
  await browser.settled();
  const { error } = browser.server.last("a");
  assert.deepEqual([browser.ran, error.code, error.reason, error.guarantee], [[], "url_blocked", "origin_closed", "not_executed"]);
  assert.ok(!JSON.stringify(browser.server.last("a")).includes("shop.example"), "not even its name is told");
  const refused = await browser.ask("origins", { origins: { mode: "all_but", closed: ["no host!"], open: [] } });
  assert.match(refused.error, /no host!/);
  assert.deepEqual(refused.origins.closed, ["shop.example"]);
});

test("the badge says that there is no server, that it is paused, and how many run, and stays lit a moment", async () => {
  let finish;
  const browser = await new Browser().start(() => new Promise((resolve) => (finish = resolve)));
  const shown = () => browser.badges.at(-1);
  assert.equal(shown(), "");
  await browser.deliver(command("a", { tab_id: 3 }));
  await until(() => finish);
  assert.equal(shown(), "1");
  finish();
  await browser.settled();
  assert.equal(shown(), "1");
  await browser.wait();
  assert.equal(shown(), "");
  await browser.ask("pause");
  assert.equal(shown(), "II");
  browser.desk.link(false);
  assert.equal(shown(), "!");
});
