// The objects of a PDF file: read by going through the file, so that broken tables of places do no harm.
//
// A name is `{name}`, a reference `{ref}`, a stream `{dict, raw}`, a string of bytes `{bytes}`; dictionaries are Maps.

const MAX_OUT = 64 << 20;
const DELIMITER = /[\s()<>[\]{}/%]/;

/** Reads tokens and values from a text of which each character is one byte. */
export class Reader {
  constructor(text, at = 0) {
    Object.assign(this, { text, at });
  }

  skip() {
    const { text } = this;
    for (;;) {
      while (this.at < text.length && /[\s\0]/.test(text[this.at])) this.at++;
      if (text[this.at] !== "%") return;
      while (this.at < text.length && text[this.at] !== "\n" && text[this.at] !== "\r") this.at++;
    }
  }

  /** The next value, `{op}` for a word that is none, or undefined at the end. */
  value() {
    this.skip();
    const { text, at } = this;
    const first = text[at];
    if (first === undefined) return undefined;
    if (first === "/") return { name: this.#word(at + 1).replace(/#([\da-f]{2})/gi, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16))) };
    if (first === "(") return { bytes: this.#string() };
    if (text.startsWith("<<", at)) return this.#dictionary();
    if (first === "<") return { bytes: this.#hex() };
    if (first === "[") return this.#array();
    if (DELIMITER.test(first)) {
      this.at++;
      return this.value();
    }
    const word = this.#word(at);
    if (/^[+-]?(\d+\.?\d*|\.\d+)$/.test(word)) return this.#number(word);
    return word === "true" ? true : word === "false" ? false : word === "null" ? null : { op: word };
  }

  #word(from) {
    let to = from;
    while (to < this.text.length && !DELIMITER.test(this.text[to]) && this.text[to] !== "\0") to++;
    this.at = to;
    return this.text.slice(from, to);
  }

  /** A number, or the reference that begins with it. */
  #number(word) {
    const is_ref = /^\d+$/.test(word) && /^\s+\d+\s+R(?![\w])/.exec(this.text.slice(this.at, this.at + 30));
    if (!is_ref) return Number(word);
    this.at += is_ref[0].length;
    return { ref: Number(word) };
  }

  #array() {
    const items = [];
    this.at++;
    for (;;) {
      this.skip();
      if (this.at >= this.text.length || this.text[this.at] === "]") break;
      items.push(this.value());
    }
    this.at++;
    return items;
  }

  #dictionary() {
    const members = new Map();
    this.at += 2;
    for (;;) {
      this.skip();
      if (this.at >= this.text.length || this.text.startsWith(">>", this.at)) break;
      const key = this.value();
      if (key?.name === undefined) continue;
      members.set(key.name, this.value());
    }
    this.at += 2;
    return members;
  }

  #hex() {
    const end = this.text.indexOf(">", this.at);
    const digits = this.text.slice(this.at + 1, end < 0 ? undefined : end).replace(/[^\da-f]/gi, "");
    this.at = end < 0 ? this.text.length : end + 1;
    return digits.padEnd(digits.length + (digits.length % 2), "0").replace(/../g, (pair) => String.fromCharCode(Number.parseInt(pair, 16)));
  }

  #string() {
    const ESCAPES = { n: "\n", r: "\r", t: "\t", b: "\b", f: "\f", "\n": "" };
    let said = "";
    let depth = 0;
    for (this.at++; this.at < this.text.length; this.at++) {
      const one = this.text[this.at];
      if (one === "\\") {
        const octal = /^[0-7]{1,3}/.exec(this.text.slice(this.at + 1, this.at + 4))?.[0];
        if (octal) said += String.fromCharCode(Number.parseInt(octal, 8) & 0xff);
        else said += ESCAPES[this.text[this.at + 1]] ?? this.text[this.at + 1] ?? "";
        this.at += octal ? octal.length : 1;
      } else if (one === ")" && depth-- === 0) break;
      else {
        if (one === "(") depth++;
        said += one;
      }
    }
    this.at++;
    return said;
  }
}

