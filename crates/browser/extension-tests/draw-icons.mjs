// Draws the extension's icons: `node draw-icons.mjs` writes them. The shapes stand here once, for the
// SVG and for each PNG; small ones have a bolder mark.

import { writeFileSync } from "node:fs";
import { deflateSync } from "node:zlib";

export const SIZES = [16, 32, 48, 128];
const FOLDER = new URL("../extension/icons/", import.meta.url);
const BLUE = [0x2f, 0x6f, 0xe4];
const WHITE = [0xff, 0xff, 0xff];
const FINE = 8;

// In a square of 64: a drop from its tip around and back, and a check mark in it.
const DROP = "M32 0C27 12 8 23 8 40a24 24 0 0 0 48 0C56 23 37 12 32 0z";
const LEFT = [[32, 0], [27, 12], [8, 23], [8, 40]];
const BELLY = { x: 32, y: 40, rx: 24, ry: 24 };
const CHECK = [[21, 40], [29, 48], [43, 33]];
const strokeOf = (size) => (size <= 16 ? 9 : size <= 32 ? 8 : 7);

export function svg() {
  const [start, ...rest] = CHECK.map((point) => point.join(" "));
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64"><path fill="${hex(BLUE)}" d="${DROP}"/><path fill="none" stroke="${hex(WHITE)}" stroke-width="${strokeOf(64)}" stroke-linecap="round" stroke-linejoin="round" d="M${start}L${rest.join(" ")}"/></svg>\n`;
}

/** The pixels of one size as RGBA rows. */
export function pixels(size) {
  const edge = flatten(LEFT);
  const bytes = Buffer.alloc(size * size * 4);
  for (let y = 0; y < size; y++) {
    for (let x = 0; x < size; x++) bytes.set(pixel(x, y, size, edge), (y * size + x) * 4);
  }
  return bytes;
}

/** A pixel is what its samples are on average. */
function pixel(x, y, size, edge) {
  let [n_drop, n_check] = [0, 0];
  for (let n = 0; n < FINE * FINE; n++) {
    const at = [((x + ((n % FINE) + 0.5) / FINE) * 64) / size, ((y + (Math.floor(n / FINE) + 0.5) / FINE) * 64) / size];
    if (!isInDrop(at, edge)) continue;
    n_drop += 1;
    if (distance(at) <= strokeOf(size) / 2) n_check += 1;
  }
  if (n_drop === 0) return [0, 0, 0, 0];
  const color = BLUE.map((blue, n) => Math.round(blue + ((WHITE[n] - blue) * n_check) / n_drop));
  return [...color, Math.round((255 * n_drop) / (FINE * FINE))];
}

function isInDrop([x, y], edge) {
  if (y >= BELLY.y) return ((x - BELLY.x) / BELLY.rx) ** 2 + ((y - BELLY.y) / BELLY.ry) ** 2 <= 1;
  const n = edge.findIndex(([, below]) => below >= y);
  if (n <= 0) return false;
  const [[x0, y0], [x1, y1]] = [edge[n - 1], edge[n]];
  const left = x0 + ((x1 - x0) * (y - y0)) / (y1 - y0);
  return Math.abs(x - 32) <= 32 - left;
}

/** How far a point is from the middle of the check mark. */
function distance([x, y]) {
  const parts = CHECK.slice(1).map(([x1, y1], n) => {
    const [x0, y0] = CHECK[n];
    const [dx, dy] = [x1 - x0, y1 - y0];
    const along = Math.min(1, Math.max(0, ((x - x0) * dx + (y - y0) * dy) / (dx * dx + dy * dy)));
    return Math.hypot(x - x0 - along * dx, y - y0 - along * dy);
  });
  return Math.min(...parts);
}

function flatten([a, b, c, d]) {
  const point = (t) => [0, 1].map((n) => (1 - t) ** 3 * a[n] + 3 * (1 - t) ** 2 * t * b[n] + 3 * (1 - t) * t ** 2 * c[n] + t ** 3 * d[n]);
  return Array.from({ length: 201 }, (_, n) => point(n / 200));
}

function hex(color) {
  return `#${color.map((part) => part.toString(16).padStart(2, "0")).join("")}`;
}

/** The pixels as a PNG file. */
function png(size) {
  const head = Buffer.alloc(13);
  head.writeUInt32BE(size, 0);
  head.writeUInt32BE(size, 4);
  head.set([8, 6, 0, 0, 0], 8);
  const rows = pixels(size);
  const lines = Buffer.concat(Array.from({ length: size }, (_, y) => Buffer.concat([Buffer.from([0]), rows.subarray(y * size * 4, (y + 1) * size * 4)])));
  return Buffer.concat([Buffer.from("\x89PNG\r\n\x1a\n", "latin1"), chunk("IHDR", head), chunk("IDAT", deflateSync(lines, { level: 9 })), chunk("IEND", Buffer.alloc(0))]);
}

function chunk(name, data) {
  const named = Buffer.concat([Buffer.from(name, "latin1"), data]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  sum.writeUInt32BE(crc(named));
  return Buffer.concat([length, named, sum]);
}

function crc(bytes) {
  let sum = 0xffffffff;
  for (const byte of bytes) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit++) sum = (sum >>> 1) ^ (sum & 1 ? 0xedb88320 : 0);
  }
  return (sum ^ 0xffffffff) >>> 0;
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  writeFileSync(new URL("icon.svg", FOLDER), svg());
  for (const size of SIZES) writeFileSync(new URL(`icon-${size}.png`, FOLDER), png(size));
}
