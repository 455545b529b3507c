// The poll loop. It lives in an offscreen document because a service worker is put to sleep after
// 30 s, also in the middle of a request. Commands are handed to the service worker, which this
// wakes; nothing is executed here.

import { isOwnPage, poll, prove, readPairing } from "./server.js";

const WAIT_MS = 25_000;
const RETRY_MS = 1000;
/** A server that went a moment ago is often one that is started again. */
const SOON_MS = 100;
const LATELY_MS = 10_000;
const TICK_MS = 20_000;
const EARLY_MS = 200;

const link = { state: "starting", detail: "", server: null, name: "", connected_at: null, polled_at: null };
let lost_at = -Infinity;
let ticking = null;
let life = null;

chrome.runtime.onMessage.addListener((message, sender, answer) => {
  if (message?.to !== "offscreen" || !isOwnPage(sender)) return;
  answer(message.kind === "server" ? link.server : status());
});

run();

async function run() {
  const worker = await untilTold({ kind: "hello" });
  life ??= watchLife();
  for (;;) {
    try {
      const pairing = await readPairing();
      const name = await prove(pairing);
      const server = { ...pairing, worker_id: worker.worker_id, boot_id: worker.boot_id, revision: worker.revision };
      await pollWhileGood(server, name);
    } catch (error) {
      await lost(error.state ?? "disconnected", error.message);
    }
    await sleep(Date.now() - lost_at < LATELY_MS ? SOON_MS : RETRY_MS);
  }
}

/** Polls without a gap; ends with an error. The first answer makes the connection. */
async function pollWhileGood(server, name) {
  for (let first = true; ; first = false) {
    const asked_at = Date.now();
    const answer = await poll(server, first ? 0 : WAIT_MS);
    if (answer.status !== 200) throw refusal(answer.status);
    const entries = await answer.json();
    link.polled_at = Date.now();
    if (first) {
      Object.assign(link, { state: "connected", detail: "", server, name, connected_at: Date.now() });
      await tell({ kind: "connected", server });
    }
    if (Array.isArray(entries) && entries.length > 0) hand(server, entries);
    else if (!first && Date.now() - asked_at < EARLY_MS) await sleep(EARLY_MS); // held for nothing: not asked in a tight loop
  }
}

/** Gives commands to the service worker without waiting for them, so that the next poll is open at once. */
function hand(server, entries) {
  tell({ kind: "deliver", server, entries }).then(keepAwake);
}

/** While commands run the service worker is woken often enough to stay, and at once when it was lost. */
function keepAwake(reply) {
  life ??= watchLife();
  const busy = (reply?.running ?? 0) > 0;
  if (busy && ticking === null) ticking = setInterval(() => tell({ kind: "tick" }).then(keepAwake), TICK_MS);
  if (!busy && ticking !== null) {
    clearInterval(ticking);
    ticking = null;
  }
}

/** The port closes when the service worker ends; it does not keep it from sleeping. */
function watchLife() {
  const port = chrome.runtime.connect({ name: "life" });
  port.onDisconnect.addListener(() => {
    life = null;
    if (ticking !== null) tell({ kind: "tick" }).then(keepAwake);
  });
  return port;
}

async function lost(state, detail) {
  const was = link.state;
  if (was === "connected") lost_at = Date.now();
  Object.assign(link, { state, detail, server: null });
  if (was !== state) await tell({ kind: "lost" });
}

function refusal(status) {
  const words = { 401: "refused", 403: "refused", 426: "incompatible" };
  return Object.assign(new Error(`the server answered ${status}`), { state: words[status] ?? "disconnected" });
}

function status() {
  const { state, detail, name, connected_at, polled_at, server } = link;
  return { state, detail, name, connected_at, polled_at, port: server?.port ?? null };
}

/** Sends to the service worker; a worker that dies under a message is woken by the second try. */
async function tell(message) {
  for (let tries = 0; tries < 2; tries++) {
    try {
      return await chrome.runtime.sendMessage({ to: "worker", ...message });
    } catch (error) {
      console.warn(`${message.kind}: ${error.message}`);
    }
  }
  return null;
}

async function untilTold(message) {
  for (;;) {
    const reply = await tell(message);
    if (reply) return reply;
    await sleep(200);
  }
}

function sleep(ms) {
  return new Promise((done) => setTimeout(done, ms));
}
