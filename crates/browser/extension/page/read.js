// Reading a page.
//
// `snapshot {selector?|ref?}` -> `{url, title, origin, text}`; `text` is an indented accessibility tree with
//   refs: `- button "Save" [ref=e12]`. A ref is good until the page is left.
// `page_text {selector?|ref?}` -> `{url, title, origin, text}`
// `screenshot {full_page?, ref?|selector?}` -> `{mime: "image/jpeg", data, width, height, url, title}`
// `wait_for {selector?|ref?|text?|url?, state?}` -> `{state, url, title, target?, waited_ms}`

import { CommandError, dropAbsent, invalid } from "../commands/errors.js";
import { send, tryAttach } from "../tabs/sessions.js";
import { ask, keepLastRef, lastRef, pick, reach, until } from "./reach.js";

const QUALITY = 60;
const MAX_EDGE = 1568;
const MAX_PAGE_HEIGHT = 16_000;
const CAPTURE_MS = 5000;
const FIRST_ASK_MS = 300;
const AGAIN_MS = 1000;
const STATES = ["visible", "hidden", "attached"];

export async function snapshot({ selector, ref }, run) {
  await tryAttach(run.tab_id);
  const { last_ref, ...told } = await ask(run, "snapshot", { selector, ref, after_ref: await lastRef(run.tab_id) });
  await keepLastRef(run.tab_id, last_ref);
  return told;
}

export async function pageText({ selector, ref }, run) {
  await tryAttach(run.tab_id);
  return await ask(run, "text", { selector, ref });
}

export async function waitFor({ selector, ref, text, url, state = "visible" }, run) {
  if (!STATES.includes(state)) throw invalid(`\`state\` must be one of ${STATES.join(", ")}`);
  if ([selector, ref, text, url].every((one) => one === undefined)) throw invalid("pass `selector`, `ref`, `text` or `url`");
  const begun = performance.now();
  const wants_page = selector !== undefined || ref !== undefined || text !== undefined;
  const met = await until(run, run.waitLimit(Infinity), async () => {
    const tab = await chrome.tabs.get(run.tab_id);
    if (url !== undefined && !matches(tab.url, url)) return null;
    if (!wants_page) return { tab };
    const found = await ask(run, "check", { selector, ref, text, state });
    return found.is_met ? { tab, what: found.what } : null;
  });
  const wanted = [selector !== undefined && `\`${selector}\``, ref !== undefined && `ref ${ref}`, text !== undefined && `the text ${JSON.stringify(text)}`, url !== undefined && `the address ${url}`].filter(Boolean).join(" and ");
  if (!met) throw new CommandError("tool_failed", `${wanted} did not become ${state} in time`, { guarantee: "executed", reason: "wait_failed", hint: "pass a larger timeout_ms, or take a snapshot to see the page" });
  return dropAbsent({ state, url: met.tab.url, title: met.tab.title, target: met.what, waited_ms: Math.round(performance.now() - begun) });
}

export async function screenshot(params, run) {
  const { tab_id } = run;
  const tab = await chrome.tabs.get(tab_id);
  if (!(await tryAttach(tab_id))) return await ofFrontTab(tab);
  const clip = await clipOf(params, run);
  const data = await capture(run, { format: "jpeg", quality: QUALITY, clip, captureBeyondViewport: params.full_page === true });
  if (!data) throw new CommandError("tool_failed", "the tab did not paint", { guarantee: "executed", reason: "not_painted", hint: "bring it to the front with interact {action: \"tab_select\"}" });
  const { width, height } = sizeOfJpeg(data);
  return { mime: "image/jpeg", data, width, height, url: tab.url, title: tab.title };
}

/** A tab behind another one may leave the first request waiting until it is asked again. */
async function capture(run, options) {
  const limit = performance.now() + run.waitLimit(CAPTURE_MS);
  const shots = [];
  while (performance.now() < limit && !run.ended) {
    shots.push(send(run.tab_id, "Page.captureScreenshot", options));
    shots.at(-1).catch(() => {});
    const shot = await Promise.race([...shots, sleep(shots.length === 1 ? FIRST_ASK_MS : AGAIN_MS, null)]);
    if (shot) return shot.data;
  }
  return null;
}

/** What is shown of the page, with a scale that keeps the longer edge within the limit. */
async function clipOf(params, run) {
  const page = await ask(run, "size").catch(() => null);
  let area;
  if (params.ref !== undefined || params.selector !== undefined) {
    const box = await reach(run, pick(params), {});
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

/** Without the debugger only the tab in front can be seen. */
async function ofFrontTab(tab) {
  if (!tab.active) throw new CommandError("tool_failed", "only the tab in front can be seen without the debugger", { guarantee: "not_executed", reason: "not_painted" });
  const url = await chrome.tabs.captureVisibleTab(tab.windowId, { format: "jpeg", quality: QUALITY });
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
