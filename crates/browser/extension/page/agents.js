// Calls to the agents in the frames of a tab, each in the world of the extension.

import { CommandError, navigatedAway } from "../commands/errors.js";
import { closed, whyFrameClosed } from "../status/origins.js";
import { whyHostBlocked } from "../tabs/urls.js";

const AGENT = ["page/dom.js", "page/outline.js", "page/text.js", "page/kept.js", "page/fields.js", "page/target.js", "page/agent.js"];
const IDLE_MS = 1500;
const NEVER_THERE = /No frame with id|No tab with id/i;
const ABSENT = "absent";
const GONE = /Frame with ID \d+ was removed|No frame with id|context was destroyed|The frame was removed|tab was closed|No tab with id/i;

/**
 * Calls one method of the agent in a frame; puts the agent there first where it is not yet. Answers `{value}`, or
 * `{missing}` for what is not in the page, or `{error}`. Fails with the reason `navigated` when the page or the frame goes.
 */
export async function call(tab_id, method, args, frame_id = 0) {
  const why = await whyFrameClosed(tab_id, frame_id);
  if (why !== null && frame_id === 0) throw closed(why);
  if (why !== null) return { missing: `${why} by the user`, is_closed: true };
  if (frame_id !== 0 && (await isFrameBlocked(tab_id, frame_id))) return { missing: "what is in its frame may not be read: it is of the server's own port, or of a link-local or metadata address", is_closed: true };
  const target = { tabId: tab_id, frameIds: [frame_id] };
  const left = watchLeft(tab_id, frame_id);
  try {
    return await Promise.race([left.gone, ask(target, method, { prefix: frame_id === 0 ? "" : `f${frame_id}`, ...args })]);
  } catch (error) {
    if (error instanceof CommandError) throw error;
    // One that went while it was asked may have done it.
    if (frame_id !== 0 && NEVER_THERE.test(error.message)) return { missing: "its frame is not on this page any more; take a new snapshot" };
    if (GONE.test(error.message)) throw navigatedAway();
    throw new CommandError("tool_failed", `this page cannot be read: ${error.message}`, { guarantee: "not_executed", reason: "page_not_scriptable", hint: "navigate to a web page first" });
  } finally {
    left.stop();
  }
}

async function isFrameBlocked(tab_id, frame_id) {
  const frame = await chrome.webNavigation.getFrame({ tabId: tab_id, frameId: frame_id });
  return frame !== null && whyHostBlocked(frame.url) !== null;
}

async function ask(target, method, args) {
  const asked = { target, injectImmediately: true, func: (method, args, absent) => (globalThis.raincheckAgent ? globalThis.raincheckAgent(method, args) : absent), args: [method, args, ABSENT] };
  let [told] = await chrome.scripting.executeScript(asked);
  // Without an answer it may have been done, and is not asked again.
  if (told?.result === ABSENT) {
    await putAgent(target);
    [told] = await chrome.scripting.executeScript(asked);
  }
  if (!told?.result || told.result === ABSENT) throw new Error("The frame was removed.");
  return told.result;
}

/** Puts the agent into the page that a command led to, so that the next one finds it there. */
export async function putAhead(tab_id) {
  if ((await whyFrameClosed(tab_id, 0)) === null) await putAgent({ tabId: tab_id, frameIds: [0] });
}

/** Waits until the page is parsed, unless that takes long: what is there by then can be read. */
async function putAgent(target) {
  const put = (injectImmediately) => chrome.scripting.executeScript({ target, files: AGENT, injectImmediately });
  let timer;
  const late = new Promise((resolve, reject) => (timer = setTimeout(() => put(true).then(resolve, reject), IDLE_MS)));
  try {
    await Promise.race([put(false), late]);
  } finally {
    clearTimeout(timer);
  }
}

/** What a page that is left was asked is never answered. */
function watchLeft(tab_id, frame_id) {
  const { onCommitted } = chrome.webNavigation;
  let listener;
  const gone = new Promise((_, reject) => {
    listener = ({ tabId, frameId, url }) => {
      if (tabId === tab_id && (frameId === frame_id || frameId === 0)) reject(navigatedAway(frameId === 0 ? url : undefined));
    };
  });
  gone.catch(() => {});
  onCommitted.addListener(listener);
  return { gone, stop: () => onCommitted.removeListener(listener) };
}

/** Runs a function of no state in a frame and gives back its value; null where that cannot be, or takes too long. */
export async function probe(tab_id, frame_id, func, limit_ms) {
  const asked = chrome.scripting.executeScript({ target: { tabId: tab_id, frameIds: [frame_id] }, injectImmediately: true, func });
  const late = new Promise((done) => setTimeout(done, limit_ms, null));
  const told = await Promise.race([asked.catch(() => null), late]);
  return told?.[0]?.result ?? null;
}
