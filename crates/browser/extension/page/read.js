// Reading a page.
//
// `snapshot {selector?|ref?, depth?, max_nodes?, max_bytes?, since?}` -> `{url, title, origin, snapshot_id?, text, left_out?}`; `text` is an indented
//   accessibility tree with refs: `- button "Save" [ref=e12]`. A ref is good until the page is left. `since` is the `snapshot_id` of an earlier
//   one: what changed since, as `tell` has it, with `added, removed, changed`; or the whole, and `whole_because: "navigated|forgotten|other_part|changes_larger"`
// `page_text {selector?|ref?}` -> `{url, title, origin, text, left_out?}`; of a PDF also `kind: "pdf"` and `pages`
// `screenshot {full_page?, ref?|selector?}` -> `{mime: "image/jpeg", data, width, height, url, title}`
// `wait_for {selector?|ref?|text?|url?, state?, network_idle?}` -> `{state, url, title, target?, waited_ms}`
//
// Frames are read along; `left_out` says in words what is not shown.

import { CommandError, dropAbsent, invalid } from "../commands/errors.js";
import { textOfPdf } from "../pdf/text.js";
import { whyClosed } from "../status/origins.js";
import { unreadablePdf } from "../tabs/kinds.js";
import { trafficOf } from "../tabs/network.js";
import { attach, send, tryAttach } from "../tabs/sessions.js";
import { whyHostBlocked } from "../tabs/urls.js";
import { call } from "./agents.js";
import { changesBetween } from "./between.js";
import { frameAt, framesOf, ownFrames } from "./frames.js";
import { masked } from "./masks.js";
import { ask, askWhere, keepLastRef, lastRef, pick, reach, until } from "./reach.js";
import { keepWhole, recallWhole } from "./wholes.js";

const QUALITY = 60;
const MAX_EDGE = 1568;
const MAX_PAGE_HEIGHT = 16_000;
const CAPTURE_MS = 5000;
const FIRST_ASK_MS = { front: 300, behind: 60 };
const AGAIN_MS = 1000;
const SNAPSHOT_MS = 8000;
const FRAME_MS = 2000;
const MAX_BYTES = 400_000;
const MAX_TEXT_CHARS = 1_000_000;
const MAX_NESTING = 8;
const PDF_MS = 20_000;
const MAX_PDF = 64 << 20;
// The budget is over after the line that used it up.
const MAX_LAST_LINE = 10_000;
// How long nothing is asked for until the network counts as idle.
const IDLE_MS = 500;
const STATES = ["visible", "hidden", "attached"];

export async function snapshot({ since, max_nodes, max_bytes = MAX_BYTES, ...part }, run) {
  await tryAttach(run.tab_id);
  const asked = { selector: part.selector, ref: part.ref, depth: part.depth };
  const earlier = since === undefined ? null : await earlierOne(run, since, asked);
  const now = await outlineOf(run, earlier?.part ?? asked, { max_nodes, max_bytes, is_kept: true });
  const { url, title, origin, snapshot_id } = now;
  const changes = earlier?.text === undefined ? null : changesSince(run, earlier, now, max_bytes);
  const whole_because = since === undefined ? undefined : earlier?.why ?? (changes === null ? "changes_larger" : undefined);
  const { text, ...counts } = changes ?? { text: masked(run, now.text) };
  const left_out = [...now.left_out, ...(changes?.left_out ?? [])];
  const said = left_out.map((one) => `\n[left out: ${one}]`).join("");
  return dropAbsent({ url, title, origin, snapshot_id, whole_because, ...counts, text: text + said, left_out: left_out.length > 0 ? left_out : undefined });
}

/** The page keeps what is its own, and the name of what holds more. */
async function nameOf(run, told, frame_id, part, { text, is_cut, frames }) {
  if (frame_id === 0 && frames.length === 0 && text === told.text) return told.snapshot_id;
  const in_place_of = frame_id === 0 ? { snapshot_id: told.snapshot_id } : {};
  const { snapshot_id } = await ask(run, "keep", { ...in_place_of, text: "", is_elsewhere: true, frame_id: 0 }).catch(() => ({}));
  if (snapshot_id !== undefined) keepWhole(run.tab_id, snapshot_id, { text, part, is_cut, frames });
  return snapshot_id;
}

