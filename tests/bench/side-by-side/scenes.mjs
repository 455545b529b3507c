// What is measured: each scene answers with rows of the table.

import { FIELDS, READ_FORM, filled } from "./pages.mjs";
import { family, pssOf, renderers } from "./processes.mjs";
import { LIMIT_MS, sleep, within } from "./stdio.mjs";

const WARM = 3;
const SETTLED_MS = 2000;
const LONG_MS = 4000;
const N_TABS = 8;
const NOTICE_MS = 20_000;
const TAB_WORK = "new Promise((done) => setTimeout(() => done(performance.now() > 0), 1000))";

/** From the start of a process to its first answers; the browser is there. */
async function starting({ servers, starts, pages, countTokens }) {
  const [to_initialize, to_snapshot, idle, listed, tokens] = [rowsOf(), rowsOf(), rowsOf(), new Map(), new Map()];
  for (const server of servers) {
    await server.start();
    await server.connected();
    const tools = (await server.client.ask("tools/list")).result;
    listed.set(server, Buffer.byteLength(JSON.stringify(tools)));
    tokens.set(server, countTokens(JSON.stringify(tools)));
    // The only tab there is.
    await server.client.done(server.navigate(`${pages.origin}/small`));
    await server.client.end();
  }
  for (let n = 0; n < starts; n++) {
    for (const server of turned(servers, n)) {
      // What it left of the last one is tidied up by then.
      await sleep(500);
      to_initialize.add(server, await server.start());
      await server.client.done(server.snapshot());
      to_snapshot.add(server, performance.now() - server.client.began);
      await server.client.end();
    }
  }
  for (const server of servers) {
    await server.start();
    await sleep(SETTLED_MS);
    idle.add(server, pssOf(family(server.client.pid)));
    await server.connected();
  }
  return [
    { figure: "start to `initialize` answered", unit: "ms", of: to_initialize },
    { figure: "start to the first snapshot, the browser is open", unit: "ms", of: to_snapshot },
    { figure: "`tools/list`", unit: "bytes", of: listed },
    { figure: "`tools/list`", unit: "tokens", of: tokens },
    { figure: "memory of the server, idle (PSS)", unit: "MB", of: single(idle) },
  ];
}

/** The work of every day, on a page with a form. */
async function working({ servers, rounds, pages, countTokens }) {
  const names = ["snapshot", "click", "fill", "script", "read", "navigate"];
  const times = Object.fromEntries(names.map((name) => [name, rowsOf()]));
  const [bytes, tokens, clicked] = [new Map(), new Map(), new Map()];
  const refs = new Map();
  for (const server of servers) await server.open(`${pages.origin}/small`);
  for (let n = 0; n < WARM + rounds; n++) {
    for (const name of names) {
      for (const server of turned(servers, n)) {
        const step = {
          snapshot: () => server.snapshot(),
          click: () => server.click(refs.get(server).save),
          fill: () => server.fill(refs.get(server).fields, filled(n)),
          script: () => server.script("document.body.children.length"),
          read: () => server.read("document.body.children.length"),
          navigate: () => server.navigate(`${pages.origin}/small?${n}`),
        }[name]();
        const told = await server.client.done(step);
        if (n >= WARM) times[name].add(server, told.ms);
        if (name === "snapshot") refs.set(server, server.refsOf(told));
        if (name === "snapshot") note(bytes, tokens, server, told.text, countTokens);
        if (name === "click") clicked.set(server, countTokens(told.text));
        if (name === "script") await check(server, n);
      }
    }
  }
  return [
    { figure: "snapshot, small page", unit: "ms", of: times.snapshot },
    { figure: "the snapshot itself", unit: "bytes", of: bytes },
    { figure: "the snapshot itself", unit: "tokens", of: tokens },
    { figure: "click", unit: "ms", of: times.click },
    { figure: "answer to a click", unit: "tokens", of: clicked },
    { figure: `form of ${FIELDS.length} fields in one call`, unit: "ms", of: times.fill },
    { figure: "script", unit: "ms", of: times.script },
    { figure: "script that only reads", unit: "ms", of: times.read },
    { figure: "go to a page", unit: "ms", of: times.navigate },
  ];
}

/** A page of 5,000 elements. */
async function reading({ servers, rounds, pages, countTokens }) {
  const [times, bytes, tokens] = [rowsOf(), new Map(), new Map()];
  for (const server of servers) await server.client.done(server.navigate(`${pages.origin}/large`));
  for (let n = 0; n < WARM + Math.ceil(rounds / 2); n++) {
    for (const server of turned(servers, n)) {
      const told = await server.client.done(server.snapshot());
      if (n >= WARM) times.add(server, told.ms);
      note(bytes, tokens, server, told.text, countTokens);
    }
  }
  return [
    { figure: "snapshot, 5,000 elements", unit: "ms", of: times },
    { figure: "the answer", unit: "bytes", of: bytes },
    { figure: "the answer", unit: "tokens", of: tokens },
  ];
}

