// A whole form in one call.
//
// `fill_form {fields: [{ref|selector, value}], origin?}` -> `{n_filled, fields: [{target, value}]}`, and what came of it as with `click`. A value is a
//   text, a number, `true` or `false` for what is checked, the value or label of an option or of a radio button, or a list of options.
//
// A field that is not ready is waited for; one that cannot be set does not stop those after it. When the page is left the rest is not
// tried. Unless all are set the command fails, and its details say which are.

import { CommandError, dropAbsent } from "../commands/errors.js";
import { mayType } from "../tabs/secrets.js";
import { prepare, told, withConsequences } from "./input.js";
import { MASK, noteSecret } from "./masks.js";
import { askWhere, pick } from "./reach.js";

const FORM_MS = 5000;
const AGAIN_MS = 50;
const TOLD_CHARS = 200;

export async function fillForm({ fields, origin }, run) {
  await prepare(run);
  const wanted = fields.map(({ value, secret, ...target }) => ({ target: pick(target), value, is_secret: secret === true }));
  const ends = [];
  const done = await withConsequences(run, async () => {
    const limit = performance.now() + run.waitLimit(FORM_MS);
    for (const { target, value, is_secret } of wanted) {
      if (run.ended) return;
      const end = await put(run, { target, value, origin, is_secret }, limit);
      ends.push(end);
      if (end.is_left) return;
    }
  });
  const n_filled = ends.filter((end) => end.error === undefined).length;
  if (n_filled < wanted.length) throw incomplete(wanted, ends, n_filled, done.dialog);
  return { n_filled, fields: ends, ...told({}, false, done), input: "events" };
}

/** Sets one field as soon as it can be set. */
async function put(run, { target, value, origin, is_secret }, limit) {
  if (is_secret) noteSecret(run, String(value), target);
  const asked = { ...target, value, names_origin: origin !== undefined };
  for (;;) {
    let why;
    await run.recorder?.reached(target);
    try {
      const { value: told } = await askWhere(run, "put", asked);
      if (told.asks) {
        await mayType(run, { origin }, told.asks);
        asked.origin = told.asks.origin;
        if (told.asks.is_secret) noteSecret(run, String(value), target);
        continue;
      }
      if (told.why === undefined) return { target: told.what, value: is_secret && told.value ? MASK : told.value };
      why = told.why;
    } catch (error) {
      if (error.reason === "navigated") return { error: "the page was left when it was set", is_left: true };
      if (error.reason !== "element_not_ready" || !/^(no element matches|ref )/.test(error.message) || target.ref !== undefined) return { error: error.message, guarantee: error.guarantee };
      why = error.message;
    }
    if (run.ended || performance.now() > limit) return { error: why };
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
  }
}

function incomplete(wanted, ends, n_filled, dialog) {
  const n_untried = wanted.length - ends.length;
  const failed = ends.flatMap(({ error }, index) => (error === undefined ? [] : [{ index, error: error.slice(0, TOLD_CHARS) }]));
  const said = failed.map(({ index, error }) => `fields[${index}]: ${error}`).join("; ");
  return new CommandError("tool_failed", `${n_filled} of ${wanted.length} fields are set: ${said}`.slice(0, 4000), {
    guarantee: n_filled > 0 || ends.some((end) => end.is_left) ? "executed" : furthest(ends),
    reason: "form_incomplete",
    details: dropAbsent({ n_filled, failed, n_untried: n_untried || undefined, dialog }),
  });
}

/** How far fields got none of which is set: one may have been acted on all the same. */
function furthest(ends) {
  return ["executed", "unknown"].find((guarantee) => ends.some((end) => end.guarantee === guarantee)) ?? "not_executed";
}
