"""Servers for benchmarks/proxy.py: an upstream that does nothing, and a bare pass-through.

python benchmarks/proxy_servers.py upstream PORT
python benchmarks/proxy_servers.py bare PORT TARGET
"""

from __future__ import annotations

import json
import sys
from typing import Any

import aiohttp
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

ANSWER = (
    json.dumps(
        {
            "id": "r",
            "object": "chat.completion",
            "created": 1,
            "model": "gpt-4.1-mini",
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "stop",
                    "message": {"role": "assistant", "content": "pong"},
                }
            ],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        }
    )
    .replace('"content": "pong"', '"content":"pong"')
    .encode()
)


async def upstream(_scope: Any, receive: Any, send: Any) -> None:
    """Read the request and return a fixed response."""
    while (await receive()).get("more_body"):
        pass
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(ANSWER))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": ANSWER})


class Bare:
    """Forwards requests, with Starlette and aiohttp only."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.client: aiohttp.ClientSession | None = None

    async def __call__(self, request: Request) -> StreamingResponse:
        """Forward a request and return its response."""
        if self.client is None:
            connector = aiohttp.TCPConnector(limit=0)
            self.client = aiohttp.ClientSession(auto_decompress=False, connector=connector)
        body = await request.body()
        answer = await self.client.post(
            self.target + request.url.path,
            data=body,
            headers={"content-type": "application/json"},
        )
        return StreamingResponse(
            answer.content.iter_any(), answer.status, media_type="application/json"
        )


def main() -> None:
    """Serve until killed."""
    kind, port = sys.argv[1], int(sys.argv[2])
    app: Any = upstream
    if kind == "bare":
        bare = Bare(sys.argv[3])
        app = Starlette(routes=[Route("/{path:path}", bare.__call__, methods=["GET", "POST"])])
    uvicorn.run(app, port=port, log_level="error", lifespan="off", timeout_keep_alive=75)


if __name__ == "__main__":
    main()
