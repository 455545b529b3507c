// Drives a Raincheck server with the official TypeScript SDK and prints what it saw as one JSON object.
//
//     RAINCHECK_TEST_TOOLS=target/tools node client.mjs LOG COMMAND...
//     RAINCHECK_TEST_TOOLS=target/tools node client.mjs --http URL
//
// COMMAND is the server; every byte of its standard output is copied to LOG. URL is that of a server over HTTP, whose
// token is in RAINCHECK_HTTP_TOKEN.

import assert from "node:assert";
import { createRequire } from "node:module";
import { join } from "node:path";

const require = createRequire(join(process.env.RAINCHECK_TEST_TOOLS, "node", "package.json"));
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = require("@modelcontextprotocol/sdk/client/stdio.js");
const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");

const [log, ...command] = process.argv.slice(2);
const client = new Client({ name: "raincheck-tests", version: "1.0.0" });
const call = (name, args, options) => client.callTool({ name, arguments: args }, undefined, options);

/** The one text block of an answer. */
function block(result) {
  assert.equal(result.content.length, 1);
  return result.content[0].text;
}

const read = async (name, args) => JSON.parse(block(await call(name, args)));

async function walk() {
  const seen = {
    server: client.getServerVersion().name,
    instructions: client.getInstructions(),
    protocol: client.transport.protocolVersion ?? null,
  };
  seen.tools = (await client.listTools()).tools.map((tool) => tool.name);

  const echo = await call("echo", { n: 1, word: "é" });
  [seen.echo, seen.echo_is_error] = [block(echo), echo.isError ?? false];
  const broken = await call("broken", {});
  [seen.broken, seen.broken_is_error] = [JSON.parse(block(broken)), broken.isError ?? false];

  seen.progress = [];
  await call("count", {}, { onprogress: ({ progress }) => seen.progress.push(progress) });

  const submitted = await read("submit_task", { tool_name: "echo", inputs: { n: 2 } });
  seen.result = await read("get_task_result", { task_id: submitted.task_id, wait_s: 20 });

  const slow = await read("slow", {});
  seen.slow = slow;
  await call("cancel_task", { task_id: slow.task_id, reason: "seen enough" });
  seen.cancelled = await read("get_task_result", { task_id: slow.task_id, wait_s: 20 });
  seen.logs = await read("tail_task_logs", { task_id: submitted.task_id });
  seen.status = await read("get_task_status", { task_id: slow.task_id });
  seen.list = await read("list_tasks", { tool_name: "echo" });

  const refused = await call("submit_task", { tool_name: "echo" });
  [seen.refused, seen.refused_is_error] = [JSON.parse(block(refused)), refused.isError ?? false];
  seen.unknown_tool = await call("no_such_tool", {}).then(
    () => null,
    (error) => error.code,
  );
  return seen;
}

function transport() {
  if (log !== "--http") {
    return new StdioClientTransport({
      command: "sh",
      args: ["-c", '"$@" | tee "$0"', log, ...command],
      env: process.env,
    });
  }
  const headers = { Authorization: `Bearer ${process.env.RAINCHECK_HTTP_TOKEN}` };
  return new StreamableHTTPClientTransport(new URL(command[0]), { requestInit: { headers } });
}

await client.connect(transport());
const seen = await walk();
if (log === "--http") {
  await client.transport.terminateSession();
}
await client.close();
console.log(JSON.stringify(seen));
