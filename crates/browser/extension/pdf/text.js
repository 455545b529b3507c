// The text of a PDF, page by page, as far as its fonts tell what their characters are.

import { Pdf, Reader } from "./objects.js";

const MAX_PAGES = 2000;
const MAX_FORMS = 8;
/** A gap in thousandths of the size of the font that is a space between words. */
const GAP = -180;
const GLYPHS = { space: " ", exclam: "!", quotedbl: '"', numbersign: "#", dollar: "$", percent: "%", ampersand: "&", quotesingle: "'", quoteright: "’", quoteleft: "‘", parenleft: "(", parenright: ")", asterisk: "*", plus: "+", comma: ",", hyphen: "-", period: ".", slash: "/", zero: "0", one: "1", two: "2", three: "3", four: "4", five: "5", six: "6", seven: "7", eight: "8", nine: "9", colon: ":", semicolon: ";", less: "<", equal: "=", greater: ">", question: "?", at: "@", bracketleft: "[", backslash: "\\", bracketright: "]", underscore: "_", braceleft: "{", bar: "|", braceright: "}", endash: "–", emdash: "—", bullet: "•", quotedblleft: "“", quotedblright: "”", fi: "fi", fl: "fl", ff: "ff", ffi: "ffi", ffl: "ffl", Euro: "€", adieresis: "ä", odieresis: "ö", udieresis: "ü", Adieresis: "Ä", Odieresis: "Ö", Udieresis: "Ü", germandbls: "ß", eacute: "é", egrave: "è", agrave: "à", ccedilla: "ç" };

/** `{text, n_pages, left_out}` of the bytes of a PDF; null where they are none that can be read. */
export async function textOfPdf(bytes) {
  const pdf = await Pdf.read(bytes);
  if (pdf.is_encrypted || !pdf.get(pdf.root)) return null;
  const pages = [];
  pagesOf(pdf, pdf.in(pdf.root, "Pages"), null, pages, new Set());
  const seen = { n_unknown: 0, n_unread: 0 };
  const texts = [];
  for (const { page, resources } of pages) {
    const parts = [pdf.in(page, "Contents") ?? []].flat();
    const contents = [];
    for (const part of parts) contents.push(await pdf.streamText(part));
    if (contents.includes(null)) seen.n_unread++;
    const text = await new Writer(pdf, seen).write(contents.filter((one) => one !== null).join("\n"), resources);
    texts.push(text.trim());
  }
  const left_out = [];
  if (seen.n_unread > 0) left_out.push(`${seen.n_unread} pages that are packed in a way that is not known here`);
  if (seen.n_unknown > 0) left_out.push(`${seen.n_unknown} characters of fonts that do not tell what they are`);
  return { text: texts.map((text, n) => `[page ${n + 1}]\n${text}`).join("\n\n"), n_pages: pages.length, left_out };
}

function pagesOf(pdf, node, inherited, pages, visited) {
  if (!(node instanceof Map) || visited.has(node) || pages.length >= MAX_PAGES) return;
  visited.add(node);
  const resources = pdf.get(node.get("Resources")) ?? inherited;
  const kids = pdf.get(node.get("Kids"));
  if (Array.isArray(kids)) for (const kid of kids) pagesOf(pdf, pdf.get(kid), resources, pages, visited);
  else pages.push({ page: node, resources });
}

/** Writes what the operators of a content stream show. */
class Writer {
  #said = "";
  #font = null;
  #size = 1;
  #line = { scale: 1, x: 0, y: 0 };
  /** Where what was shown ends. */
  #pen = 0;
  #pen_y = null;
  #is_placed = false;
  #fonts = new Map();

  constructor(pdf, seen) {
    Object.assign(this, { pdf, seen });
  }

