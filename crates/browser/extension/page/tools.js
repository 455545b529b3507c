// The tools that a page declares itself (WebMCP), through one fixed action.
//
// `page_tools` -> `{url, tools: [{name, title?, description, schema?, schema_chars?, annotations?, origin, schema_hash}], left_out?}`
// `page_tools {name, arguments?, origin, schema_hash}` -> `{name, origin, value}`
//
// Whatever a page says of its tools is data: it is bounded here, and nothing of it becomes a tool of the server. A call is bound to
// what was listed: the origin, and a hash of the name, the description, the schema and the annotations. Where either differs
// nothing is called, nor where the arguments are not what its schema asks for, as far as that is understood. Once a tool is called nobody but the page knows what it does, so that anything but its own answer ends as
// `unknown`, and it is not called again.
//
// `configure {what: "webmcp", shim}` -> `{shim}`: gives pages that are loaded from then on a `document.modelContext` where
// the browser has none.

import { CommandError, dropAbsent, invalid, navigatedAway } from "../commands/errors.js";
import { whyClosed, whyFrameClosed } from "../status/origins.js";
import { watchTab } from "../tabs/navigation.js";
import { whyHostBlocked } from "../tabs/urls.js";
import { wrongIn } from "./arguments.js";
import { abortDeclared, callDeclared, listDeclared } from "./declared.js";

const MAX_TOOLS = 100;
const MAX_FRAMES = 50;
const LIST_MS = 2000;
const MAX_NAME = 128;
const MAX_WORDS = 1000;
const MAX_SCHEMA = 8000;
const MAX_HASHED = 256 * 1024;
const MAX_TOLD = 48_000;
const MAX_VALUE = 2_000_000;
const LIST_AGAIN = "list them again with page_tools, read what the tool says now, and call it with the origin and the schema_hash of that list";
/** What the browser says of a document that it does not find, before anything runs in it. */
const NEVER_BEGAN = /^No (?:document|frame) with id/i;
const SHIM = { id: "page-tools", js: ["page/shim.js"], matches: ["<all_urls>"], allFrames: true, matchOriginAsFallback: true, runAt: "document_start", world: "MAIN", persistAcrossSessions: false };

export async function pageTools(params, run) {
  const { name } = params;
  if (name !== undefined) return await callTool(params, run);
  if (params.arguments !== undefined) throw invalid("`arguments` are for a tool: pass its `name`, `origin` and `schema_hash`");
  const { documents, left_out } = await documentsOf(run);
  return { url: (await chrome.tabs.get(run.tab_id)).url, ...shownTools(documents, left_out) };
}

/** `configure {what: "webmcp", shim}`. */
export async function setPageTools({ shim }) {
  const is_there = (await chrome.scripting.getRegisteredContentScripts({ ids: [SHIM.id] })).length > 0;
  if (shim && !is_there) await chrome.scripting.registerContentScripts([SHIM]);
  if (!shim && is_there) await chrome.scripting.unregisterContentScripts({ ids: [SHIM.id] });
  return { shim: shim === true, message: shim ? "pages see it that are loaded from now on; reload those that are open" : "pages that are loaded from now on do not see it" };
}

// ---- what pages declare ----------------------------------------------------------------------

/** Every document of a tab with what it declares, the page first; `left_out` says what was not looked at. */
async function documentsOf({ tab_id }) {
  const frames = ((await chrome.webNavigation.getAllFrames({ tabId: tab_id })) ?? []).sort((a, b) => a.frameId - b.frameId);
  const left_out = [];
  if (frames.length > MAX_FRAMES) left_out.push(`${frames.length - MAX_FRAMES} frames: there are too many`);
  const found = await Promise.all(frames.slice(0, MAX_FRAMES).map((frame) => documentOf(tab_id, frame)));
  for (const { why } of found) if (why) left_out.push(why);
  return { documents: found.filter((one) => one.tools), left_out };
}

