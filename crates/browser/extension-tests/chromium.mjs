// A headless Chromium with the extension, and its page under the debugger's protocol.

import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const EXTENSION = fileURLToPath(new URL("../extension", import.meta.url));
export const ID = readFileSync(join(EXTENSION, "ID"), "utf8").trim();
const LIMIT_MS = 120_000;
const FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage", "--disable-background-networking", "--remote-debugging-pipe"];

/** Starts `chromium`, or what CHROMIUM names, with the extension of a folder. */
export async function launch(extension = EXTENSION, flags = []) {
  const profile = mkdtempSync(join(tmpdir(), "raincheck-page-"));
  const child = spawn(process.env.CHROMIUM ?? "chromium", [...FLAGS, ...flags, `--user-data-dir=${profile}`, `--load-extension=${extension}`, "about:blank"], { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
  const gone = new Promise((resolve) => child.once("close", resolve));
  const answers = new Map();
  const listeners = new Set();
  let [n, rest] = [0, ""];
  child.stdio[4].setEncoding("utf8").on("data", (data) => {
    const parts = (rest + data).split("\0");
    rest = parts.pop();
    for (const message of parts.map((part) => JSON.parse(part))) {
      if (message.id === undefined) for (const listener of listeners) listener(message);
      else if (message.error) answers.get(message.id)?.reject(new Error(message.error.message));
      else answers.get(message.id)?.resolve(message.result);
      answers.delete(message.id);
    }
  });
  child.stdio[3].on("error", () => {});
  gone.then(() => answers.forEach(({ reject }) => reject(new Error("Chromium ended"))));
  const send = (method, params = {}, sessionId = undefined) =>
    new Promise((resolve, reject) => {
      answers.set(++n, { resolve, reject });
      child.stdio[3].write(`${JSON.stringify({ id: n, method, params, sessionId })}\0`);
    });
  const close = async () => {
    send("Browser.close").catch(() => {});
    await gone;
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
  };
  return { send, listeners, close };
}

/** Opens a page of the extension; `before(...arguments)` runs in it before its own scripts. */
export async function open(browser, path, before = null, ...told) {
  const { targetId } = await browser.send("Target.createTarget", { url: "about:blank" });
  const { sessionId } = await browser.send("Target.attachToTarget", { targetId, flatten: true });
  const send = (method, params) => browser.send(method, params, sessionId);
  const faults = [];
  const listener = ({ method, params, sessionId: from }) => {
    if (from !== sessionId) return;
    if (method === "Runtime.exceptionThrown") faults.push(params.exceptionDetails.text);
    if (method === "Log.entryAdded" && params.entry.level === "error") faults.push(params.entry.text);
    if (method === "Network.requestWillBeSent" && !params.request.url.startsWith(`chrome-extension://${ID}/`)) faults.push(params.request.url);
  };
  browser.listeners.add(listener);
  for (const domain of ["Page", "Runtime", "Log", "Network"]) await send(`${domain}.enable`);
  await send("Emulation.setScrollbarsHidden", { hidden: true });
  if (before) await send("Page.addScriptToEvaluateOnNewDocument", { source: `(${before})(...${JSON.stringify(told)})` });
  const page = {
    faults,
    send,
    run: async (expression) => {
      const { result, exceptionDetails } = await send("Runtime.evaluate", { expression, returnByValue: true, awaitPromise: true });
      if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
      return result.value;
    },
    until: async (expression) => {
      const since = Date.now();
      while (!(await page.run(expression))) if (Date.now() - since > LIMIT_MS) throw new Error(`it never came: ${expression}`);
    },
    shape: async (width, scheme) => {
      await send("Emulation.setDeviceMetricsOverride", { width, height: 900, deviceScaleFactor: 1, mobile: false });
      await send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: scheme }] });
      await page.until(`innerWidth === ${width} && matchMedia("(prefers-color-scheme: ${scheme})").matches`);
    },
    press: async (key) => {
      const code = { Tab: 9, Enter: 13 }[key];
      await send("Input.dispatchKeyEvent", { type: "keyDown", key, code: key, windowsVirtualKeyCode: code, text: key === "Enter" ? "\r" : undefined });
      await send("Input.dispatchKeyEvent", { type: "keyUp", key, code: key, windowsVirtualKeyCode: code });
    },
    controls: async () => {
      const { nodes } = await send("Accessibility.getFullAXTree");
      const roles = new Set(["button", "link", "radio", "textbox", "DisclosureTriangle"]);
      return nodes.filter((node) => !node.ignored && roles.has(node.role?.value)).map((node) => ({ role: node.role.value, name: node.name?.value ?? "" }));
    },
    close: async () => {
      browser.listeners.delete(listener);
      await browser.send("Target.closeTarget", { targetId });
    },
  };
  await send("Page.navigate", { url: `chrome-extension://${ID}/${path}` });
  await page.until(`location.protocol === "chrome-extension:" && document.readyState === "complete" && document.querySelector("#numbers")?.textContent !== ""`);
  return page;
}
