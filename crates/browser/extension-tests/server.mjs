// A built `browser-mcp` as its client has it, with folders of its own and its extension in `extension`. BROWSER_MCP names
// another build.

import { execFileSync, spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const PROGRAM = process.env.BROWSER_MCP ?? fileURLToPath(new URL("../../../target/debug/browser-mcp", import.meta.url));
const LIMIT_MS = 120_000;

/** Asks until it holds; what is asked for takes its time by itself. */
export async function until(holds) {
  for (const since = Date.now(); !(await holds()); ) if (Date.now() - since > LIMIT_MS) throw new Error(`it never came: ${holds}`);
}

/** Starts one whose folders are in `folder`. */
export async function serve(folder) {
  const places = { HOME: folder, XDG_STATE_HOME: join(folder, "state"), XDG_RUNTIME_DIR: join(folder, "run") };
  const env = { ...process.env, ...places };
  mkdirSync(places.XDG_STATE_HOME, { mode: 0o700 });
  mkdirSync(places.XDG_RUNTIME_DIR, { mode: 0o700 });
  execFileSync(PROGRAM, ["extension", "install", join(folder, "extension")], { env });
  const child = spawn(PROGRAM, ["--accept-ms", "60000", "--run-ms", "120000", "--reconnect-grace-s", "120"], { env, stdio: ["pipe", "pipe", "ignore"] });
  const gone = new Promise((resolve) => child.once("close", resolve));
  const answers = new Map();
  let [n, rest] = [0, ""];
  child.stdout.setEncoding("utf8").on("data", (data) => {
    const lines = (rest + data).split("\n");
    rest = lines.pop();
    for (const message of lines.map((line) => JSON.parse(line))) answers.get(message.id)?.(message);
  });
  child.stdin.on("error", () => {});
  const write = (message) => child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  const request = (method, params) =>
    new Promise((resolve, reject) => {
      answers.set(++n, resolve);
      write({ id: n, method, params });
      gone.then(() => reject(new Error("the server ended")));
    });
  await request("initialize", { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "tests", version: "1" } });
  write({ method: "notifications/initialized" });
  const call = async (name, args) => {
    const { result, error } = await request("tools/call", { name, arguments: args });
    if (error) throw new Error(`${name}: ${JSON.stringify(error)}`);
    return result.structuredContent ?? JSON.parse(result.content[0].text);
  };
  /** Reads the command of an answer until it has ended. */
  const endOf = async (answer) => {
    let last = answer;
    await until(async () => {
      if (last.status !== "queued" && last.status !== "pending") return true;
      last = await call("observe", { what: "command_result", correlation_id: answer.correlation_id, wait_ms: 20_000 });
      return false;
    });
    return last;
  };
  /** Gives a command and returns how it ended. */
  const end = async (args) => await endOf(await call(args.what ? "observe" : "interact", { wait_ms: 20_000, ...args }));
  const close = async () => {
    child.stdin.end();
    await gone;
  };
  return { call, end, endOf, close };
}