/** An earlier snapshot, of which part of the page it is, or `{why}` there is nothing to compare with. */
async function earlierOne(run, since, asked) {
  const named = await ask(run, "recall", { snapshot_id: since, frame_id: 0 });
  const earlier = named.is_elsewhere ? recallWhole(run.tab_id, since) : named;
  if (earlier.why) return earlier;
  // What the user closed meanwhile is not told, also not as what is gone.
  if (earlier.frames?.some(({ url }) => whyHostBlocked(url, run.own_port) !== null || whyClosed(url) !== null)) return { why: "forgotten" };
  const is_same = Object.keys(asked).every((name) => asked[name] === undefined || asked[name] === earlier.part[name]);
  return is_same ? earlier : { why: "other_part" };
}

/** What changed, or null when that is not shorter than the whole. */
function changesSince(run, earlier, now, max_bytes) {
  const { n_untold, ...told } = changesBetween(run, earlier, now, { max_chars: max_bytes });
  if (told.text.length >= now.text.length && told.text !== "") return null;
  return { ...told, left_out: [...told.left_out, ...(n_untold > 0 ? [`${n_untold} more lines that changed`] : [])] };
}

/**
 * The outline of a part of the page with the frames in it: `{url, title, origin, document_id, text, left_out, is_cut, frame_ids, snapshot_id?}`. With
 * `watches` the documents are watched for changes from then on; with `is_kept` it can be compared with later ones.
 */
export async function outlineOf(run, part, { max_nodes, max_bytes, limit_ms = SNAPSHOT_MS, watches, is_kept }) {
  const { selector, ref, depth } = part;
  const after_ref = await lastRef(run.tab_id);
  const limits = () => ({ max_nodes, max_bytes, after_ref, limit_ms: run.waitLimit(limit_ms), watches });
  const { value: told, frame_id } = await askWhere(run, "snapshot", { selector, ref, depth, ...limits(), part: is_kept ? part : undefined });
  const page = new Whole(run, told, (hole) => ({ depth: depth === undefined ? undefined : depth - hole.depth - 1, ...limits() }));
  const { lines, frames } = await page.outline(told, frame_id);
  await keepLastRef(run.tab_id, page.last_ref);
  const left_out = [...told.left_out, ...page.left_out];
  const { text, n_cut } = cutLines(lines.join("\n"), max_bytes, max_nodes);
  if (n_cut > 0) left_out.push(`${n_cut} lines of frames, for which there was no room`);
  const { url, title, origin, document_id } = told;
  const now = { url, title, origin, document_id, text, left_out, is_cut: told.is_cut || n_cut > 0, frame_ids: page.frame_ids, frames };
  return is_kept ? { ...now, snapshot_id: await nameOf(run, told, frame_id, part, now) } : now;
}

export async function pageText({ selector, ref }, run) {
  if (run.is_pdf) return await pdfText(run);
  await tryAttach(run.tab_id);
  const { value: told, frame_id } = await askWhere(run, "text", { selector, ref });
  const page = new Whole(run, told, () => ({}));
  const text = masked(run, await page.text(told, frame_id));
  const { left_out } = page;
  if (text.length > MAX_TEXT_CHARS) left_out.push(`${text.length - MAX_TEXT_CHARS} more characters; pass a \`selector\` or \`ref\` for a part`);
  const said = left_out.map((one) => `\n[left out: ${one}]`).join("");
  return dropAbsent({ url: told.url, title: told.title, origin: told.origin, text: text.slice(0, MAX_TEXT_CHARS) + said, left_out: left_out.length > 0 ? left_out : undefined });
}

/** The file is fetched once more, as a rule from the browser's cache. */
async function pdfText(run) {
  const { url, title } = await chrome.tabs.get(run.tab_id);
  const bytes = await pdfBytes(url);
  const told = bytes && (await textOfPdf(bytes).catch(() => null));
  if (!told) throw unreadablePdf();
  const { left_out, n_pages } = told;
  const text = told.text.toWellFormed();
  if (text.length > MAX_TEXT_CHARS) left_out.push(`${text.length - MAX_TEXT_CHARS} more characters`);
  if (/^(\[page \d+\]|\s)*$/.test(text)) left_out.push("all that the pages show: there is no text in them; take a screenshot");
  const said = left_out.map((one) => `\n[left out: ${one}]`).join("");
  return dropAbsent({ url, title, origin: new URL(url).origin, kind: "pdf", pages: n_pages, text: text.slice(0, MAX_TEXT_CHARS) + said, left_out: left_out.length > 0 ? left_out : undefined });
}

