// An MCP client on the standard streams of a server, with a clock.

import { spawn } from "node:child_process";

const CLIENT = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "side-by-side", version: "1" } };

/** The longest that anything is waited for. */
export const LIMIT_MS = 120_000;

/** One server process. A call that gets no answer because the server is gone answers `null`. */
export class Client {
  #asked = new Map();
  #rest = [];
  #n = 0;
  said = "";

  constructor([program, ...args], { env, cwd }) {
    this.began = performance.now();
    this.child = spawn(program, args, { cwd, env: { ...process.env, ...env }, stdio: ["pipe", "pipe", "pipe"] });
    this.pid = this.child.pid;
    this.child.stdin.on("error", () => {});
    this.child.stdout.on("data", (data) => this.#take(data));
    this.child.stderr.setEncoding("utf8").on("data", (text) => (this.said = (this.said + text).slice(-4000)));
    this.gone = new Promise((done) => this.child.once("close", done));
    this.gone.then(() => this.#asked.forEach((answer) => answer(null)));
  }

  #take(data) {
    for (let end = data.indexOf(10); end >= 0; end = data.indexOf(10)) {
      const at = performance.now();
      const line = Buffer.concat([...this.#rest, data.subarray(0, end)]);
      this.#rest = [];
      data = data.subarray(end + 1);
      const message = JSON.parse(line);
      this.#asked.get(message.id)?.({ ...message, at });
      this.#asked.delete(message.id);
    }
    if (data.length > 0) this.#rest.push(data);
  }

  #write(message) {
    this.child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  }

  /** Sends a request; resolves with `{result, ms}`: from the line written to the line read. */
  async ask(method, params = {}) {
    const id = ++this.#n;
    const from = performance.now();
    const told = new Promise((done) => this.#asked.set(id, done));
    this.#write({ id, method, params });
    const answer = await within(LIMIT_MS, told, `${method} ${JSON.stringify(params).slice(0, 200)}`);
    if (answer?.error) throw new Error(JSON.stringify(answer.error));
    return answer && { result: answer.result, ms: answer.at - from };
  }

  /** Resolves with how long it took from the start of the process. */
  async initialize() {
    const told = await this.ask("initialize", CLIENT);
    if (!told) throw new Error(`it ended: ${this.said}`);
    this.#write({ method: "notifications/initialized" });
    return performance.now() - this.began;
  }

  /** Calls a tool; resolves with `{text, is_error, ms}`. */
  async call({ name, arguments: args }) {
    const told = await this.ask("tools/call", { name, arguments: args });
    if (!told) return null;
    const text = told.result.content.map((part) => part.text ?? "").join("\n");
    return { text, is_error: told.result.isError === true, ms: told.ms };
  }

  /** As `call`, and fails where the tool did. */
  async done(step) {
    const told = await this.call(step);
    if (!told || told.is_error) throw new Error(`${JSON.stringify(step).slice(0, 300)}: ${told?.text.slice(0, 2000) ?? `the server ended: ${this.said}`}`);
    return told;
  }

  kill() {
    this.child.kill("SIGKILL");
    return this.gone;
  }

  async end() {
    this.child.stdin.end();
    const late = setTimeout(() => this.child.kill("SIGKILL"), 10_000);
    await this.gone;
    clearTimeout(late);
  }
}

/** Fails when something takes too long, naming it. */
export async function within(limit_ms, promise, what) {
  let timer;
  const late = new Promise((_, reject) => (timer = setTimeout(() => reject(new Error(`no answer in ${limit_ms} ms: ${what}`)), limit_ms)));
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

export function sleep(ms) {
  return new Promise((done) => setTimeout(done, ms));
}
