// Where a key that is pressed in a tab goes.

import { originOf } from "../tabs/place.js";
import { call } from "./agents.js";
import { framesOf, ownFrames } from "./frames.js";

const PAGE_MS = 1000;
const FRAMES_MS = 2500;

/**
 * `{is_secret, asks, field?, value?, from?, to?}`: whether a secret may be typed there, `asks` as `{origin, is_secret}` whose leave the key
 * needs, and of a field for secrets its name, what stands in it, and what of that is selected. What does not say so in time may be such a
 * field: of the page, or of the frame that has the focus.
 *
 * The page says where it has the focus. It hears a moment later of a frame that took it; and a frame that lost it still has a field of its
 * own: such a one is masked, and asked for only where it is known to have the focus.
 */
export async function whereKeysGo(tab_id, limit_ms = FRAMES_MS) {
  const last = Date.now() + limit_ms;
  const left = (most_ms) => Math.max(0, Math.min(most_ms, last - Date.now()));
  const asked = (id) => within(left(PAGE_MS), call(tab_id, "keysAreSecret", {}, id).then(({ value }) => value));
  const page = await asked(0);
  if (!page) return secretOf([originOf((await chrome.tabs.get(tab_id).catch(() => null))?.url)]);
  if (!page.inside && page.is_secret !== false) return ofField(page);
  const frames = (await within(left(FRAMES_MS), framesOf(tab_id))) ?? [];
  const told = page.inside ? await followed(page.inside, frames, asked) : ofField(page);
  const others = page.inside && told.is_secret ? [] : ownFrames(frames).map((frame) => frame.frame_id);
  const fields = await Promise.all(others.map(async (id) => (await asked(id)) ?? {}));
  const taken = fields.filter(({ is_secret, has_focus }) => is_secret && has_focus).map(ofField);
  const masked = fields.some(({ is_secret }) => is_secret !== false);
  const secret = [told, ...taken].find((one) => one.is_secret) ?? {};
  const asks = [...(told.is_secret || taken.length === 0 ? told.asks : []), ...taken.flatMap((one) => one.asks)];
  return { ...secret, is_secret: masked || secret.is_secret === true, asks };
}

/** Where keys go in the frame that has the focus, at a path. */
async function followed(inside, frames, asked) {
  for (let { path, is_plugin } = inside; ; ) {
    const found = frames.filter((frame) => !path.includes(-1) && String(frame.path) === String(path));
    if (found.length !== 1) return await amongUnplaced(frames, is_plugin, asked);
    const at = await asked(found[0].frame_id);
    if (!at) return secretOf([found[0].origin]);
    if (!at.inside) return ofField(at);
    [path, is_plugin] = [[...path, ...at.inside.path], at.inside.is_plugin];
  }
}

/** In a frame whose place is not known, as in shadow roots: all that it may be are asked. */
async function amongUnplaced(frames, is_plugin, asked) {
  const may_be = frames.filter(({ path, is_scriptable }) => path.includes(-1) || (is_plugin && is_scriptable));
  if (may_be.length === 0) return is_plugin ? { is_secret: false, asks: [] } : secretOf([undefined]);
  const told = await Promise.all(may_be.map(({ frame_id }) => asked(frame_id)));
  const secret = may_be.filter((_, n) => told[n]?.is_secret !== false || told[n].inside);
  return secret.length > 0 ? secretOf(secret.map(({ origin }) => origin)) : { is_secret: false, asks: [] };
}

function ofField({ is_secret, origin, field, value, from, to }) {
  const told = { is_secret: is_secret !== false };
  return { ...told, asks: [{ ...told, origin: origin ?? "null" }], ...(told.is_secret ? { field, value, from, to } : {}) };
}

function secretOf(origins) {
  return { is_secret: true, asks: [...new Set(origins)].map((origin) => ({ is_secret: true, origin: origin ?? "null" })) };
}

async function within(limit_ms, asked) {
  let timer;
  const late = new Promise((done) => (timer = setTimeout(done, limit_ms)));
  try {
    return await Promise.race([asked.catch(() => undefined), late]);
  } finally {
    clearTimeout(timer);
  }
}
