// The small pure parts: keys, addresses, console texts, the wire's JSON and its proof.

import assert from "node:assert/strict";
import { test } from "node:test";

import { proofOf, toJson } from "../extension/link/server.js";
import { parseChord } from "../extension/page/keys.js";
import { matches, sizeOfJpeg } from "../extension/page/read.js";
import { format } from "../extension/tabs/console.js";
import { isBinary } from "../extension/tabs/network.js";
import { whyBlocked, whyHostBlocked } from "../extension/tabs/urls.js";

test("the proof is that of the server", async () => {
  const secret = Buffer.from(Uint8Array.from({ length: 32 }, (_, n) => n)).toString("base64url");
  const { createHmac } = await import("node:crypto");
  const wanted = createHmac("sha256", Buffer.from(secret, "base64url")).update("health|kit-nonce-123|4711").digest("base64url");
  assert.equal(await proofOf(secret, "health|kit-nonce-123|4711"), wanted);
});

test("no lone surrogate leaves the extension", () => {
  const text = toJson({ "\ud800 name": ["\udc00", "good 🎮", "\\ud800 as letters"] });
  assert.deepEqual(JSON.parse(text), { "\ufffd name": ["\ufffd", "good 🎮", "\\ud800 as letters"] });
});

test("addresses that no command opens", () => {
  const blocked = ["file:///etc/passwd", "chrome://version", "javascript:1", "data:text/html,x", "view-source:http://a/", "http://169.254.169.254/x", "http://2852039166/", "http://[fe80::1]/", "http://[::ffff:169.254.169.254]/", "http://metadata.google.internal/", "http://127.0.0.1:4711/", "http://localhost:4711/x", "http://a.localhost:4711/", "http://[::1]:4711/", "http://127.1:4711/", "http://0x7f000001:4711/", "nonsense", ""];
  const open = ["http://127.0.0.1:4712/", "https://example.com/", "http://localhost/", "about:blank", "http://192.168.0.1/", "http://example.com:4711/"];
  assert.deepEqual(blocked.filter((address) => whyBlocked(address, 4711) === null), []);
  assert.deepEqual(open.filter((address) => whyBlocked(address, 4711) !== null), []);
});

test("a page that made itself may stay where it is", () => {
  const told = ["blob:http://a/1", "data:text/html,x", "chrome-error://x", "", "http://169.254.169.254/"].map((address) => whyHostBlocked(address, 4711) === null);
  assert.deepEqual(told, [true, true, true, true, false]);
});

test("keys and chords", () => {
  const told = (chord) => {
    const key = parseChord(chord);
    return key && [key.key, key.code, key.keyCode, key.text, key.modifiers];
  };
  assert.deepEqual(told("Enter"), ["Enter", "Enter", 13, "\r", 0]);
  assert.deepEqual(told("a"), ["a", "KeyA", 65, "a", 0]);
  assert.deepEqual(told("Control+Shift+K"), ["K", "KeyK", 75, undefined, 10]);
  assert.deepEqual(told("Control++"), ["+", "Equal", 187, undefined, 2]);
  assert.deepEqual(told("Down"), ["ArrowDown", "ArrowDown", 40, undefined, 0]);
  assert.deepEqual(told("é"), ["é", "", 0, "é", 0]);
  for (const none of ["", "Nope", "Hyper+A", "Control+"]) assert.equal(parseChord(none), null, none);
});

test("console calls as text", () => {
  const text = (value) => ({ type: "string", value });
  const cases = [
    [[text("%s is %d %c styled"), text("name"), { type: "number", value: 7.9 }, text("color:red")], "name is 7  styled"],
    [[text("100%"), { type: "undefined" }], "100% undefined"],
    [[text("%s")], "%s"],
    [[{ type: "bigint", unserializableValue: "1n" }, { type: "object", subtype: "null", value: null }], "1n null"],
    [[{ type: "object", className: "Object", preview: { description: "Object", overflow: true, properties: [{ name: "a", type: "string", value: "x" }, { name: "b", type: "accessor" }] } }], '{a: "x", b: [Getter], …}'],
    [[{ type: "object", subtype: "typedarray", preview: { description: "Uint8Array(1)", subtype: "typedarray", properties: [{ name: "0", type: "number", value: "9" }, { name: "length", type: "number", value: "1" }] } }], "Uint8Array(1) [9]"],
    [[{ type: "function", description: "async function named() {}" }, { type: "function", description: "() => 1" }], "[Function: named] [Function: anonymous]"],
  ];
  for (const [args, wanted] of cases) assert.equal(format(args), wanted);
});

test("bodies that are not text", () => {
  assert.deepEqual(["\u0089PNG\u0000", "\ufffd", "\u0007"].map(isBinary), [true, true, true]);
  assert.deepEqual(["plain\r\n\ttext", "Crème 山 🎮", "\u001b[31mred", "half \ufffd of one"].map(isBinary), [false, false, false, false]);
});

test("addresses to wait for", () => {
  assert.deepEqual([matches("http://h/a?b", "/a"), matches("http://h/a?b", "http://*/a*"), matches("http://h/a?b", "*/c"), matches("http://h/axb", "*/a.b")], [true, true, false, false]);
});

test("the size of a picture is read from its header", () => {
  const bytes = [0xff, 0xd8, 0xff, 0xe0, 0, 4, 1, 2, 0xff, 0xc0, 0, 17, 8, 0x01, 0x84, 0x03, 0x0c, 3, 0];
  assert.deepEqual(sizeOfJpeg(Buffer.from(bytes).toString("base64")), { width: 780, height: 388 });
});