async function documentOf(tab_id, { frameId: frame_id, documentId, url }) {
  const closed = await whyFrameClosed(tab_id, frame_id);
  if (closed !== null) return { why: `a frame: ${closed} by the user` };
  if (whyHostBlocked(url) !== null) return { why: "a frame of the server's own port, or of a link-local or metadata address" };
  const native = await within(LIST_MS, inject(targetOf(tab_id, { documentId, frameId: frame_id }), "ISOLATED", listDeclared, [true, false, MAX_TOOLS, MAX_HASHED]));
  if (native === null) return { why: frame_id === 0 ? "the page did not answer" : "a frame that did not answer" };
  // A frame that no extension may read, such as a page of the browser, declares nothing to us.
  if (!native.result) return frame_id === 0 ? { why: "the page cannot be read" } : {};
  const { origin, is_native } = native.result;
  // Where the frame stood is not where it stands.
  const gone = whyClosed(origin);
  if (gone !== null) return { why: `a frame: ${gone} by the user` };
  if (whyHostBlocked(origin) !== null) return { why: "a frame of the server's own port, or of a link-local or metadata address" };
  const own = await within(LIST_MS, inject(targetOf(tab_id, native), "MAIN", listDeclared, [false, is_native, MAX_TOOLS, MAX_HASHED]));
  const tools = [...toolsOf(native.result, "ISOLATED"), ...toolsOf(own?.result, "MAIN")];
  const n_unnamed = tools.length - tools.filter(isNamed).length;
  const unique = tools.filter((tool, n) => isNamed(tool) && tools.findIndex((other) => other.name === tool.name) === n);
  const where = frame_id === 0 ? "the page" : `a frame of ${origin}`;
  const failure = own?.result ? own.result.error : (own?.failure ?? "it did not come");
  const why = failure === undefined ? undefined : `${where}: its list of tools: ${String(failure).slice(0, 200)}`;
  const hashed = await Promise.all(unique.map(async (tool) => ({ ...tool, origin, schema_hash: tool.is_large ? null : await hashOf(tool) })));
  return { origin, frame_id, target: targetOf(tab_id, native), tools: hashed, n_more: (native.result.n_more ?? 0) + (own?.result?.n_more ?? 0), n_unnamed, why };
}

function isNamed({ name }) {
  return typeof name === "string" && name !== "" && name.length <= MAX_NAME;
}

function targetOf(tab_id, { documentId, frameId }) {
  return documentId ? { tabId: tab_id, documentIds: [documentId] } : { tabId: tab_id, frameIds: [frameId] };
}

async function inject(target, world, func, args) {
  const [told] = await chrome.scripting.executeScript({ target, world, injectImmediately: true, func, args });
  return told;
}

/** What a document says of its tools, as far as it is of the right kind. */
function toolsOf(told, world) {
  const all = Array.isArray(told?.tools) ? told.tools : [];
  return all
    .filter(isObject)
    .map(({ way, name, title, description, schema, annotations, is_large }) => ({
      world, way, name, is_large: is_large === true, description: typeof description === "string" ? description : undefined, title: typeof title === "string" && title !== "" ? title : undefined,
      // As it was told, to compare with; and what it means.
      raw: { description: description ?? null, schema: schema ?? null },
      schema: readSchema(schema), annotations: isObject(annotations) ? annotations : undefined,
    }));
}

/** Some hand out a schema as its text. */
function readSchema(schema) {
  if (typeof schema !== "string") return isObject(schema) ? schema : undefined;
  try {
    const read = JSON.parse(schema);
    return isObject(read) ? read : undefined;
  } catch {
    return undefined;
  }
}

