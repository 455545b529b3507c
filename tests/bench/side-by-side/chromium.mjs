// A headless Chromium with a profile of its own, started as the tests start theirs.

import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";

import { sleep } from "./stdio.mjs";

export const PROGRAM = process.env.CHROMIUM || "chromium";
const FLAGS = ["--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update", "--no-default-browser-check", "--no-first-run"];

/**
 * Starts Chromium with all that it writes in `folder`. `extension` is a folder to load; without one it listens for
 * debuggers and `address` says where.
 */
export async function startChromium(folder, { extension } = {}) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const profile = join(folder, "profile");
  const flags = [...FLAGS, ...(process.getuid() === 0 ? ["--no-sandbox"] : []), `--user-data-dir=${profile}`];
  flags.push(...(extension ? [`--load-extension=${extension}`, "--remote-debugging-pipe"] : ["--remote-debugging-port=0"]), "about:blank");
  const places = Object.fromEntries(["HOME", "TMPDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"].map((name) => [name, folder]));
  const child = spawn(PROGRAM, flags, { env: { ...process.env, ...places }, stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"], detached: true });
  const gone = new Promise((done) => child.once("close", done));
  const pipe = debuggerOn(child);
  const address = extension ? null : await portOf(join(profile, "DevToolsActivePort"));
  const close = async () => {
    try {
      process.kill(-child.pid, "SIGTERM");
    } catch {
      // It has ended.
    }
    const late = setTimeout(() => process.kill(-child.pid, "SIGKILL"), 5000);
    await gone;
    clearTimeout(late);
    rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
  };
  return { pid: child.pid, address, profile, close, ...pipe };
}

async function portOf(file) {
  for (let n = 0; n < 600; n++) {
    const port = existsSync(file) ? Number.parseInt(readFileSync(file, "utf8")) : NaN;
    if (port > 0) return `http://127.0.0.1:${port}`;
    await sleep(50);
  }
  throw new Error("Chromium does not listen");
}

/** The debugging pipe, which only what happens to the extension is done with. */
function debuggerOn(child) {
  const [, , , inward, outward] = child.stdio;
  const answers = new Map();
  let [n, rest] = [0, ""];
  inward.on("error", () => {});
  outward.setEncoding("utf8").on("data", (data) => {
    const parts = (rest + data).split("\0");
    rest = parts.pop();
    for (const message of parts.map((part) => JSON.parse(part))) answers.get(message.id)?.(message.result ?? message);
  });
  const send = (method, params = {}, sessionId = undefined) =>
    new Promise((done) => {
      answers.set(++n, done);
      inward.write(`${JSON.stringify({ id: n, method, params, sessionId })}\0`);
    });
  /** Has the extension start again, as the button at chrome://extensions does, which needs the developer mode. */
  const reloadExtension = async () => {
    const { targetInfos } = await send("Target.getTargets");
    const id = new URL(targetInfos.find(({ type, url }) => type === "service_worker" && url.startsWith("chrome-extension:")).url).host;
    const { targetId } = await send("Target.createTarget", { url: "chrome://extensions" });
    const { sessionId } = await send("Target.attachToTarget", { targetId, flatten: true });
    const run = (expression) => send("Runtime.evaluate", { expression, awaitPromise: true }, sessionId);
    await run("new Promise((done) => (document.readyState === 'complete' ? done() : addEventListener('load', done)))");
    await run("chrome.developerPrivate.updateProfileConfiguration({ inDeveloperMode: true })");
    await run(`chrome.developerPrivate.reload(${JSON.stringify(id)}, { failQuietly: true })`);
    await send("Target.closeTarget", { targetId });
  };
  return { reloadExtension };
}
