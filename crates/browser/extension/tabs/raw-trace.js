// The events of a trace as a file that DevTools and Perfetto open: JSON in gzip, of the page of one frame alone.

import { pidsIn } from "./summary.js";

const MAX_BYTES = 8 << 20;
const PORTION = 1000;
// What the stream still holds when the bound is reached.
const SLACK = 256 * 1024;

/** `{mime, data, events, left_out?}`; `data` is in base64. What is more than `most` bytes is left out and counted. */
export async function pack(events, frame_id, most = MAX_BYTES) {
  const max_bytes = Math.min(most, MAX_BYTES) - SLACK;
  const own = ownEvents(events, frame_id);
  const zip = new CompressionStream("gzip");
  const writer = zip.writable.getWriter();
  const parts = [];
  let n_bytes = 0;
  const read = (async () => {
    for await (const part of zip.readable) {
      parts.push(part);
      n_bytes += part.length;
    }
  })();
  const put = (text) => writer.write(new TextEncoder().encode(text));
  await put('{"traceEvents":[');
  let n = 0;
  for (; n < own.length && n_bytes < max_bytes; n += PORTION) {
    const portion = own.slice(n, n + PORTION).map((event) => JSON.stringify(event));
    await put((n > 0 ? ",\n" : "") + portion.join(",\n"));
  }
  await put("]}");
  await writer.close();
  await read;
  const n_told = Math.min(n, own.length);
  const more = own.length > n_told ? { left_out: `${own.length - n_told} events` } : {};
  return { mime: "application/gzip", data: base64(parts), events: n_told, ...more };
}

/** The events of the processes that show a frame, without what they tell of other tabs. */
function ownEvents(events, frame_id) {
  const pids = new Set(events.flatMap((event) => pidsIn(event, frame_id)));
  const others = new Set(events.flatMap(framesIn).filter((one) => one.frame !== frame_id && !one.parent).map((one) => one.frame));
  const is_other = ({ args }) => [args?.frame, args?.data?.frame, args?.beginData?.frame].some((frame) => others.has(frame));
  return events.flatMap((event) => {
    if (event.name === "TracingStartedInBrowser") return [startOf(event, frame_id)];
    return (pids.has(event.pid) || (event.name === "FrameCommittedInBrowser" && event.args?.data?.frame === frame_id)) && !is_other(event) ? [event] : [];
  });
}

function framesIn({ name, args }) {
  if (name === "TracingStartedInBrowser") return args?.data?.frames ?? [];
  return name === "FrameCommittedInBrowser" && args?.data?.frame ? [args.data] : [];
}

/** What the browser says of all its tabs when a trace begins, as far as it is of one. */
function startOf(event, frame_id) {
  const { frames = [], ...data } = event.args?.data ?? {};
  return { ...event, args: { ...event.args, data: { ...data, frames: frames.filter((one) => one.frame === frame_id || one.parent === frame_id) } } };
}

function base64(parts) {
  let text = "";
  for (const part of parts) for (let at = 0; at < part.length; at += 0x8000) text += String.fromCharCode(...part.subarray(at, at + 0x8000));
  return btoa(text);
}