async function remembering({ servers, browsers }) {
  const [after, extension] = [new Map(), new Map()];
  for (const server of servers) {
    after.set(server, pssOf(family(server.client.pid)));
    const own = pssOf(renderers(browsers.get(server), true));
    extension.set(server, own > 0 ? own : "none");
  }
  return [
    { figure: "memory of the server after that work", unit: "MB", of: after },
    { figure: "memory of its extension in the browser", unit: "MB", of: extension },
  ];
}

/** A script of one second in each of eight tabs, all asked for at once. */
async function besides({ servers, pages }) {
  const whole = new Map();
  for (const server of servers) {
    const tabs = [];
    for (let n = 0; n < N_TABS; n++) tabs.push(await server.open(`${pages.origin}/tab?${n}`));
    const from = performance.now();
    const calls = tabs.flatMap((tab) => [server.select && server.client.done(server.select(tab)), server.client.done(server.script(TAB_WORK, tab))]);
    await Promise.all(calls);
    whole.set(server, performance.now() - from);
  }
  return [{ figure: `a script of 1 s in each of ${N_TABS} tabs, asked for at once`, unit: "ms", of: whole }];
}

/** What is left when something ends by force in the middle of a script. */
async function surviving(run) {
  const [killed, noticed, after_crash, reloaded] = [new Map(), new Map(), new Map(), new Map()];
  for (const server of run.servers) {
    killed.set(server, await killServer(server, run.pages));
    const [told, again] = await crashPage(server, run);
    noticed.set(server, told);
    after_crash.set(server, again);
    reloaded.set(server, server.extension ? await reloadExtension(server, run) : "has none");
  }
  return [
    { figure: "`kill -9` of the server in a script: its result from the next server", of: killed },
    { figure: "the page crashes in a script: the call is answered", unit: "ms", of: noticed },
    { figure: "the page crashed: `navigate` in the same tab, and a snapshot", of: after_crash },
    { figure: "its extension is reloaded in a script", of: reloaded },
  ];
}

async function killServer(server, pages) {
  const tab = await server.open(`${pages.origin}/small`);
  const noted = await server.begin(`new Promise((done) => setTimeout(() => done(globalThis.answer = 42), ${LONG_MS}))`, tab);
  await sleep(LONG_MS / 4);
  await server.client.kill();
  await sleep(LONG_MS);
  await server.start();
  await server.connected();
  const recalled = server.recall ? await server.recall(noted) : null;
  if (recalled === "42") return "yes";
  if (server.recall) return `no: ${recalled}`;
  return "no: no call reads it";
}

/** How long a call waits for a page that is gone, and whether its tab can be used again. */
async function crashPage(server, { browsers, pages }) {
  await server.open(`${pages.origin}/small`);
  const asked = server.client.call(server.script(`new Promise((done) => setTimeout(done, ${LIMIT_MS}))`)).catch((error) => ({ error }));
  await sleep(1000);
  const from = performance.now();
  for (const { pid } of renderers(browsers.get(server))) process.kill(pid, "SIGSEGV");
  const told = await within(NOTICE_MS, asked, "").catch(() => null);
  const noticed = told ? performance.now() - from : `not in ${NOTICE_MS / 1000} s`;
  const again = async () => {
    await server.client.done(server.navigate(`${pages.origin}/small`));
    await server.client.done(server.snapshot());
  };
  const works = await within(NOTICE_MS, again(), "").then(() => "works", () => "fails");
  if (works === "works") return [noticed, works];
  // What comes next begins with a server that is not stuck.
  await server.client.kill();
  await server.start();
  return [noticed, works];
}

async function reloadExtension(server, { browsers, pages }) {
  await server.connected();
  await server.open(`${pages.origin}/small`);
  const asked = server.client.call(server.script(`new Promise((done) => setTimeout(() => done(7), ${LONG_MS}))`));
  await sleep(LONG_MS / 4);
  const from = performance.now();
  await browsers.get(server).reloadExtension();
  const told = await asked;
  const ms = Math.round(performance.now() - from);
  const how = told.is_error ? JSON.parse(told.text).error_info?.code : "the result";
  await server.connected();
  await server.client.done(server.snapshot());
  return `answered after ${ms} ms: ${how}; the next call works`;
}

/** What was done is really done. */
async function check(server, turn) {
  const n_clicks = await server.value("globalThis.n_clicks");
  const form = await server.value(READ_FORM);
  if (n_clicks !== 1 || JSON.stringify(form) !== JSON.stringify(filled(turn))) throw new Error(`${server.id}: ${n_clicks} clicks, ${JSON.stringify(form)}`);
}

function note(bytes, tokens, server, text, countTokens) {
  bytes.set(server, Buffer.byteLength(text));
  tokens.set(server, countTokens(text));
}

function turned(servers, n) {
  return servers.map((_, at) => servers[(at + n) % servers.length]);
}

/** A list by server. */
class Lists extends Map {
  add(server, value) {
    this.set(server, [...(this.get(server) ?? []), value]);
  }
}

function rowsOf() {
  return new Lists();
}

function single(lists) {
  return new Map([...lists].map(([server, [value]]) => [server, value]));
}

/** In the order in which they are played. */
export const SCENES = [starting, working, reading, remembering, besides, surviving];
