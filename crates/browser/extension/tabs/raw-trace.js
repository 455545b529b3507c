// The events of a trace as a file that DevTools and Perfetto open: JSON in gzip.

const MAX_BYTES = 8 << 20;
const PORTION = 1000;
// What the stream still holds when the bound is reached.
const SLACK = 256 * 1024;

/**
 * `{mime, data, events, left_out?}`; `data` is in base64. What is more than `most` bytes, and what is not packed by `until`
 * (of `performance.now()`), is left out and counted.
 */
export async function pack(events, { most = MAX_BYTES, until = Infinity } = {}) {
  const max_bytes = Math.min(most, MAX_BYTES) - SLACK;
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
  for (; n < events.length && n_bytes < max_bytes && performance.now() < until; n += PORTION) {
    const portion = events.slice(n, n + PORTION).map((event) => JSON.stringify(event));
    await put((n > 0 ? ",\n" : "") + portion.join(",\n"));
  }
  await put("]}");
  await writer.close();
  await read;
  const n_told = Math.min(n, events.length);
  const more = events.length > n_told ? { left_out: `${events.length - n_told} events` } : {};
  return { mime: "application/gzip", data: base64(parts), events: n_told, ...more };
}

function base64(parts) {
  let text = "";
  for (const part of parts) for (let at = 0; at < part.length; at += 0x8000) text += String.fromCharCode(...part.subarray(at, at + 0x8000));
  return btoa(text);
}
