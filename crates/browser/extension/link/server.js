// The server this extension is paired with: what `pairing.json` says, the proof that the port is
// really its, and the requests that carry the secret.

export const PROTOCOL = "1";

/** What this extension knows; the server asks for nothing that is newer. */
export const REVISION = 2;

const PROOF_LIMIT_MS = 3000;
const POST_LIMIT_MS = 30_000;

/** Reads `pairing.json` anew; the server rewrites it when it gets another port or secret. */
export async function readPairing() {
  const answer = await fetch(chrome.runtime.getURL("pairing.json"), { cache: "no-store" });
  const { port, secret, instance_id } = await answer.json();
  if (!Number.isInteger(port) || typeof secret !== "string") throw new Error("pairing.json is not complete");
  return { port, secret, instance_id };
}

/** Whether the listener on the port knows the secret; the secret itself is not sent. Returns its name. */
export async function prove({ port, secret }) {
  const nonce = base64url(crypto.getRandomValues(new Uint8Array(16)));
  const answer = await fetch(`http://127.0.0.1:${port}/health?nonce=${nonce}`, {
    cache: "no-store",
    credentials: "omit",
    redirect: "error",
    signal: AbortSignal.timeout(PROOF_LIMIT_MS),
  });
  const health = await answer.json();
  const wanted = await proofOf(secret, `health|${nonce}|${port}`);
  if (health?.mac !== wanted) throw new Error(`the listener on port ${port} is not the paired server`);
  return String(health.name ?? "browser-mcp");
}

/** base64url of the HMAC-SHA256 of a message under the secret's bytes. */
export async function proofOf(secret, message) {
  const key = await crypto.subtle.importKey("raw", bytesOf(secret), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return base64url(new Uint8Array(await crypto.subtle.sign("HMAC", key, new TextEncoder().encode(message))));
}

/** One held request for commands. */
export function poll(server, wait_ms) {
  return fetch(`http://127.0.0.1:${server.port}/pending-queries?wait_ms=${wait_ms}`, {
    ...common(server),
    signal: AbortSignal.timeout(wait_ms + 10_000),
  });
}

/** Posts JSON; resolves with `{status, json}` and rejects only where no answer came. */
export async function post(server, path, body) {
  const answer = await fetch(`http://127.0.0.1:${server.port}${path}`, {
    ...common(server, { "Content-Type": "application/json" }),
    method: "POST",
    body: toJson(body),
    signal: AbortSignal.timeout(POST_LIMIT_MS),
  });
  return { status: answer.status, json: await answer.json().catch(() => null) };
}

/** Gets the bytes of a file that a command uploads. */
export async function getFile(server, { correlation_id, step, n }) {
  const query = new URLSearchParams({ correlation_id, n });
  if (step !== undefined) query.set("step", step);
  const answer = await fetch(`http://127.0.0.1:${server.port}/upload-file?${query}`, { ...common(server), signal: AbortSignal.timeout(POST_LIMIT_MS) });
  if (answer.status !== 200) throw new Error(`the server did not give the file: ${answer.status}`);
  return new Uint8Array(await answer.arrayBuffer());
}

/** JSON in which every string is valid Unicode: a lone surrogate becomes U+FFFD. */
export function toJson(value) {
  const text = JSON.stringify(value);
  return /\\ud[89a-f]/.test(text) ? JSON.stringify(wellFormed(value)) : text;
}

/** Whether a message comes from a page of this extension, not from a script in somebody's page. */
export function isOwnPage(sender) {
  return sender.id === chrome.runtime.id && sender.url?.startsWith(chrome.runtime.getURL("")) === true;
}

function wellFormed(value) {
  if (typeof value === "string") return value.toWellFormed();
  if (Array.isArray(value)) return value.map(wellFormed);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name.toWellFormed(), wellFormed(member)]));
}

function common(server, more = {}) {
  return {
    cache: "no-store",
    credentials: "omit",
    redirect: "error",
    headers: {
      Authorization: `Bearer ${server.secret}`,
      "X-Worker-Id": server.worker_id,
      "X-Boot-Id": server.boot_id,
      "X-Raincheck-Protocol": PROTOCOL,
      // Of the worker, which does the work: this may be a newer file beside an older worker.
      ...(server.revision ? { "X-Raincheck-Revision": String(server.revision) } : {}),
      ...more,
    },
  };
}

function bytesOf(text) {
  return Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (one) => one.charCodeAt(0));
}

function base64url(bytes) {
  return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}
