"""Calls a tool as a native task with FastMCP's client and prints what it saw as one JSON object.

    python fastmcp_client.py URL

URL is that of a server over HTTP, whose token is in RAINCHECK_HTTP_TOKEN.
"""

import asyncio
import json
import os
import sys

from fastmcp import Client
from fastmcp_tasks.client import TasksClientExtension


async def main():
    token = os.environ["RAINCHECK_HTTP_TOKEN"]
    extension = TasksClientExtension()
    async with Client(sys.argv[1], auth=token, extensions=[extension]) as client:
        tools = [tool.name for tool in await client.list_tools()]
        # It outlives its wait, so that it becomes a task; the client reads its end.
        result = await client.call_tool("lasting", {})
        text = result.content[0].text
    print(json.dumps({"tools": tools, "lasting": text, "is_error": result.is_error}))


asyncio.run(main())
