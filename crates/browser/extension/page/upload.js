// `upload {ref|selector, files}` -> `{target, n_files, files: [{name, bytes}]}`, and what came of it as with `click`.
//
// The server reads the files, below the folder that a person named, and gives their bytes; the extension opens nothing on the disk.

import { CommandError } from "../commands/errors.js";
import { getFile } from "../link/server.js";
import { prepare, told, withConsequences } from "./input.js";
import { ask, askWhere, pick, until } from "./reach.js";

const FIELD_MS = 5000;
const PIECE_BYTES = 3 << 20;
const TYPES = { txt: "text/plain", csv: "text/csv", html: "text/html", json: "application/json", pdf: "application/pdf", png: "image/png", jpg: "image/jpeg", jpeg: "image/jpeg", gif: "image/gif", webp: "image/webp", svg: "image/svg+xml", mp3: "audio/mpeg", mp4: "video/mp4", zip: "application/zip", xml: "application/xml", md: "text/markdown" };

export async function upload({ files, ...params }, run) {
  await prepare(run);
  const at = await field(run, pick(params), files.length);
  const key = crypto.randomUUID();
  try {
    const given = [];
    for (const [n, path] of files.entries()) {
      if (run.ended) return;
      given.push(await give(run, at, { key, n, path }));
    }
    // From here on the page has them.
    const done = await withConsequences(run, () => ask(run, "attach", { ...at, key }));
    return { ...told({ what: done.value?.what }, false, done), n_files: done.value?.n_files, files: given, input: "events" };
  } catch (error) {
    await ask(run, "drop", { frame_id: at.frame_id, key }).catch(() => {});
    throw error;
  }
}

/** Waits for the field; it need not be visible: many pages hide it behind a button. */
async function field(run, target, n_files) {
  let why = "it is not there";
  const found = await until(run, run.waitLimit(FIELD_MS), async () => {
    try {
      const { value, frame_id } = await askWhere(run, "fileField", { ...target, n_files });
      if (value.why === undefined) {
        await run.recorder?.reached(target, frame_id);
        return { ...target, frame_id };
      }
      why = value.why;
    } catch (error) {
      if (error.reason !== "element_not_ready" || !error.message.startsWith("no element matches")) throw error;
      why = error.message;
    }
    return null;
  });
  if (!found) throw new CommandError("tool_failed", why, { guarantee: "not_executed", reason: "element_not_ready" });
  return found;
}

async function give(run, { frame_id }, { key, n, path }) {
  const name = path.split(/[\\/]/).at(-1);
  const type = TYPES[name.split(".").at(-1).toLowerCase()] ?? "";
  const bytes = await getFile(run.server, { correlation_id: run.id, step: run.step, n });
  for (let at = 0; at === 0 || at < bytes.length; at += PIECE_BYTES) {
    await ask(run, "receive", { frame_id, key, n, name, type, data: base64(bytes.subarray(at, at + PIECE_BYTES)) });
  }
  return { name, bytes: bytes.length };
}

function base64(bytes) {
  let text = "";
  for (let at = 0; at < bytes.length; at += 0x8000) text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(text);
}