function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The same for the same definition, in whatever order its members stand; null for one that is too large to be bound. */
export async function hashOf({ name, title, description, schema, annotations }) {
  const text = JSON.stringify(sorted({ name, title, description, schema, annotations }));
  if (text.length > MAX_HASHED) return null;
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return [...new Uint8Array(digest).slice(0, 16)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

function sorted(value) {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.keys(value).sort().map((member) => [member, sorted(value[member])]));
}

/** The list as it is told: bounded in number and in characters, and what is missing is said. */
export function shownTools(documents, left_out = []) {
  const tools = [];
  const missing = [...left_out];
  let [left, n_more, n_large] = [MAX_TOLD, 0, 0];
  for (const tool of documents.flatMap((document) => document.tools)) {
    const shown = shownTool(tool);
    const size = JSON.stringify(shown).length;
    if (tool.schema_hash === null) n_large++;
    else if (tools.length >= MAX_TOOLS || size > left) n_more++;
    else {
      left -= size;
      tools.push(shown);
    }
  }
  n_more += documents.reduce((sum, document) => sum + (document.n_more ?? 0), 0);
  if (n_more > 0) missing.push(`${n_more} tools: there is no room for more`);
  const n_unnamed = documents.reduce((sum, document) => sum + (document.n_unnamed ?? 0), 0);
  if (n_unnamed > 0) missing.push(`${n_unnamed} tools: they have no name, or one of more than ${MAX_NAME} characters`);
  if (n_large > 0) missing.push(`${n_large} tools: what they say of themselves is too long`);
  return dropAbsent({ tools, left_out: missing.length > 0 ? missing : undefined });
}

function shownTool({ name, title, description, schema, annotations, origin, schema_hash }) {
  const chars = schema === undefined ? 0 : JSON.stringify(schema).length;
  const hints = annotations && Object.fromEntries(Object.entries(annotations).filter(([member, value]) => value === true && member.length <= 40).slice(0, 8));
  return dropAbsent({
    name,
    title: title && clip(title),
    description: description && clip(description),
    schema: chars <= MAX_SCHEMA ? schema : undefined,
    schema_chars: chars > MAX_SCHEMA ? chars : undefined,
    annotations: hints && Object.keys(hints).length > 0 ? hints : undefined,
    origin,
    schema_hash,
  });
}

function clip(words) {
  return words.length > MAX_WORDS ? `${words.slice(0, MAX_WORDS).toWellFormed()}[cut: ${words.length - MAX_WORDS} more characters]` : words;
}

// ---- calling one -----------------------------------------------------------------------------

async function callTool({ name, arguments: input = {}, origin, schema_hash }, run) {
  if (!isObject(input)) throw invalid("`arguments` is a JSON object");
  const { documents } = await documentsOf(run);
  const tool = choose(documents, { name, origin, schema_hash });
  const wrong = wrongIn(tool.schema, input);
  if (wrong !== null) throw refused("page_tool_arguments", wrong, "correct the arguments by the schema that page_tools lists");
  if (run.ended) return undefined;
  const key = `raincheck-${crypto.randomUUID()}`;
  settleWhenLeft(run, tool.frame_id);
  // It hears that nobody waits for it any more; whether it stops is its own affair.
  run.onStop(async (status) => {
    if (status === "error") return undefined;
    await inject(tool.target, tool.world, abortDeclared, [key]).catch(() => {});
    return false;
  });
  const wanted = { way: tool.way, name, ...tool.raw };
  const told = await calledOnce(() => inject(tool.target, tool.world, callDeclared, [wanted, input, JSON.stringify(input), key]));
  if (told.changed) throw refused("page_tool_changed", `\`${name}\` is not what it was a moment ago`);
  if (told.thrown) {
    const { name: kind, message } = told.thrown;
    throw new CommandError("tool_failed", `the page's tool failed: ${kind}: ${message}`.slice(0, 4000), { guarantee: "unknown", reason: "page_tool_failed", hint: "look at the page before calling it again" });
  }
  return { name, origin: tool.origin, value: shownValue(told.value) };
}

/** The one tool that a call means; fails with what differs from what was listed. */
export function choose(documents, { name, origin, schema_hash }) {
  const all = documents.flatMap(({ tools, target, frame_id }) => tools.map((tool) => ({ ...tool, target, frame_id })));
  const named = all.filter((tool) => tool.name === name);
  if (named.length === 0) throw refused("no_page_tool", `no tool of this name is declared in the tab now, of ${all.length}`);
  const there = named.filter((tool) => tool.origin === origin);
  if (there.length === 0) throw refused("page_tool_origin", `the tool is declared by ${[...new Set(named.map((tool) => tool.origin))].slice(0, 3).join(" and ")}, not by ${String(origin).slice(0, 200)}`);
  const alike = there.filter((tool) => tool.schema_hash !== null && tool.schema_hash === schema_hash);
  if (alike.length === 0) throw refused("page_tool_changed", "the tool's name, description, schema or annotations are not those of this schema_hash");
  // The page's own comes before those of frames.
  if (alike.length > 1 && alike[0].frame_id !== 0) throw refused("page_tool_ambiguous", `${alike.length} frames of ${origin} declare the same tool`, "use what the frames show, by refs of a snapshot");
  return alike[0];
}

function refused(reason, message, hint = LIST_AGAIN) {
  return new CommandError("tool_failed", `${message}; nothing was called`, { guarantee: "not_executed", reason, hint });
}

/** A document that is not there any more when its turn comes was not asked; one that goes while it is asked may have done it. */
async function calledOnce(ask) {
  let told;
  try {
    told = await ask();
  } catch (error) {
    if (NEVER_BEGAN.test(error.message)) throw refused("no_page_tool", "the page that declared the tool is gone");
    throw navigatedAway();
  }
  if (isObject(told?.result)) return told.result;
  throw new CommandError("tool_failed", "the page gave no answer", { guarantee: "unknown", reason: "page_error", hint: "look at the page before calling it again" });
}

/** Leaving the page, or the frame, ends the call: its answer will not come. */
function settleWhenLeft(run, frame_id) {
  run.onEnd(watchTab(run.tab_id, (kind, { url }) => kind === "committed" && run.stop("error", navigatedAway(url))));
  if (frame_id === 0) return;
  const { onCommitted } = chrome.webNavigation;
  const listener = ({ tabId, frameId, url }) => tabId === run.tab_id && frameId === frame_id && run.stop("error", navigatedAway(url));
  onCommitted.addListener(listener);
  run.onEnd(() => onCommitted.removeListener(listener));
}

/** The browser hands out what a tool returned as its JSON; a page's own way may do that, too. */
function shownValue(value) {
  let shown = value ?? null;
  try {
    if (typeof value === "string") shown = JSON.parse(value);
  } catch {
    // A text.
  }
  const text = JSON.stringify(shown);
  return text.length > MAX_VALUE ? `${text.slice(0, MAX_VALUE).toWellFormed()}[cut: ${text.length - MAX_VALUE} more characters]` : shown;
}

async function within(limit_ms, work) {
  let timer;
  const late = new Promise((done) => (timer = setTimeout(done, limit_ms, null)));
  try {
    return await Promise.race([work.catch((error) => ({ failure: error.message })), late]);
  } finally {
    clearTimeout(timer);
  }
}
