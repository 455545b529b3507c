// The last requests of attached tabs with their headers and bodies, for `request`.
//
// `request {id}` -> `{id, state: "open|done|failed", method, url, type, status?, duration_ms?, error?, request: {headers, body?},
//   response?: {mime, headers, body? | binary?}}`; `body_cut` says how many characters of a body are left out. What authenticates
//   somebody is told as "[redacted]" unless `shows_credentials`.

import { CommandError, dropAbsent } from "../commands/errors.js";
import { on, send } from "./sessions.js";

const MAX_KEPT = 300;
const MAX_BODY_CHARS = 64 * 1024;
const MAX_BODIES_CHARS = 4 << 20;
const REDACTED = "[redacted]";
const SECRET_HEADER = /^(authorization|proxy-authorization|cookie|set-cookie|.*(token|secret|api-?key|session|csrf|xsrf).*)$/i;
const SECRET_NAME = "[\\w.-]*(?:passw|passphrase|pwd|secret|token|api_?key|credential|one_?time|otp|pin_?code|cvc|cvv)[\\w.-]*";
const IN_JSON = new RegExp(`("${SECRET_NAME}"\\s*:\\s*)("(?:[^"\\\\]|\\\\.)*"|[\\d.]+)`, "gi");
const IN_FORM = new RegExp(`((?:^|[?&;])${SECRET_NAME}=)[^&;#\\s]*`, "gi");
const IN_PARTS = new RegExp(`(name="${SECRET_NAME}"[^\\r\\n]*\\r?\\n(?:[^\\r\\n]+\\r?\\n)*\\r?\\n)[^\\r\\n]*`, "gi");

const kept = new Map();
let n_body_chars = 0;

export function watchRequests() {
  on("Network.requestWillBeSent", (tab_id, { requestId, request, type, timestamp, redirectResponse }) => {
    const { url, method, headers, postData, hasPostData } = request;
    const before = find(tab_id, requestId);
    const via = redirectResponse && before ? [...(before.via ?? []), { url: before.url, status: redirectResponse.status }].slice(-20) : undefined;
    keep(tab_id, requestId, { state: "open", url, method, type, begun: timestamp, headers, post: postData, has_post: hasPostData === true, via });
  });
  on("Network.requestWillBeSentExtraInfo", (tab_id, { requestId, headers }) => change(tab_id, requestId, (one) => (one.headers = headers)));
  on("Network.responseReceived", (tab_id, { requestId, response, type }) => change(tab_id, requestId, (one) => Object.assign(one, { type, status: response.status, mime: response.mimeType, answered: { ...response.headers, ...one.answered } })));
  on("Network.responseReceivedExtraInfo", (tab_id, { requestId, headers }) => change(tab_id, requestId, (one) => (one.answered = { ...one.answered, ...headers })));
  on("Network.loadingFinished", (tab_id, { requestId, timestamp }) => change(tab_id, requestId, (one) => Object.assign(one, { state: "done", ended: timestamp })));
  on("Network.loadingFailed", (tab_id, { requestId, timestamp, errorText }) => change(tab_id, requestId, (one) => Object.assign(one, { state: "failed", ended: timestamp, error: errorText })));
  on("detached", (tab_id) => {
    for (const one of kept.values()) if (one.tab_id === tab_id && one.state === "open") one.error = "it was under way when the debugger left the tab; how it ended was not seen";
  });
}

/** Notes the text of an answer, which the browser forgets when the debugger leaves the tab. */
export function keepBody(tab_id, request_id, body) {
  change(tab_id, request_id, (one) => {
    if (n_body_chars + body.length > MAX_BODIES_CHARS) forgetBodies();
    one.body = body;
    n_body_chars += body.length;
  });
}

export function forgetTab(tab_id) {
  for (const [key, one] of kept) if (one.tab_id === tab_id) drop(key, one);
}

export async function requestOf({ id, shows_credentials = false }, { tab_id }) {
  const one = find(tab_id, id);
  if (!one) {
    throw new CommandError("tool_failed", `nothing is known of a request ${id} of this tab`, { guarantee: "not_executed", reason: "no_request", hint: "observe network lists the requests with their request_id" });
  }
  const hide = shows_credentials === true ? (text) => text : hidden;
  const post = one.post ?? (one.has_post ? await send(tab_id, "Network.getRequestPostData", { requestId: id }).then((told) => told.postData, () => undefined) : undefined);
  const response = one.status === undefined ? undefined : { mime: one.mime, headers: headersOf(one.answered, shows_credentials), ...(await bodyOf(one, id, hide)) };
  return dropAbsent({
    id,
    state: one.state,
    method: one.method,
    url: hide(one.url).slice(0, 4096),
    via: one.via?.map((step) => ({ ...step, url: hide(step.url).slice(0, 1024) })),
    type: one.type,
    status: one.status,
    duration_ms: one.ended === undefined ? undefined : Math.max(0, Math.round((one.ended - one.begun) * 1000)),
    error: one.error,
    request: dropAbsent({ headers: headersOf(one.headers, shows_credentials), ...text(post, hide) }),
    response,
  });
}

async function bodyOf(one, id, hide) {
  if (one.body !== undefined) return text(one.body, hide);
  if (one.state !== "done") return {};
  try {
    const { body, base64Encoded } = await send(one.tab_id, "Network.getResponseBody", { requestId: id });
    return base64Encoded ? { binary: { bytes: Math.floor((body.length * 3) / 4) } } : text(body, hide);
  } catch {
    return { body_missing: "the browser does not keep it any more" };
  }
}

function text(body, hide) {
  if (body === undefined) return {};
  const whole = hide(body);
  return dropAbsent({ body: whole.slice(0, MAX_BODY_CHARS).toWellFormed(), body_cut: whole.length > MAX_BODY_CHARS ? whole.length - MAX_BODY_CHARS : undefined });
}

/** A text without the values of what is named like a secret. */
export function hidden(text) {
  return text.replace(IN_JSON, `$1"${REDACTED}"`).replace(IN_FORM, `$1${REDACTED}`).replace(IN_PARTS, `$1${REDACTED}`);
}

export function headersOf(headers = {}, shows_credentials = false) {
  return Object.fromEntries(Object.entries(headers).slice(0, 200).map(([name, value]) => [name, shows_credentials !== true && SECRET_HEADER.test(name) ? REDACTED : String(value).slice(0, 4096)]));
}

function keep(tab_id, request_id, one) {
  const key = keyOf(tab_id, request_id);
  if (kept.has(key)) drop(key, kept.get(key));
  kept.set(key, { tab_id, ...one });
  for (const [oldest, gone] of kept) {
    if (kept.size <= MAX_KEPT) break;
    drop(oldest, gone);
  }
}

function drop(key, { body }) {
  n_body_chars -= body?.length ?? 0;
  kept.delete(key);
}

function forgetBodies() {
  for (const one of kept.values()) delete one.body;
  n_body_chars = 0;
}

function find(tab_id, request_id) {
  return kept.get(keyOf(tab_id, request_id));
}

function change(tab_id, request_id, act) {
  const one = find(tab_id, request_id);
  if (one) act(one);
}

function keyOf(tab_id, request_id) {
  return `${tab_id}/${request_id}`;
}