async function pdfBytes(url) {
  if (!/^https?:/.test(url)) return null;
  try {
    const answer = await fetch(url, { credentials: "include", cache: "force-cache", redirect: "error", signal: AbortSignal.timeout(PDF_MS) });
    if (!answer.ok || Number(answer.headers.get("content-length")) > MAX_PDF) return null;
    return new Uint8Array(await answer.arrayBuffer());
  } catch {
    return null;
  }
}

export async function waitFor({ selector, ref, text, url, state = "visible", network_idle = false }, run) {
  if (!STATES.includes(state)) throw invalid(`\`state\` must be one of ${STATES.join(", ")}`);
  if ([selector, ref, text, url].every((one) => one === undefined) && !network_idle) throw invalid("pass `selector`, `ref`, `text`, `url` or `network_idle`");
  // What is not attached is not heard of.
  if (network_idle) await attach(run.tab_id);
  if (ref !== undefined || selector !== undefined) await run.recorder?.reached(ref === undefined ? { selector } : { ref });
  const begun = performance.now();
  const wants_page = selector !== undefined || ref !== undefined || text !== undefined;
  const met = await until(run, run.waitLimit(Infinity), async () => {
    const tab = await chrome.tabs.get(run.tab_id);
    if (url !== undefined && !matches(tab.url, url)) return null;
    if (network_idle && !isIdle(tab)) return null;
    if (!wants_page) return { tab };
    const found = await checkAll(run, { selector, ref, text, state });
    return found ? { tab, what: found.what } : null;
  });
  const wanted = [selector !== undefined && `\`${selector}\``, ref !== undefined && `ref ${ref}`, text !== undefined && `the text ${JSON.stringify(text)}`, url !== undefined && `the address ${url}`, network_idle && "an idle network"].filter(Boolean).join(" and ");
  if (!met) throw new CommandError("tool_failed", `${wanted} did not become ${state} in time`, { guarantee: "executed", reason: "wait_failed", hint: "pass a larger timeout_ms, or take a snapshot to see the page" });
  return dropAbsent({ state, url: met.tab.url, title: met.tab.title, target: met.what, waited_ms: Math.round(performance.now() - begun) });
}

function isIdle({ id, status }) {
  const { n_open, quiet_ms } = trafficOf(id);
  return status === "complete" && n_open === 0 && quiet_ms >= IDLE_MS;
}

/** What is waited for may be in any frame; what is to be gone, in none. */
async function checkAll(run, wanted) {
  const found = await ask(run, "check", wanted);
  const wants_gone = wanted.state === "hidden";
  if (wanted.ref !== undefined || found.is_met !== wants_gone) return found.is_met ? found : null;
  for (const { frame_id } of ownFrames(await framesOf(run.tab_id))) {
    const { value } = await within(FRAME_MS, call(run.tab_id, "check", wanted, frame_id));
    if (value && value.is_met !== wants_gone) return wants_gone ? null : value;
  }
  return wants_gone ? found : null;
}

export async function screenshot(params, run) {
  const { tab_id } = run;
  const tab = await chrome.tabs.get(tab_id);
  if (!(await tryAttach(tab_id))) return await ofFrontTab(tab_id);
  const clip = await clipOf(params, run);
  const data = await capture(run, tab.active ? FIRST_ASK_MS.front : FIRST_ASK_MS.behind, { format: "jpeg", quality: QUALITY, clip, captureBeyondViewport: params.full_page === true });
  if (!data) throw new CommandError("tool_failed", "the tab did not paint", { guarantee: "executed", reason: "not_painted", hint: "bring it to the front with interact {action: \"tab_select\"}" });
  const { width, height } = sizeOfJpeg(data);
  return { mime: "image/jpeg", data, width, height, url: tab.url, title: tab.title };
}

/** A tab behind another one leaves the first request waiting until it is asked again. */
async function capture(run, first_ms, options) {
  const limit = performance.now() + run.waitLimit(CAPTURE_MS);
  const shots = [];
  while (performance.now() < limit && !run.ended) {
    shots.push(send(run.tab_id, "Page.captureScreenshot", options));
    shots.at(-1).catch(() => {});
    const shot = await Promise.race([...shots, sleep(shots.length === 1 ? first_ms : AGAIN_MS, null)]);
    if (shot) return shot.data;
  }
  return null;
}

