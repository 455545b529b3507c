// Requests of attached tabs: one event each, when it is done. Text answers of fetch and XHR bring
// their beginning along; what is not text is described by its size.

import { bounded, record } from "./observed.js";
import { keepBody } from "./requests.js";
import { isAttached, on, send } from "./sessions.js";

const MAX_OPEN = 500;
const STAYS_OPEN = new Set(["EventSource", "WebSocket", "Media", "Ping"]);
const MAX_BODY_BYTES = 256 * 1024;
const BODY_CHARS = 4096;
const TEXT = /^(text\/|application\/(.+\+)?(json|xml|javascript|graphql|x-www-form-urlencoded))/;

const MAX_ASKED = 16;

const open = new Map();
let n_asked = 0;
const documents = new Map();
/** When something was last heard of a tab's requests. */
const heard = new Map();

export function watchNetwork() {
  on("Network.requestWillBeSent", onRequest);
  on("Network.responseReceived", onResponse);
  on("Network.requestServedFromCache", (tab_id, { requestId }) => withOpen(tab_id, requestId, (one) => (one.from_cache = true)));
  on("Network.loadingFinished", onFinished);
  on("Network.loadingFailed", onFailed);
  // Of what is under way then nothing more is heard: after the debugger has left or was silent, and of a document that the tab has left.
  on("detached", (tab_id) => forgetOpen(tab_id));
  on("heard again", (tab_id, { domain }) => domain === "Network" && forgetOpen(tab_id));
  on("Page.frameNavigated", (tab_id, { frame }) => frame.parentId === undefined && forgetOpen(tab_id, frame.loaderId));
}

/** The HTTP status of the last main document that a tab received from an address, if it was seen; without the debugger it was not. */
export function documentStatus(tab_id, url) {
  const seen = isAttached(tab_id) ? documents.get(tab_id) : undefined;
  return seen?.url === withoutFragment(url) ? seen.status : undefined;
}

/** How the document of a loader was asked for, if that was seen. */
export function methodOfDocument(tab_id, loader_id) {
  const seen = documents.get(tab_id);
  return seen?.loader_id === loader_id ? seen.method : undefined;
}

/** How many requests of a tab are under way, without those that are meant to stay open, and since when nothing has changed. */
export function trafficOf(tab_id, now = performance.now()) {
  const under_way = [...open.values()].filter((one) => one.tab_id === tab_id && !STAYS_OPEN.has(one.type));
  return { n_open: under_way.length, quiet_ms: now - (heard.get(tab_id) ?? 0) };
}

export function forgetTab(tab_id) {
  heard.delete(tab_id);
  documents.delete(tab_id);
  forgetOpen(tab_id);
}

/** Forgets what is under way in a tab, but for what the document of one loader asked for. */
function forgetOpen(tab_id, loader_id) {
  for (const [key, one] of open) if (one.tab_id === tab_id && (loader_id === undefined || one.loader_id !== loader_id)) open.delete(key);
}

function onRequest(tab_id, { requestId, loaderId, request, type, timestamp, redirectResponse }) {
  if (redirectResponse) withOpen(tab_id, requestId, (one) => finish(one, redirectResponse, timestamp));
  heard.set(tab_id, performance.now());
  if (open.size >= MAX_OPEN) open.delete(open.keys().next().value);
  const url = bounded(request.url, request.url.startsWith("data:") ? 80 : 2048);
  open.set(keyOf(tab_id, requestId), { kind: "network", tab_id, request_id: requestId, method: request.method, url, type, begun: timestamp, loader_id: loaderId });
}

function onResponse(tab_id, { requestId, response, type, frameId, loaderId }) {
  if (type === "Document" && requestId === loaderId && frameId) documents.set(tab_id, { url: withoutFragment(response.url), status: response.status, loader_id: loaderId, method: open.get(keyOf(tab_id, requestId))?.method });
  withOpen(tab_id, requestId, (one) => {
    one.response = response;
    one.type = type;
  });
}

async function onFinished(tab_id, { requestId, timestamp, encodedDataLength }) {
  const one = take(tab_id, requestId);
  if (!one) return;
  const { response } = one;
  const body = wantsBody(one, encodedDataLength) ? await bodyOf(tab_id, requestId, response) : {};
  const binary = response && !TEXT.test(response.mimeType) && one.type !== "Document" ? { binary: { bytes: encodedDataLength } } : {};
  finish(one, response, timestamp, { bytes: encodedDataLength, ...binary, ...body });
}

function onFailed(tab_id, { requestId, timestamp, errorText, canceled }) {
  const one = take(tab_id, requestId);
  if (one) finish(one, one.response, timestamp, { error: errorText, canceled: canceled || undefined });
}

function finish({ begun, response: _, loader_id: __, ...event }, response, timestamp, more = {}) {
  heard.set(event.tab_id, performance.now());
  record({
    ...event,
    status: response?.status,
    mime: response?.mimeType || undefined,
    from_cache: event.from_cache || response?.fromDiskCache || undefined,
    duration_ms: Math.max(0, Math.round((timestamp - begun) * 1000)),
    ...more,
  });
}

function wantsBody(one, bytes) {
  return (one.type === "XHR" || one.type === "Fetch") && one.response && TEXT.test(one.response.mimeType) && bytes <= MAX_BODY_BYTES;
}

async function bodyOf(tab_id, requestId) {
  // A page that asks for very much at once has some of it told without what was answered.
  if (n_asked >= MAX_ASKED) return {};
  n_asked++;
  try {
    const { body, base64Encoded } = await send(tab_id, "Network.getResponseBody", { requestId });
    if (base64Encoded) return { binary: { bytes: Math.floor((body.length * 3) / 4) } };
    if (isBinary(body)) return { binary: { bytes: body.length } };
    keepBody(tab_id, requestId, body);
    return { body: bounded(body, BODY_CHARS), body_cut: body.length > BODY_CHARS || undefined };
  } catch {
    return {};
  } finally {
    n_asked--;
  }
}

/** Text that holds control characters, or much that could not be decoded, is not text. */
export function isBinary(text) {
  const head = text.slice(0, BODY_CHARS);
  const n_undecoded = head.split("\ufffd").length - 1;
  return /[\u0000-\u0008\u000e-\u001a\u001c-\u001f]/.test(head) || n_undecoded * 4 > head.length;
}

function take(tab_id, requestId) {
  const key = keyOf(tab_id, requestId);
  const one = open.get(key);
  open.delete(key);
  return one;
}

function withOpen(tab_id, requestId, act) {
  const one = open.get(keyOf(tab_id, requestId));
  if (one) act(one);
}

function keyOf(tab_id, requestId) {
  return `${tab_id}/${requestId}`;
}

function withoutFragment(url) {
  return url.split("#", 1)[0];
}
