// The life of a delivered command: nothing runs unconfirmed, nothing runs twice, no answer is lost.

import assert from "node:assert/strict";
import { mock, test } from "node:test";

import { Run } from "../extension/commands/run.js";
import { cut } from "../extension/commands/runner.js";
import { Profile, command, until, untilStopped } from "./fakes.mjs";

const forever = () => new Promise(() => {});

test("a command runs once the server has confirmed its acceptance, and its answer is posted [LEASE-5]", async () => {
  const profile = new Profile();
  const runner = await profile.start();
  await runner.deliver([command("a", { params: { value: 42 }, tab_id: 3 })]);
  await profile.settled();
  assert.deepEqual(profile.server.items, [
    { correlation_id: "a", attempt: 1, fence: 7, status: "accepted" },
    { correlation_id: "a", attempt: 1, fence: 7, status: "complete", result: 42, tab_id: 3 },
  ]);
});

test("a command whose acceptance is refused does not run [LEASE-5]", async () => {
  const profile = new Profile();
  const runner = await profile.start();
  profile.server.refuses.add("late");
  await runner.deliver([command("late"), command("good")]);
  await profile.settled();
  assert.deepEqual(profile.ran, ["good"]);
});

test("a command is announced while it is written down, and begins once both are done [LEASE-5]", async () => {
  const profile = new Profile();
  const runner = await profile.start();
  const set = profile.area.set.bind(profile.area);
  let write;
  profile.area.set = async (more) => {
    if (more["command:a"]?.state === "received") await new Promise((resolve) => (write = resolve));
    await set(more);
  };
  const delivered = runner.deliver([command("a")]);
  await until(() => write && profile.server.told("a").length > 0);
  for (let turns = 0; turns < 20; turns++) await new Promise((done) => setImmediate(done));
  assert.deepEqual([profile.server.told("a"), profile.ran], [["accepted"], []]);
  write();
  await delivered;
  await profile.settled();
  assert.deepEqual([profile.server.told("a"), profile.ran], [["accepted", "complete"], ["a"]]);
});

test("a command that cannot be written down does not run, and a server that confirmed it is told [LEASE-4]", async () => {
  const profile = new Profile();
  const runner = await profile.start();
  profile.area.max_bytes = 10;
  profile.server.refuses.add("late");
  await runner.deliver([command("a"), command("late")]);
  await until(() => profile.server.ended.has("a"));
  const { code, guarantee } = profile.server.last("a").error;
  assert.deepEqual([profile.ran, code, guarantee, runner.open], [[], "worker_lost", "not_executed", 0]);
  assert.deepEqual(profile.server.told("late"), ["accepted"]);
});

test("a command that could not be written down and is delivered again before its verdict is the same one: it ends once, and does not run [LEASE-4]", async () => {
  const profile = new Profile();
  const answer = profile.server.post;
  const held = [];
  profile.server.post = async (items) => {
    if (items[0].status === "accepted") await new Promise((resolve) => held.push(resolve));
    return await answer(items);
  };
  const runner = await profile.start();
  profile.area.max_bytes = 10;
  const first = runner.deliver([command("a")]);
  await until(() => held.length === 1);
  for (let turns = 0; turns < 20; turns++) await new Promise((done) => setImmediate(done));
  // There is room again when the server has waited too long for the confirmation.
  profile.area.max_bytes = Infinity;
  const again = runner.deliver([command("a")]);
  await until(() => held.length === 2);
  for (const go of held) go();
  await Promise.all([first, again]);
  await profile.settled();
  const { code, guarantee } = profile.server.last("a").error;
  assert.deepEqual([profile.ran, profile.server.told("a"), code, guarantee], [[], ["accepted", "accepted", "error"], "worker_lost", "not_executed"]);
});

test("a command that could not be written down, whose acceptance met no server, ends when that is back [LEASE-4]", async () => {
  const profile = new Profile();
  const runner = await profile.start();
  profile.area.max_bytes = 10;
  profile.server.is_up = false;
  await runner.deliver([command("a")]);
  profile.server.is_up = true;
  await runner.connected();
  await profile.settled();
  assert.deepEqual([profile.ran, profile.server.told("a"), profile.server.last("a").error.guarantee], [[], ["accepted", "error"], "not_executed"]);
});