  async write(content, resources, nesting = 0) {
    const reader = new Reader(content);
    let stack = [];
    for (let value = reader.value(); value !== undefined; value = reader.value()) {
      if (value?.op === undefined) {
        stack.push(value);
        continue;
      }
      if (value.op === "BI") skipImage(reader);
      else await this.#operate(value.op, stack, resources, nesting);
      stack = [];
    }
    return this.#said.replace(/[ \t]+\n/g, "\n");
  }

  async #operate(op, args, resources, nesting) {
    if (op === "Tf") {
      this.#font = await this.#fontOf(this.pdf.in(this.pdf.in(resources, "Font"), args[0]?.name));
      this.#size = Number(args[1]) || 1;
    } else if (op === "BT") this.#place(1, 0, 0);
    else if (op === "Td" || op === "TD") this.#place(this.#line.scale, this.#line.x + args[0] * this.#line.scale, this.#line.y + args[1] * this.#line.scale);
    else if (op === "Tm") this.#place(Math.hypot(args[0], args[1]) || 1, args[4], args[5]);
    else if (op === "T*") this.#newLine();
    else if (op === "Tj") this.#show(args[0]);
    else if (op === "'" || op === '"') {
      this.#newLine();
      this.#show(args.at(-1));
    } else if (op === "TJ") {
      for (const one of Array.isArray(args[0]) ? args[0] : []) {
        if (typeof one !== "number") this.#show(one);
        else {
          this.#pen -= (one / 1000) * this.#size * this.#line.scale;
          if (one < GAP) this.#space();
        }
      }
    } else if (op === "Do" && nesting < MAX_FORMS) await this.#form(this.pdf.in(this.pdf.in(resources, "XObject"), args[0]?.name), resources, nesting);
  }

  async #form(form, resources, nesting) {
    if (this.pdf.in(form, "Subtype")?.name !== "Form") return;
    const content = await this.pdf.streamText(form);
    if (content !== null) await this.write(content, this.pdf.in(form, "Resources") ?? resources, nesting + 1);
  }

  /** Goes to a place: on another line, further on than what was shown reaches, or right behind it. */
  #place(scale, x, y) {
    this.#line = { scale, x, y };
    this.#is_placed = true;
  }

  /** What is written next is where the last place was. */
  #arrive() {
    if (!this.#is_placed) return;
    this.#is_placed = false;
    const { scale, x, y } = this.#line;
    const height = this.#size * scale;
    if (this.#pen_y !== null && Math.abs(y - this.#pen_y) > height * 0.3) this.#newLine();
    else if (Math.abs(x - this.#pen) > height * 0.15) this.#space();
    this.#pen = x;
    this.#pen_y = y;
  }

  #newLine() {
    if (this.#said !== "" && !this.#said.endsWith("\n")) this.#said += "\n";
  }

  #space() {
    if (this.#said !== "" && !/\s$/.test(this.#said)) this.#said += " ";
  }

  #show(string) {
    if (string?.bytes === undefined) return;
    this.#arrive();
    const font = this.#font ?? { width: 1, advance: () => 500, decode: (code) => String.fromCharCode(code) };
    for (let at = 0; at + font.width <= string.bytes.length; at += font.width) {
      let code = 0;
      for (let n = 0; n < font.width; n++) code = code * 256 + string.bytes.charCodeAt(at + n);
      const said = font.decode(code);
      this.#pen += (font.advance(code) / 1000) * this.#size * this.#line.scale;
      if (said === undefined) this.seen.n_unknown++;
      this.#said += said ?? "\ufffd";
    }
  }

  async #fontOf(font) {
    if (!this.#fonts.has(font)) this.#fonts.set(font, await fontOf(this.pdf, font));
    return this.#fonts.get(font);
  }
}

/** How many bytes a character of a font has, and what each is. */
async function fontOf(pdf, font) {
  const is_composite = pdf.in(font, "Subtype")?.name === "Type0";
  const width = is_composite ? 2 : 1;
  const stream = pdf.in(font, "ToUnicode");
  const map = stream === undefined ? null : readMap((await pdf.streamText(stream)) ?? "");
  const advance = is_composite ? compositeWidths(pdf, pdf.get(pdf.in(font, "DescendantFonts")?.[0])) : simpleWidths(pdf, font);
  if (is_composite) return { width: map?.width ?? width, advance, decode: (code) => map?.characters.get(code) };
  const names = differencesOf(pdf, pdf.in(font, "Encoding"));
  const latin = new TextDecoder("windows-1252");
  return { width, advance, decode: (code) => map?.characters.get(code) ?? names.get(code) ?? latin.decode(Uint8Array.of(code)) };
}

function simpleWidths(pdf, font) {
  const first = pdf.in(font, "FirstChar") ?? 0;
  const widths = pdf.in(font, "Widths");
  return (code) => Number(pdf.get(widths?.[code - first])) || 500;
}

/** `[first [w w …] first last w …]`, for all others one width. */
function compositeWidths(pdf, font) {
  const widths = new Map();
  const list = pdf.in(font, "W") ?? [];
  for (let n = 0; n < list.length; ) {
    const [first, second] = [pdf.get(list[n]), pdf.get(list[n + 1])];
    if (Array.isArray(second)) {
      for (const [k, one] of second.entries()) widths.set(first + k, Number(pdf.get(one)));
      n += 2;
    } else {
      for (let code = first; code <= Math.min(second, first + 0xffff); code++) widths.set(code, Number(pdf.get(list[n + 2])));
      n += 3;
    }
  }
  const other = pdf.in(font, "DW") ?? 1000;
  return (code) => widths.get(code) ?? other;
}

function differencesOf(pdf, encoding) {
  const names = new Map();
  let code = 0;
  for (const one of pdf.in(encoding, "Differences") ?? []) {
    if (typeof one === "number") code = one;
    else if (one?.name !== undefined) names.set(code++, glyph(one.name));
  }
  return names;
}

function glyph(name) {
  const unicode = /^(?:uni|u)([\dA-F]{4,6})/.exec(name)?.[1];
  return unicode ? String.fromCodePoint(Number.parseInt(unicode, 16)) : (GLYPHS[name] ?? (name.length === 1 ? name : undefined));
}

/** Reads a table of codes and their characters. */
function readMap(text) {
  const characters = new Map();
  const number = (value) => [...(value?.bytes ?? "")].reduce((sum, one) => sum * 256 + one.charCodeAt(0), 0);
  const word = ({ bytes = "" } = {}) => bytes.replace(/../gs, (pair) => String.fromCharCode(pair.charCodeAt(0) * 256 + pair.charCodeAt(1)));
  const reader = new Reader(text);
  let width = 0;
  let stack = [];
  for (let value = reader.value(); value !== undefined; value = reader.value()) {
    if (value?.op === undefined) {
      stack.push(value);
      continue;
    }
    if (value.op === "endcodespacerange") width = stack.at(-1)?.bytes?.length ?? width;
    if (value.op === "endbfchar") for (let n = 0; n + 1 < stack.length; n += 2) characters.set(number(stack[n]), word(stack[n + 1]));
    if (value.op === "endbfrange") for (let n = 0; n + 2 < stack.length; n += 3) addRange(characters, number(stack[n]), number(stack[n + 1]), stack[n + 2], word);
    stack = [];
  }
  return { characters, width: width || undefined };
}

function addRange(characters, from, to, target, word) {
  for (let code = from; code <= Math.min(to, from + 0xffff); code++) {
    if (Array.isArray(target)) characters.set(code, word(target[code - from]));
    else {
      const first = word(target);
      characters.set(code, first.slice(0, -1) + String.fromCharCode(first.charCodeAt(first.length - 1) + code - from));
    }
  }
}

/** An image within the content has bytes that are no operators. */
function skipImage(reader) {
  const end = /\sEI(?=\s|$)/g;
  end.lastIndex = reader.at;
  const found = end.exec(reader.text);
  reader.at = found ? end.lastIndex : reader.text.length;
}