/** What is shown of the page, with a scale that keeps the longer edge within the limit. */
async function clipOf(params, run) {
  const is_part = params.ref !== undefined || params.selector !== undefined;
  // Brought into view first: how far the page is scrolled is asked after that.
  const box = is_part ? await reach(run, pick(params), {}) : null;
  const page = await ask(run, "size").catch(() => null);
  let area;
  if (box && page) {
    area = { x: box.x - box.width / 2 + page.scroll_x, y: box.y - box.height / 2 + page.scroll_y, width: box.width, height: box.height };
  } else if (page && params.full_page === true) {
    area = { x: 0, y: 0, width: page.full_width, height: Math.min(page.full_height, MAX_PAGE_HEIGHT) };
  } else if (page) {
    area = { x: page.scroll_x, y: page.scroll_y, width: page.width, height: page.height };
  } else {
    const { cssVisualViewport: view } = await send(run.tab_id, "Page.getLayoutMetrics");
    area = { x: view.pageX, y: view.pageY, width: view.clientWidth, height: view.clientHeight };
  }
  return { ...area, scale: Math.min(1, MAX_EDGE / (Math.max(area.width, area.height) * (page?.ratio ?? 1))) };
}

/** A page with the frames of other origins in it, each read by its own agent when its place is come to. */
class Whole {
  left_out = [];
  frame_ids = [];
  #run;
  #args;
  #frames = null;

  constructor(run, { last_ref = 0 }, args) {
    this.#run = run;
    this.#args = args;
    this.last_ref = last_ref;
  }

  /** `{lines, frames}`, as `changesBetween` takes them. */
  async outline(told, frame_id, nesting = 0) {
    const inner = await Promise.all(told.holes.map((hole) => this.#read("snapshot", hole, frame_id, nesting)));
    const own = told.text === "" ? [] : told.text.split("\n");
    const [lines, frames] = [[], []];
    let at = 0;
    for (const [n, hole] of told.holes.entries()) {
      const { frame, value, why } = inner[n];
      while (at <= hole.line) lines.push(own[at++]);
      lines[lines.length - 1] += ` (${frame ? `origin ${frame.origin}` : "of another origin"}${why ? `; ${why}` : ""})`;
      const noted = { line: lines.length - 1, frame_id: frame?.frame_id, place: `${frame_id}/${hole.path}`, name: frame?.origin ?? "another origin", url: frame?.url ?? hole.url, is_whole: value !== undefined && !value.is_cut };
      frames.push(noted);
      if (value) await this.#put(value, frame, hole, { lines, frames }, nesting);
      noted.end = lines.length;
    }
    while (at < own.length) lines.push(own[at++]);
    return { lines, frames };
  }

  async #put(value, frame, hole, { lines, frames }, nesting) {
    this.last_ref = Math.max(this.last_ref, value.last_ref);
    this.left_out.push(...value.left_out.map((one) => `in the frame of ${frame.origin}: ${one}`));
    const inside = await this.outline(value, frame.frame_id, nesting + 1);
    for (const each of inside.frames) frames.push({ ...each, line: each.line + lines.length, end: each.end + lines.length });
    const indent = "  ".repeat(Math.min(hole.depth + 1, 30));
    for (const line of inside.lines) lines.push(indent + line);
  }

  async text(told, frame_id, nesting = 0) {
    const parts = told.parts.map(async (part) => {
      if (typeof part === "string") return part;
      const { frame, value, why } = await this.#read("text", part, frame_id, nesting);
      if (!value) return `\n[a frame of ${frame?.origin ?? "another origin"}: ${why}]\n`;
      return `\n[frame of ${frame.origin}]\n${await this.text(value, frame.frame_id, nesting + 1)}\n[end of frame]\n`;
    });
    return (await Promise.all(parts)).join("");
  }

  async #read(method, hole, frame_id, nesting) {
    this.#frames ??= framesOf(this.#run.tab_id).catch(() => []);
    const frames = await this.#frames;
    const around = frames.find((frame) => frame.frame_id === frame_id);
    const frame = frameAt(frames, hole, around);
    const { value, why } = await this.#ask(method, frame, hole, nesting);
    if (value) this.frame_ids.push(frame.frame_id);
    if (why) this.left_out.push(`what is in the frame ${JSON.stringify((frame?.url ?? hole.url).slice(0, 200))}: ${why}`);
    return { frame, value, why };
  }