test("a missing value has no `result`, null has", async () => {
  const profile = new Profile();
  const runner = await profile.start();
  await runner.deliver([command("u", { params: { value: undefined } }), command("n", { params: { value: null } })]);
  await profile.settled();
  assert.deepEqual(["result" in profile.server.last("u"), profile.server.last("n").result], [false, null]);
});

test("a command that is delivered again is answered from the journal and does not run again", async () => {
  const profile = new Profile();
  const runner = await profile.start();
  await runner.deliver([command("a", { params: { value: 1 } })]);
  await profile.settled();
  await runner.deliver([command("a", { params: { value: 2 } })]);
  assert.deepEqual([profile.ran, profile.server.told("a")], [["a"], ["accepted", "complete", "complete"]]);
  assert.equal(profile.server.last("a").result, 1);
});

test("delivered again while it runs, it is told to be pending, and ends under the newer fence", async () => {
  const profile = new Profile();
  let finish;
  const runner = await profile.start(() => new Promise((resolve) => (finish = resolve)));
  await runner.deliver([command("a")]);
  await until(() => finish);
  await runner.deliver([command("a", { attempt: 2, fence: 9 })]);
  assert.deepEqual(profile.server.told("a"), ["accepted", "pending"]);
  finish("once");
  await profile.settled();
  assert.deepEqual([profile.ran, profile.server.last("a").fence, profile.server.last("a").result], [["a"], 9, "once"]);
});

test("a new attempt after an answer that the server has taken is a new run", async () => {
  const profile = new Profile();
  const runner = await profile.start();
  await runner.deliver([command("a")]);
  await profile.settled();
  profile.server.ended.clear();
  await runner.deliver([command("a", { attempt: 2, fence: 9 })]);
  await profile.settled();
  assert.deepEqual([profile.ran, profile.server.told("a")], [["a", "a"], ["accepted", "complete", "accepted", "complete"]]);
});

test("a restarted worker does not run again what had begun, and says what it knows [LEASE-3]", async () => {
  const profile = new Profile();
  const runner = await profile.start(forever);
  await runner.deliver([command("begun", { tab_id: 1 }), command("behind", { tab_id: 1 })]);
  await until(() => profile.area.stored["command:begun"].state === "running");

  const next = await profile.start(() => "ran after the restart");
  await next.connected();
  await profile.settled();
  assert.deepEqual(profile.ran, ["begun", "behind"]);
  const { status, error } = profile.server.last("begun");
  assert.deepEqual([status, error.code, error.guarantee], ["error", "worker_lost", "unknown"]);
  assert.deepEqual(profile.server.last("behind").result, "ran after the restart");
});

test("what had not begun when the worker was lost does not run after its time", async () => {
  const profile = new Profile();
  const runner = await profile.start(forever);
  await runner.deliver([command("begun", { tab_id: 1 }), command("behind", { tab_id: 1 })]);
  await until(() => profile.area.stored["command:begun"].state === "running");

  profile.now += 6000;
  const next = await profile.start(() => "too late");
  await next.connected();
  await profile.settled();
  const { error } = profile.server.last("behind");
  assert.deepEqual([profile.ran, error.code, error.guarantee], [["begun"], "worker_lost", "not_executed"]);
});

test("answers without a verdict are replayed when the server is back, large ones too [LEASE-6]", async () => {
  const profile = new Profile();
  const large = "x".repeat(100_000);
  let finish;
  const runner = await profile.start((entry) => new Promise((resolve) => (finish = () => resolve(entry.params.value))));
  await runner.deliver([command("a", { params: { value: large } })]);
  await until(() => finish);
  profile.server.is_up = false;
  finish();
  await until(() => profile.journal.all("answered").length === 1);
  assert.ok(JSON.stringify(profile.area.stored).length < 5000, "a large answer lies in the blob store");

  const next = await profile.start();
  profile.server.is_up = true;
  await next.connected();
  await profile.settled();
  assert.equal(profile.server.last("a").result, large);
  await next.connected();
  assert.deepEqual(profile.server.told("a"), ["accepted", "complete"], "a verdict ends the replay");
});

