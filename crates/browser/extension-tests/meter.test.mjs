// The budget for what a tab tells of itself, kinds of pages, and keys with Shift.

import assert from "node:assert/strict";
import { test } from "node:test";

import { parseChord } from "../extension/page/keys.js";
import { kindOf } from "../extension/tabs/kinds.js";
import { Bucket } from "../extension/tabs/meter.js";

test("a tab may tell much at once, and little for long", () => {
  const bucket = new Bucket({ most: 100, per_s: 10 }, 0);
  const taken = (count, now) => Array.from({ length: count }, () => bucket.take(1, now)).filter(Boolean).length;
  assert.equal(taken(150, 0), 100);
  assert.equal(taken(1, 500), 0, "what was told in vain counts, too");
  assert.equal(taken(20, 3000), 19, "but for a second at the most");
  assert.equal(new Bucket({ most: 100, per_s: 10 }, 0).take(101, 0), false, "one message may be too large");
});

test("keys with Shift write what they write", () => {
  const told = (chord) => parseChord(chord)?.text;
  assert.deepEqual(["Shift+a", "Shift+A", "Shift+1", "Shift+/", "Shift+Enter", "!", "Control+Shift+a", "Shift+é"].map(told), ["A", "A", "!", "?", "\r", "!", undefined, "É"]);
  assert.equal(parseChord("!").code, "Digit1");
});

test("pages that cannot be read are known by their addresses [BROWSER-36]", () => {
  const told = (address) => kindOf(address)?.reason;
  const kinds = { "view-source:http://a/": "view_source", "chrome://version": "browser_page", "about:version": "browser_page", "chrome-extension://a/b.html": "extension_page", "https://chromewebstore.google.com/detail/x": "web_store", "https://chrome.google.com/webstore/x": "web_store" };
  for (const [address, kind] of Object.entries(kinds)) assert.equal(told(address), kind, address);
  for (const address of ["http://a/", "https://chrome.google.com/", "about:blank", "about:srcdoc", "blob:http://a/1", "data:text/html,x", ""]) assert.equal(told(address), undefined, address);
});