export class Pdf {
  #objects = new Map();
  root = null;
  is_encrypted = false;

  /** `bytes` is a Uint8Array. */
  static async read(bytes) {
    const pdf = new Pdf();
    await pdf.#scan(textOf(bytes));
    return pdf;
  }

  async #scan(text) {
    const header = /(\d+)\s+\d+\s+obj\b|\btrailer\b/g;
    const packed = [];
    for (let found = header.exec(text); found; found = header.exec(text)) {
      const reader = new Reader(text, header.lastIndex);
      const value = reader.value();
      if (found[1] === undefined) this.#trailer(value);
      else {
        const object = value instanceof Map ? streamAt(text, reader, value) : value;
        this.#objects.set(Number(found[1]), object);
        if (value instanceof Map && value.get("Type")?.name === "ObjStm") packed.push(object);
        if (value instanceof Map && value.get("Type")?.name === "XRef") this.#trailer(value);
      }
      header.lastIndex = Math.max(reader.at, header.lastIndex);
    }
    for (const one of packed) await this.#unpack(one);
  }

  #trailer(dict) {
    if (!(dict instanceof Map)) return;
    this.root = dict.get("Root") ?? this.root;
    this.is_encrypted ||= dict.get("Encrypt") !== undefined;
  }

  async #unpack(packed) {
    const text = await this.streamText(packed);
    if (text === null) return;
    const reader = new Reader(text);
    const first = this.get(packed.dict.get("First"));
    for (let n = 0; n < this.get(packed.dict.get("N")); n++) {
      const number = reader.value();
      const at = reader.value();
      if (typeof number !== "number" || typeof at !== "number") return;
      if (!this.#objects.has(number)) this.#objects.set(number, new Reader(text, first + at).value());
    }
  }

  /** A value, with a reference followed. */
  get(value) {
    for (let n = 0; n < 16 && value?.ref !== undefined; n++) value = this.#objects.get(value.ref);
    return value;
  }

  /** A member of a dictionary, or of that of a stream. */
  in(holder, name) {
    const found = this.get(holder);
    const dict = found instanceof Map ? found : found?.dict;
    return this.get(dict?.get(name));
  }

  /** What a stream holds, each character one byte; null where its filter is not known. */
  async streamText(stream) {
    const found = this.get(stream);
    if (found?.raw === undefined) return null;
    const filters = [this.in(found, "Filter") ?? []].flat().map((one) => this.get(one)?.name);
    let { raw } = found;
    for (const filter of filters) {
      if (filter === "FlateDecode" || filter === "Fl") raw = await inflated(raw);
      else if (filter === "ASCIIHexDecode") raw = new Reader(`<${raw}`).value().bytes;
      else return null;
    }
    return raw;
  }
}

function streamAt(text, reader, dict) {
  reader.skip();
  if (!text.startsWith("stream", reader.at)) return dict;
  let from = reader.at + 6;
  if (text[from] === "\r") from++;
  if (text[from] === "\n") from++;
  const told = dict.get("Length");
  const fits = typeof told === "number" && /^\s*endstream/.test(text.slice(from + told, from + told + 20));
  const end = text.indexOf("endstream", from);
  const to = fits ? from + told : end < 0 ? text.length : end;
  reader.at = to;
  return { dict, raw: text.slice(from, to) };
}

/** What comes out until it is over or broken. */
async function inflated(raw) {
  const bytes = Uint8Array.from(raw, (one) => one.charCodeAt(0));
  const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate")).getReader();
  let text = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done || text.length > MAX_OUT) break;
      text += textOf(value);
    }
  } catch {
    // What came so far is as good as it gets.
  }
  return text;
}

function textOf(bytes) {
  const parts = [];
  for (let at = 0; at < bytes.length; at += 0x8000) parts.push(String.fromCharCode(...bytes.subarray(at, at + 0x8000)));
  return parts.join("");
}
