// What is told of a request, and what is not.

import assert from "node:assert/strict";
import { test } from "node:test";

import { headersOf, hidden } from "../extension/tabs/requests.js";

test("what authenticates somebody is redacted, and the rest is told [BROWSER-45]", () => {
  const headers = { Authorization: "Bearer x", cookie: "a=b", "Set-Cookie": "a=b", "X-Api-Key": "k", "X-CSRF-Token": "t", Accept: "*/*", "Content-Type": "text/plain" };
  const told = headersOf(headers);
  assert.deepEqual(Object.entries(told).filter(([, value]) => value !== "[redacted]"), [["Accept", "*/*"], ["Content-Type", "text/plain"]]);
  assert.deepEqual(headersOf(headers, true), headers);
});

test("values of secrets are left out of bodies and addresses [BROWSER-45]", () => {
  for (const [body, wanted] of [
    ['{"user":"ada","password":"open \\"sesame\\"","n":1}', '{"user":"ada","password":"[redacted]","n":1}'],
    ['{"access_token": "abc","pin_code":1234}', '{"access_token": "[redacted]","pin_code":"[redacted]"}'],
    ["user=ada&user_password=sesame&next=%2F", "user=ada&user_password=[redacted]&next=%2F"],
    ["https://a/b?token=abc&x=1#y", "https://a/b?token=[redacted]&x=1#y"],
    ['Content-Disposition: form-data; name="password"\r\n\r\nsesame\r\n--b', 'Content-Disposition: form-data; name="password"\r\n\r\n[redacted]\r\n--b'],
    ["the password is not named as one", "the password is not named as one"],
  ]) {
    assert.equal(hidden(body), wanted);
  }
});
