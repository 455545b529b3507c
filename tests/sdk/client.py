"""Drives a Raincheck server with the official Python SDK and prints what it saw as one JSON object.

    python client.py LOG COMMAND...
    python client.py --http URL MODE

COMMAND is the server; every byte of its standard output is copied to LOG. URL is that of a server over HTTP, whose
token is in RAINCHECK_HTTP_TOKEN; MODE is `legacy` for a session that begins with `initialize`, or `auto`.
"""

import json
import os
import sys

import anyio
import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

TEE = '"$@" | tee "$0"'


def block(result):
    """The one text block of an answer."""
    assert len(result.content) == 1, result.content
    return result.content[0].text


async def walk(client):
    seen = {
        "server": client.server_info.name,
        "instructions": client.instructions,
        "protocol": client.protocol_version,
    }
    listed = await client.list_tools()
    seen["tools"] = [tool.name for tool in listed.tools]

    echo = await client.call_tool("echo", {"n": 1, "word": "é"})
    seen["echo"], seen["echo_is_error"] = block(echo), bool(echo.is_error)
    broken = await client.call_tool("broken", {})
    seen["broken"], seen["broken_is_error"] = json.loads(block(broken)), bool(broken.is_error)

    steps = []

    async def on_progress(progress, total, message):
        steps.append(progress)

    await client.call_tool("count", {}, progress_callback=on_progress)
    seen["progress"] = steps

    submitted = json.loads(block(await client.call_tool("submit_task", {"tool_name": "echo", "inputs": {"n": 2}})))
    seen["result"] = json.loads(
        block(await client.call_tool("get_task_result", {"task_id": submitted["task_id"], "wait_s": 20}))
    )

    slow = json.loads(block(await client.call_tool("slow", {})))
    seen["slow"] = slow
    await client.call_tool("cancel_task", {"task_id": slow["task_id"], "reason": "seen enough"})
    seen["cancelled"] = json.loads(
        block(await client.call_tool("get_task_result", {"task_id": slow["task_id"], "wait_s": 20}))
    )
    seen["logs"] = json.loads(block(await client.call_tool("tail_task_logs", {"task_id": submitted["task_id"]})))
    seen["status"] = json.loads(block(await client.call_tool("get_task_status", {"task_id": slow["task_id"]})))
    seen["list"] = json.loads(block(await client.call_tool("list_tasks", {"tool_name": "echo"})))

    refused = await client.call_tool("submit_task", {"tool_name": "echo"})
    seen["refused"], seen["refused_is_error"] = json.loads(block(refused)), bool(refused.is_error)
    try:
        await client.call_tool("no_such_tool", {})
        seen["unknown_tool"] = None
    except MCPError as error:
        seen["unknown_tool"] = error.code
    return seen


async def over_http(url, mode):
    headers = {"Authorization": f"Bearer {os.environ['RAINCHECK_HTTP_TOKEN']}"}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        server = streamable_http_client(url, http_client=http)
        async with Client(server, mode=mode, read_timeout_seconds=60) as client:
            return await walk(client)


async def main():
    if sys.argv[1] == "--http":
        print(json.dumps(await over_http(*sys.argv[2:])))
        return
    log, command = sys.argv[1], sys.argv[2:]
    server = StdioServerParameters(command="sh", args=["-c", TEE, log, *command])
    async with Client(server, read_timeout_seconds=60) as client:
        seen = await walk(client)
    print(json.dumps(seen))


anyio.run(main)
