// The poll loop: the secret goes only to a listener that has just proved that it knows it.

import assert from "node:assert/strict";
import { test } from "node:test";

import { proofOf } from "../extension/link/server.js";
import { until } from "./fakes.mjs";

const SECRET = "CQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQk";

test("a poll that a server refuses is not asked again before the listener has proved itself anew [BROWSER-8]", async () => {
  const asked = [];
  const answers = [200, 503, 200];
  globalThis.setTimeout = (work) => setImmediate(work); // no pause of the loop takes time
  globalThis.chrome = {
    runtime: {
      id: "a",
      getURL: (path) => `chrome-extension://a/${path}`,
      onMessage: { addListener: () => {} },
      connect: () => ({ onDisconnect: { addListener: () => {} } }),
      sendMessage: async () => ({ worker_id: "w", boot_id: "b", revision: 7 }),
    },
  };
  globalThis.fetch = async (url, options) => {
    const { pathname, searchParams, port } = new URL(url);
    if (pathname === "/pairing.json") return Response.json({ port: 4711, secret: SECRET, instance_id: "i" });
    asked.push([pathname, "Authorization" in (options.headers ?? {}), options.headers?.["X-Raincheck-Revision"]]);
    if (pathname === "/health") {
      return Response.json({ name: "browser-mcp", mac: await proofOf(SECRET, `health|${searchParams.get("nonce")}|${port}`) });
    }
    if (answers.length === 0) return new Promise(() => {});
    return new Response("[]", { status: answers.shift() });
  };
  await import("../extension/link/offscreen.js");
  await until(() => asked.length >= 6);
  const health = ["/health", false, undefined];
  // What the worker knows, which may be an older one than the file that polls [BROWSER-66].
  const poll = ["/pending-queries", true, "7"];
  assert.deepEqual(asked, [health, poll, poll, health, poll, poll]);
});