test("any verdict ends the replay of an answer", async () => {
  for (const spoil of [(server) => server.refuses.add("a"), (server) => server.ended.add("a")]) {
    const profile = new Profile();
    let finish;
    const runner = await profile.start(() => new Promise((resolve) => (finish = resolve)));
    await runner.deliver([command("a")]);
    await until(() => finish);
    spoil(profile.server);
    finish(1);
    await profile.settled();
  }
});

test("an answer that could not be stored, or did not arrive, is posted again [LEASE-6]", async () => {
  const profile = new Profile();
  let finish;
  const runner = await profile.start(() => new Promise((resolve) => (finish = resolve)));
  await runner.deliver([command("a")]);
  await until(() => finish);
  profile.server.is_full = true;
  finish("kept");
  await until(() => profile.paused.length === 1);
  profile.server.is_full = false;
  profile.server.is_up = false;
  profile.wake();
  await until(() => profile.paused.length === 1);
  profile.server.is_up = true;
  profile.wake();
  await profile.settled();
  assert.equal(profile.server.last("a").result, "kept");
});

test("an acceptance that met no server is posted again while there is time for it", async () => {
  const profile = new Profile();
  const runner = await profile.start();
  profile.server.is_up = false;
  await runner.deliver([command("a")]);
  profile.server.is_up = true;
  profile.now += 1000;
  await runner.connected();
  await profile.settled();
  assert.deepEqual(profile.ran, ["a"]);
});

test("a running command that is cancelled ends cancelled, and its lane goes on [CANCEL-2]", async () => {
  const profile = new Profile();
  const stopped = [];
  const runner = await profile.start((entry, run) => {
    if (entry.correlation_id === "next") return "next";
    return untilStopped(run, (status) => void stopped.push(status));
  });
  await runner.deliver([command("a", { tab_id: 1 }), command("next", { tab_id: 1 })]);
  await until(() => profile.ran.includes("a"));
  await runner.deliver([{ type: "cancel", correlation_id: "a" }]);
  await profile.settled();
  assert.deepEqual([profile.server.last("a").status, stopped, profile.server.last("next").result], ["cancelled", ["cancelled"], "next"]);
});

test("a command that is cancelled while its start is written does not begin [CANCEL-2]", async () => {
  const profile = new Profile();
  const runner = await profile.start(forever);
  const set = profile.area.set.bind(profile.area);
  let write;
  profile.area.set = async (more) => {
    const is_start = Object.values(more).some((record) => record.state === "running");
    if (is_start) await new Promise((resolve) => (write = resolve));
    return await set(more);
  };
  await runner.deliver([command("a", { tab_id: 1 })]);
  await until(() => write);
  await runner.deliver([{ type: "cancel", correlation_id: "a" }]);
  write();
  await profile.settled();
  const { status, error } = profile.server.last("a");
  assert.deepEqual([status, error.guarantee, profile.ran, runner.runs], ["cancelled", "not_executed", [], []]);
});

test("a command that waits in its lane is cancelled at once and never runs [CANCEL-1]", async () => {
  const profile = new Profile();
  const runner = await profile.start(forever);
  await runner.deliver([command("a", { tab_id: 1 }), command("b", { tab_id: 1 })]);
  await until(() => runner.runs.length === 1);
  await runner.deliver([{ type: "cancel", correlation_id: "b" }]);
  await until(() => profile.server.last("b").status === "cancelled");
  assert.deepEqual([profile.ran, profile.server.last("b").error.guarantee, profile.journal.find("a").state], [["a"], "not_executed", "running"]);
});

test("a cancel that comes after the end changes nothing [CANCEL-4]", async () => {
  const profile = new Profile();
  const runner = await profile.start(() => "done");
  await runner.deliver([command("a")]);
  await profile.settled();
  await runner.deliver([{ type: "cancel", correlation_id: "a" }, { type: "cancel", correlation_id: "never heard of" }]);
  assert.deepEqual(new Set(profile.server.told("a")), new Set(["accepted", "complete"]));
});

