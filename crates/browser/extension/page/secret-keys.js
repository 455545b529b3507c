// Whether a key that is pressed in a tab goes to where secrets are typed.

import { call } from "./agents.js";
import { framesOf, ownFrames } from "./frames.js";

/**
 * `{is_secret, origin?}`: what cannot be seen counts as if it did. `origin` is that of the field where it is known to have the focus, in
 * the page itself: a frame of another origin keeps the focus in it while the page has it elsewhere.
 */
export async function whereKeysGo(tab_id) {
  const frames = [0, ...ownFrames(await framesOf(tab_id)).map((frame) => frame.frame_id)];
  const told = await Promise.all(frames.map((id) => call(tab_id, "keysAreSecret", {}, id)));
  return { is_secret: told.some(({ value }) => value?.is_secret !== false), origin: told[0].value?.origin };
}
