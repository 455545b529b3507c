// The servers that are compared: how each is started, and how it is asked for the same thing.

import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync } from "node:fs";
import { join } from "node:path";

import { startChromium } from "./chromium.mjs";
import { FIELDS } from "./pages.mjs";
import { Client, LIMIT_MS } from "./stdio.mjs";

const WAIT_MS = 20_000;

class Server {
  client = null;

  constructor(id, home) {
    this.id = id;
    this.home = join(home, id.replaceAll("/", "-"));
    mkdirSync(this.home, { recursive: true });
  }

  /** Starts a process of the server; resolves with the milliseconds until `initialize` was answered. */
  async start(...more) {
    this.client = new Client([...this.command(), ...more], { cwd: this.home, env: this.env() });
    return await this.client.initialize();
  }

  env() {
    return {};
  }

  /** Resolves once the server can reach the browser. */
  async connected() {}

  /** The element of an outline with a role and a name, as the other calls take it. */
  refsOf(told) {
    const outline = this.outlineOf(told.text);
    const find = (kind, name) => {
      const line = outline.split("\n").find((one) => one.includes(`${kind} "${name}"`));
      const ref = line && this.refIn(line);
      if (!ref) throw new Error(`${this.id}: no ${kind} ${name} in ${outline.slice(0, 3000)}`);
      return ref;
    };
    return { save: find("button", "Save"), fields: FIELDS.map(({ name, kind }) => find(kind, name)) };
  }

  outlineOf(text) {
    return text;
  }

  /** What a script gave, as the text of an answer has it. */
  valueOf(text) {
    return /```(?:json)?\n([\s\S]*?)\n```|### Result\n([\s\S]*?)(?:\n###|$)/.exec(text)?.slice(1).find((one) => one !== undefined) ?? text;
  }

  /** The value of a script, as data. */
  async value(script, tab) {
    return JSON.parse(this.valueOf((await this.client.done(this.script(script, tab))).text));
  }
}

class Ours extends Server {
  /** `sources`: a folder of the extension in the place of the one that the program carries. */
  constructor(home, program, sources) {
    super("browser-mcp", home);
    this.program = program;
    this.version = execFileSync(program, ["--version"], { encoding: "utf8" }).trim().split(" ").at(-1);
    this.extension = join(this.home, "extension");
    execFileSync(program, ["extension", "install", this.extension], { env: { ...process.env, ...this.env() }, stdio: "ignore" });
    if (sources) cpSync(sources, this.extension, { recursive: true });
  }

  browser() {
    return startChromium(join(this.home, "browser"), { extension: this.extension });
  }

  command() {
    return [this.program, "serve"];
  }

  env() {
    return { RAINCHECK_STATE_DIR: join(this.home, "state"), RAINCHECK_RUNTIME_DIR: join(this.home, "run") };
  }

  async connected() {
    const step = { name: "observe", arguments: { what: "health", wait_for_browser_ms: WAIT_MS, wait_ms: WAIT_MS } };
    const { text } = await this.client.done(step);
    if (JSON.parse(text).ok !== true) throw new Error(text);
  }

  async open(url) {
    return JSON.parse((await this.client.done(act("tab_new", { url }))).text).tab_id;
  }

  navigate = (url) => act("navigate", { url });
  snapshot = () => ({ name: "observe", arguments: { what: "snapshot", wait_ms: WAIT_MS } });
  click = (ref) => act("click", { ref });
  fill = (refs, values) => act("fill_form", { fields: refs.map((ref, n) => ({ ref, value: FIELDS[n].kind === "checkbox" ? values[n] === "true" : values[n] })) });
  script = (script, tab_id) => act("execute_js", { script, tab_id, timeout_ms: LIMIT_MS });
  read = (script) => this.script(script);

  outlineOf(text) {
    return JSON.parse(text).result.text;
  }

  refIn(line) {
    return /\[ref=(\w+)\]/.exec(line)?.[1];
  }

  valueOf(text) {
    return JSON.stringify(JSON.parse(text).result);
  }