  async #ask(method, frame, hole, nesting) {
    if (!frame) return { why: "it is not among the frames of the tab, or not loaded yet" };
    if (!frame.is_scriptable) return { why: "the browser lets no extension read it, or it does not react" };
    if (nesting >= MAX_NESTING) return { why: "it is nested too deep" };
    const args = this.#args(hole);
    if (args.depth <= 0) return { why: "it is deeper than `depth`" };
    const reply = await within(FRAME_MS, call(this.#run.tab_id, method, args, frame.frame_id));
    return reply.value ? { value: reply.value } : { why: reply.missing ?? reply.error ?? "it does not react" };
  }
}

/** The answer of a frame, or none when it takes too long or goes away. */
async function within(limit_ms, asked) {
  return await Promise.race([asked.catch((error) => ({ error: error.message })), sleep(limit_ms, {})]);
}

/** As many whole lines as fit. */
function cutLines(text, max_bytes, max_lines = Infinity) {
  const bytes = new TextEncoder().encode(text).length;
  const lines = text.split("\n");
  if (bytes <= max_bytes + MAX_LAST_LINE && lines.length <= max_lines) return { text, n_cut: 0 };
  const kept = [];
  let left = max_bytes;
  for (const line of lines) {
    left -= new TextEncoder().encode(line).length + 1;
    if (left < 0 || kept.length >= max_lines) break;
    kept.push(line);
  }
  return { text: kept.join("\n"), n_cut: lines.length - kept.length };
}

/**
 * Without the debugger only the tab in front can be seen. What a window shows is the tab's while that is in front: the user may bring
 * another one there meanwhile.
 */
async function ofFrontTab(tab_id) {
  const tab = await chrome.tabs.get(tab_id);
  let is_left = !tab.active;
  const look = ({ tabId, windowId }) => (is_left ||= windowId === tab.windowId && tabId !== tab_id);
  chrome.tabs.onActivated.addListener(look);
  try {
    const url = is_left ? null : await chrome.tabs.captureVisibleTab(tab.windowId, { format: "jpeg", quality: QUALITY });
    const now = await chrome.tabs.get(tab_id);
    if (is_left || !now.active || now.windowId !== tab.windowId) {
      throw new CommandError("tool_failed", "only the tab in front can be seen without the debugger", { guarantee: "not_executed", reason: "not_painted", hint: "bring it to the front with interact {action: \"tab_select\"}" });
    }
    return await pictureOf(now, url);
  } finally {
    chrome.tabs.onActivated.removeListener(look);
  }
}

async function pictureOf(tab, url) {
  const whole = await createImageBitmap(await (await fetch(url)).blob());
  const scale = Math.min(1, MAX_EDGE / Math.max(whole.width, whole.height));
  const canvas = new OffscreenCanvas(Math.round(whole.width * scale), Math.round(whole.height * scale));
  canvas.getContext("2d").drawImage(whole, 0, 0, canvas.width, canvas.height);
  const bytes = new Uint8Array(await (await canvas.convertToBlob({ type: "image/jpeg", quality: QUALITY / 100 })).arrayBuffer());
  let text = "";
  for (let at = 0; at < bytes.length; at += 0x8000) text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return { mime: "image/jpeg", data: btoa(text), width: canvas.width, height: canvas.height, url: tab.url, title: tab.title };
}

/** Width and height from the frame header of a JPEG in base64. */
export function sizeOfJpeg(data) {
  const head = Uint8Array.from(atob(data.slice(0, 4096)), (one) => one.charCodeAt(0));
  for (let at = 2; at + 9 < head.length; ) {
    const marker = head[at + 1];
    if (marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker)) return { height: (head[at + 5] << 8) | head[at + 6], width: (head[at + 7] << 8) | head[at + 8] };
    at += 2 + ((head[at + 2] << 8) | head[at + 3]);
  }
  return {};
}

/** An address to wait for: a part of it, or the whole with `*` for anything. */
export function matches(address, wanted) {
  if (!wanted.includes("*")) return address.includes(wanted);
  const pattern = wanted.split("*").map((part) => part.replace(/[.+?^${}()|[\]\\]/g, "\\$&")).join(".*");
  return new RegExp(`^${pattern}$`).test(address);
}

function sleep(ms, value) {
  return new Promise((done) => setTimeout(done, ms, value));
}
