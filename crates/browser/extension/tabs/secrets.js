// What is typed into a password field goes only to the origin that its caller was last answered about, or
// to the one that the call names.

import { CommandError } from "../commands/errors.js";
import { lastTold } from "./callers.js";
import { originOf } from "./place.js";

/** Fails unless `params` may be typed into a field: `place` is what the agent says of it. */
export async function mayType(run, { origin }, place) {
  if (origin !== undefined) {
    if (originOf(origin) !== place.origin) throw elsewhere(`the field is of ${place.origin}, not of ${String(origin).slice(0, 200)}`);
    return;
  }
  if (!place.is_secret) return;
  const told = await lastTold(run.caller, run.tab_id);
  if (told !== place.origin) throw elsewhere(`the password field is of ${place.origin}, and the last answer about this tab was of ${told ?? "no page"}`);
}

function elsewhere(message) {
  return new CommandError("tool_failed", message, {
    guarantee: "not_executed",
    reason: "other_origin",
    hint: "take a snapshot and see whose page it is; `origin` says which one the text is for",
  });
}