test("the limit ends a command with what stops it, and the guarantee is unknown [TIME-3]", async () => {
  const profile = new Profile();
  const stopped = [];
  const runner = await profile.start((_, run) => untilStopped(run, (status) => void stopped.push(status)));
  await runner.deliver([command("a", { deadline_ms: 20 })]);
  await profile.settled();
  const { status, error } = profile.server.last("a");
  assert.deepEqual([status, error.code, error.guarantee, stopped], ["timeout", "execution_timeout", "unknown", ["timeout"]]);
});

test("an end that could not stop the work says so", async () => {
  for (const [stop, is_told] of [[() => true, false], [() => false, true], [() => { throw new Error("no"); }, true]]) {
    const profile = new Profile();
    const runner = await profile.start((_, run) => {
      run.onStop(stop);
      return untilStopped(run);
    });
    await runner.deliver([command("a", { deadline_ms: 20 })]);
    await profile.settled();
    assert.equal(profile.server.last("a").error.goes_on === true, is_told);
  }
});

test("what was cancelled and may go on is no cancel: it is unknown [LEASE-10]", async () => {
  const profile = new Profile();
  const runner = await profile.start((_, run) => untilStopped(run, () => false));
  await runner.deliver([command("a")]);
  await until(() => profile.ran.length === 1);
  await runner.deliver([{ type: "cancel", correlation_id: "a" }]);
  await profile.settled();
  const { status, error } = profile.server.last("a");
  assert.deepEqual([status, error.code, error.reason, error.guarantee, error.goes_on], ["error", "tool_failed", "not_stopped", "unknown", true]);
});

test("work that does not end once it was stopped may go on [LEASE-10]", async () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  try {
    const run = new Run("a", 1000);
    const end = run.outcome(() => forever());
    await new Promise((turn) => setImmediate(turn));
    run.cancel();
    await new Promise((turn) => setImmediate(turn));
    mock.timers.tick(3000);
    const { status, error } = await end;
    assert.deepEqual([status, error.reason, error.goes_on], ["error", "not_stopped", true]);
  } finally {
    mock.timers.reset();
  }
});

test("a command that is halted is waited for, and one that nobody has is unknown", async () => {
  const profile = new Profile();
  const ends = [];
  const runner = await profile.start((_, run) => untilStopped(run, () => void ends.push("stopped")));
  await runner.deliver([command("a")]);
  await until(() => profile.ran.length === 1);
  assert.deepEqual([await runner.halt("a"), ends, await runner.halt("a"), await runner.halt("nobody")], [{ may_go_on: false }, ["stopped"], { may_go_on: false }, undefined]);
});

test("a command that never got its turn says that it was not executed [LEASE-4]", async () => {
  const profile = new Profile();
  let finish;
  const runner = await profile.start(() => new Promise((resolve) => (finish = resolve)));
  await runner.deliver([command("long", { tab_id: 1 }), command("short", { tab_id: 1, deadline_ms: 5 })]);
  await until(() => profile.server.last("short")?.status === "error");
  finish("done");
  await profile.settled();
  const { code, reason, guarantee } = profile.server.last("short").error;
  assert.deepEqual([code, reason, guarantee, profile.ran], ["peer_not_ready", "busy", "not_executed", ["long"]]);
});

test("tabs run side by side, one tab's commands in order", async () => {
  const profile = new Profile();
  const open = new Map();
  const runner = await profile.start((entry) => new Promise((resolve) => open.set(entry.correlation_id, resolve)));
  await runner.deliver([command("a1", { tab_id: 1 }), command("a2", { tab_id: 1 }), command("b1", { tab_id: 2 }), command("control")]);
  await until(() => open.size === 3);
  assert.deepEqual([...open.keys()].sort(), ["a1", "b1", "control"]);
  open.get("a1")();
  await until(() => open.has("a2"));
  for (const finish of open.values()) finish();
  await profile.settled();
});

test("an odd entry does not spoil the others", async () => {
  const profile = new Profile();
  const runner = await profile.start(() => 1);
  await runner.deliver([null, 7, {}, { type: "news", correlation_id: "x" }, command("a")]);
  await profile.settled();
  assert.deepEqual(profile.ran, ["a"]);
});

