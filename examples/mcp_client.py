"""A stored conversation behind an MCP server: summarized messages are found and recalled.

Runs without a key, with the built-in summarizer. Any MCP client can start the server with the
command `enfold-mcp --db URL --session NAME`.
Needs `pip install 'enfold[mcp]'`.
"""

from __future__ import annotations

import asyncio
import os
import sys

from mcp import Client, StdioServerParameters

import enfold

DATABASE = "sqlite:///harbour.db"


async def store_conversation() -> None:
    """Store a conversation that is long enough to be summarized."""
    async with enfold.open(DATABASE) as engine:
        session = await engine.session("harbour")
        await session.append("The spare key of the chart room hangs behind the barometer.")
        for day in range(1, 41):
            await session.append(f"Day {day}: " + "wind from the west, sea moderate. " * 12)


async def main() -> None:
    """Start the server as a process and call its tools."""
    await store_conversation()
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "enfold.adapters.mcp", "--db", DATABASE, "--session", "harbour"],
        env=dict(os.environ),
    )
    async with Client(server) as client:
        tools = (await client.list_tools()).tools
        print("Tools:", ", ".join(tool.name for tool in tools))
        for tool, arguments in (
            ("compress", {}),
            ("status", {}),
            ("recall", {"query": "spare key"}),
        ):
            result = await client.call_tool(tool, arguments)
            print(f"\n{tool}:")
            for block in result.content:
                print(getattr(block, "text", block))


if __name__ == "__main__":
    asyncio.run(main())