  /** Reads a command again, from a server that was started after it. */
  async recall(noted) {
    const step = { name: "observe", arguments: { what: "command_result", correlation_id: noted, wait_ms: WAIT_MS } };
    return this.valueOf((await this.client.call(step)).text);
  }

  /** Begins a script and resolves with what it can be recalled by. */
  async begin(script) {
    const step = act("execute_js", { script, timeout_ms: LIMIT_MS, wait_ms: 0 });
    return JSON.parse((await this.client.done(step)).text).correlation_id;
  }
}

/** A server of npm, which drives a Chromium that listens for debuggers. */
class Peer extends Server {
  constructor(id, home, { folder, version }) {
    super(id, home);
    Object.assign(this, { folder, version });
  }

  async browser() {
    const browser = await startChromium(join(this.home, "browser"));
    this.address = browser.address;
    return browser;
  }

  /** There is nothing that it could be recalled by. */
  async begin(script, tab) {
    this.client.call(this.script(script, tab)).catch(() => {});
    return null;
  }

  recall = null;
}

class Playwright extends Peer {
  command() {
    return [process.execPath, join(this.folder, "cli.js"), "--cdp-endpoint", this.address];
  }

  async open(url) {
    const { text } = await this.client.done({ name: "browser_tabs", arguments: { action: "new", url } });
    return Math.max(...[...text.matchAll(/^- (\d+):/gm)].map(([, index]) => Number(index)));
  }

  navigate = (url) => ({ name: "browser_navigate", arguments: { url } });
  snapshot = () => ({ name: "browser_snapshot", arguments: {} });
  click = (target) => ({ name: "browser_click", arguments: { element: "Save", target } });
  fill = (refs, values) => ({ name: "browser_fill_form", arguments: { fields: refs.map((target, n) => ({ element: FIELDS[n].name, target, name: FIELDS[n].name, type: FIELDS[n].kind, value: values[n] })) } });
  script = (script) => ({ name: "browser_evaluate", arguments: { function: `() => (${script})` } });
  read = (script) => this.script(script);

  /** Scripts go to the tab that is selected. */
  select(tab) {
    return { name: "browser_tabs", arguments: { action: "select", index: tab } };
  }

  refIn(line) {
    return /\[ref=(\w+)\]/.exec(line)?.[1];
  }
}

class DevTools extends Peer {
  /** The first that it finds. */
  page = 1;

  command() {
    return [process.execPath, join(this.folder, "build/src/bin/chrome-devtools-mcp.js"), "--browserUrl", this.address, "--no-usage-statistics"];
  }

  env() {
    return { CHROME_DEVTOOLS_MCP_NO_UPDATE_CHECKS: "1" };
  }

  async open(url) {
    const { text } = await this.client.done({ name: "new_page", arguments: { url } });
    this.page = Math.max(...[...text.matchAll(/^(\d+): /gm)].map(([, id]) => Number(id)));
    return this.page;
  }

  at = (more, pageId = this.page) => ({ pageId, ...more });
  navigate = (url) => ({ name: "navigate_page", arguments: this.at({ type: "url", url }) });
  snapshot = () => ({ name: "take_snapshot", arguments: this.at({}) });
  click = (uid) => ({ name: "click", arguments: this.at({ uid }) });
  fill = (refs, values) => ({ name: "fill_form", arguments: this.at({ elements: refs.map((uid, n) => ({ uid, value: values[n] })) }) });
  script = (script, tab) => ({ name: "evaluate_script", arguments: this.at({ function: `() => (${script})` }, tab) });
  read = (script) => ({ name: "evaluate_script", arguments: this.at({ function: `() => (${script})`, waitForStableDom: false }) });

  refIn(line) {
    return /uid=(\w+)/.exec(line)?.[1];
  }
}

function act(action, more) {
  return { name: "interact", arguments: { action, wait_ms: WAIT_MS, ...more } };
}

export function servers(home, { program, extension }, peers) {
  const peer = (kind, name) => new kind(name, home, peers(name));
  return [new Ours(home, program, extension), peer(Playwright, "@playwright/mcp"), peer(DevTools, "chrome-devtools-mcp")];
}