test("a result that is too large for the server is sent cut, and says so", async () => {
  const profile = new Profile();
  const runner = await profile.start(() => ({ text: "y".repeat(5000) }));
  profile.server.max_bytes = 1000;
  await runner.deliver([command("a")]);
  await profile.settled();
  const { status, result } = profile.server.last("a");
  assert.deepEqual([status, result.truncated, result.total_bytes], ["complete", true, 5011]);
  assert.ok('{"text":"yyy'.startsWith(result.head.slice(0, 12)) && result.head.length <= 1000 / 8);
});

test("an item about no result is not cut", () => {
  const item = { correlation_id: "a", status: "pending" };
  assert.equal(cut(item, { max_bytes: 10 }), item);
});

test("settled records are forgotten in time, open ones never", async () => {
  const profile = new Profile();
  const runner = await profile.start((entry) => (entry.correlation_id === "open" ? forever() : 1));
  await runner.deliver([command("open", { tab_id: 1 }), command("old")]);
  await until(() => profile.journal.find("old").state === "settled");
  profile.now += 11 * 60_000;
  await runner.deliver([command("new")]);
  await until(() => profile.journal.find("new").state === "settled");
  assert.deepEqual(Object.keys(profile.area.stored).sort(), ["command:new", "command:open"]);
});

test("a storage that is full is emptied of what is settled, and commands go on", async () => {
  const profile = new Profile();
  const runner = await profile.start();
  const answer = "深".repeat(10_000);
  profile.area.max_bytes = 300_000;
  for (let n = 0; n < 40; n++) await runner.deliver([command(`c${n}`, { params: { value: answer } })]);
  await until(() => profile.server.ended.size === 40);
  await profile.settled();
  assert.equal(profile.ran.length, 40);
});

test("an answer that cannot be kept is posted all the same, and again until it has a verdict [LEASE-6]", async () => {
  for (const is_up of [true, false]) {
    const profile = new Profile();
    let finish;
    const runner = await profile.start(() => new Promise((resolve) => (finish = resolve)));
    await runner.deliver([command("a")]);
    await until(() => finish);
    profile.blobs.put = async () => {
      throw new Error("the disk is full");
    };
    profile.server.is_up = is_up;
    finish("x".repeat(100_000));
    if (!is_up) {
      await until(() => profile.paused.length === 1);
      profile.server.is_up = true;
      profile.wake();
    }
    await profile.settled();
    assert.deepEqual([profile.server.last("a").result.length, runner.open], [100_000, 0]);
  }
});

test("a cancel that overtakes the confirmation ends the command at once [CANCEL-2]", async () => {
  const profile = new Profile();
  const { post } = profile.server;
  let confirm;
  profile.server.post = async (items) => {
    const answer = await post(items);
    if (items[0].status === "accepted") await new Promise((resolve) => (confirm = resolve));
    return answer;
  };
  const runner = await profile.start();
  const delivered = runner.deliver([command("a")]);
  await until(() => confirm);
  await runner.deliver([{ type: "cancel", correlation_id: "a" }]);
  confirm();
  await delivered;
  await profile.settled();
  const { status, error } = profile.server.last("a");
  assert.deepEqual([status, error.guarantee, profile.ran], ["cancelled", "not_executed", []]);
});

test("a command whose confirmation was lost does not run after its time, and a server that confirmed it is told", async () => {
  const profile = new Profile();
  const runner = await profile.start();
  profile.server.is_up = false;
  await runner.deliver([command("confirmed"), command("over")]);
  profile.server.is_up = true;
  profile.server.refuses.add("over");
  profile.now += 4000;
  await runner.connected();
  await profile.settled();
  const { code, guarantee } = profile.server.last("confirmed").error;
  assert.deepEqual([profile.ran, code, guarantee, profile.server.told("over")], [[], "worker_lost", "not_executed", ["accepted"]]);
  assert.equal(profile.journal.find("over"), undefined);
});

test("an answer that is gone from its store is told to be lost", async () => {
  const profile = new Profile();
  let finish;
  const runner = await profile.start(() => new Promise((resolve) => (finish = resolve)));
  await runner.deliver([command("a")]);
  await until(() => finish);
  profile.server.is_up = false;
  finish("x".repeat(100_000));
  await until(() => profile.paused.length === 1);
  profile.blobs.clear();
  profile.server.is_up = true;
  profile.wake();
  await profile.settled();
  assert.equal(profile.server.last("a").error.code, "worker_lost");
});
