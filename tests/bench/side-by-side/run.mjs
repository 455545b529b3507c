#!/usr/bin/env node
// Measures `browser-mcp` beside `@playwright/mcp` and `chrome-devtools-mcp`, in one run, and prints a Markdown table.
//
//     cargo build --release --workspace --bins
//     node tests/bench/side-by-side/run.mjs [--program target/release/browser-mcp] [--rounds 40] [--starts 7] [--only browser-mcp] [--extension crates/browser/extension]
//
// The peers are installed from npm into target/peers/side-by-side, by the versions and hashes of package-lock.json.
// Each server has a Chromium of its own, the same program with the same flags and a fresh profile, which is started
// before the server and shows the same pages of a web server on this machine. Theirs listens for debuggers and they
// attach to it, ours has the extension. All run as installed, and the servers take turns step by step, so that a change of the
// machine's load meets all. A time is from the line written to the line read, with one client for all. Linux, Node.js 20.

import { execFileSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { cpus, release, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";

import { PROGRAM } from "./chromium.mjs";
import { servePages } from "./pages.mjs";
import { SCENES } from "./scenes.mjs";
import { servers as all } from "./servers.mjs";
import { table } from "./table.mjs";

const HERE = fileURLToPath(new URL(".", import.meta.url));
const ROOT = join(HERE, "../../..");
const TARGET = process.env.CARGO_TARGET_DIR ?? join(ROOT, "target");

const { values: options } = parseArgs({
  options: {
    extension: { type: "string" },
    program: { type: "string", default: join(TARGET, "release/browser-mcp") },
    rounds: { type: "string", default: "40" },
    starts: { type: "string", default: "7" },
    only: { type: "string", multiple: true },
  },
});

const peers = install();
const { countTokens } = await import(pathToFileURL(join(peers, "node_modules/gpt-tokenizer/esm/encoding/o200k_base.js")));
const home = mkdtempSync(join(tmpdir(), "raincheck-beside-"));
const pages = await servePages();
const servers = all(home, options, peer).filter(({ id }) => !options.only || options.only.includes(id));
const browsers = new Map();
const load = () => readFileSync("/proc/loadavg", "utf8").split(" ")[0];
const load_before = load();

try {
  for (const server of servers) browsers.set(server, await server.browser());
  const run = { servers, browsers, pages, countTokens, rounds: Number(options.rounds), starts: Number(options.starts) };
  const rows = [];
  for (const scene of SCENES) {
    console.error(`${new Date().toISOString().slice(11, 19)} ${scene.name}`);
    try {
      rows.push(...(await scene(run)));
    } catch (error) {
      console.error(error);
      process.exitCode = 1;
      break;
    }
  }
  console.log(`${machine()}\n`);
  console.log(table(servers, rows));
} finally {
  for (const server of servers) await server.client?.kill();
  for (const browser of browsers.values()) await browser.close();
  pages.close();
  rmSync(home, { recursive: true, force: true, maxRetries: 10 });
}

function peer(name) {
  const folder = join(peers, "node_modules", name);
  return { folder, version: JSON.parse(readFileSync(join(folder, "package.json"), "utf8")).version };
}

/** Installs what the lock file says, once, and returns where. */
function install() {
  const folder = join(TARGET, "peers/side-by-side");
  const wanted = readFileSync(join(HERE, "package-lock.json"));
  const made_from = join(folder, "package-lock.json");
  const is_there = existsSync(join(folder, "node_modules")) && existsSync(made_from) && readFileSync(made_from).equals(wanted);
  if (is_there) return folder;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const name of ["package.json", "package-lock.json"]) copyFileSync(join(HERE, name), join(folder, name));
  execFileSync("npm", ["ci", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"], { cwd: folder, stdio: ["ignore", 2, 2] });
  return folder;
}

function machine() {
  const chromium = execFileSync(PROGRAM, ["--version"], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
  const [{ model }] = cpus();
  return `${new Date().toISOString().slice(0, 10)}, ${cpus().length} processors ${model}, Linux ${release()}, Node.js ${process.versions.node}, ${chromium}, load ${load_before} before and ${load()} after; ${options.rounds} rounds, ${options.starts} starts. Tokens are those of o200k_base, counted by gpt-tokenizer ${peer("gpt-tokenizer").version}.`;
}
