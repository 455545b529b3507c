// Whether a key that is pressed in a tab goes to where secrets are typed.

import { call } from "./agents.js";
import { framesOf, ownFrames } from "./frames.js";

/** What cannot be seen counts as if it did. */
export async function seesSecret(tab_id) {
  const frames = [0, ...ownFrames(await framesOf(tab_id)).map((frame) => frame.frame_id)];
  const told = await Promise.all(frames.map((id) => call(tab_id, "keysAreSecret", {}, id)));
  return told.some(({ value }) => value?.is_secret !== false);
}
