// The text of PDFs.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { deflateSync } from "node:zlib";

import { textOfPdf } from "../extension/pdf/text.js";

const BILL = new URL("../../../bins/browser-mcp/tests/pages/bill.pdf", import.meta.url);
const bytes = (text) => Uint8Array.from(text, (one) => one.charCodeAt(0));
const latin1 = (buffer) => buffer.toString("latin1");

/** A PDF with one page that shows `content`; `font` are the members of its font. */
function pdf(content, { font = "/Subtype /Type1 /BaseFont /Helvetica", more = "", packed = false, trailer = "" } = {}) {
  const stream = packed ? latin1(deflateSync(Buffer.from(content, "latin1"))) : content;
  const filter = packed ? "/Filter /FlateDecode" : "";
  return bytes(`%PDF-1.7\n1 0 obj << /Type /Catalog /Pages 2 0 R >> endobj\n2 0 obj << /Kids [3 0 R] /Count 1 >> endobj
3 0 obj << /Type /Page /Parent 2 0 R /Contents 4 0 R /Resources << /Font << /F 5 0 R >> >> >> endobj
4 0 obj << /Length ${stream.length} ${filter} >> stream\n${stream}\nendstream endobj\n5 0 obj << /Type /Font ${font} >> endobj\n${more}\ntrailer << /Root 1 0 R ${trailer} >>`);
}

const textOf = async (...args) => (await textOfPdf(pdf(...args)))?.text;

test("a bill is read", async () => {
  assert.equal((await textOfPdf(new Uint8Array(readFileSync(BILL)))).text, "[page 1]\nTea, 12 EUR");
});

test("lines and words follow from where they stand", async () => {
  const content = "BT /F 10 Tf 1 0 0 1 50 700 Tm (T) Tj 5 0 Td (ea) Tj 40 0 Td (for) Tj 0 -12 Td [(t) 20 (wo)] TJ ET BT 1 0 0 1 50 600 Tm (end \\(here\\)) Tj ET";
  assert.equal(await textOf(content), "[page 1]\nTea for\ntwo\nend (here)");
  assert.equal(await textOf(content, { packed: true }), "[page 1]\nTea for\ntwo\nend (here)");
});

test("fonts tell what their characters are", async () => {
  const show = "BT /F 10 Tf <010203> Tj ET";
  assert.equal(await textOf(show, { font: "/Subtype /Type1 /Encoding << /Differences [1 /T /eacute /uni8336] >>" }), "[page 1]\nTé茶");
  const map = "1 begincodespacerange <00> <ff> endcodespacerange 1 beginbfchar <01> <0054> endbfchar 1 beginbfrange <02> <03> <0041> endbfrange";
  const more = `6 0 obj << /Length ${map.length} >> stream\n${map}\nendstream endobj`;
  assert.equal(await textOf(show, { font: "/Subtype /TrueType /ToUnicode 6 0 R", more }), "[page 1]\nTAB");
  const unknown = await textOfPdf(pdf("BT /F 10 Tf <00010002> Tj ET", { font: "/Subtype /Type0 /Encoding /Identity-H" }));
  assert.deepEqual([unknown.text, unknown.left_out], ["[page 1]\n\ufffd\ufffd", ["2 characters of fonts that do not tell what they are"]]);
});

test("objects may be packed together, and images stand in between", async () => {
  const inner = "9 0 << /Subtype /Type1 >>";
  const more = `8 0 obj << /Type /ObjStm /N 1 /First 4 /Length ${inner.length} >> stream\n${inner}\nendstream endobj`;
  assert.equal(await textOf("BI /W 1 ID (x) Tj EI BT /F 10 Tf (after) Tj ET", { more }), "[page 1]\nafter");
});

test("what is no PDF, or is encrypted, is none to read; what is broken does not hang", async () => {
  assert.equal(await textOfPdf(bytes("<html>")), null);
  assert.equal(await textOf("BT (x) Tj ET", { trailer: "/Encrypt 7 0 R" }), undefined);
  for (const broken of ["BT (never closed", "BT <41", "BT [ [ [", "<< << <<", ">> ] ) }", "BT /F Tf Tj TJ Tm Td ET Do"]) assert.match(await textOf(broken), /^\[page 1\]/);
  const loop = bytes("1 0 obj << /Pages 2 0 R >> endobj 2 0 obj << /Kids [2 0 R 2 0 R] >> endobj trailer << /Root 1 0 R >>");
  assert.equal((await textOfPdf(loop)).n_pages, 0);
});
