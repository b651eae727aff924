"""Health: whether the server lives, whether it can work, and what it did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from enfold.engine import Engine
from enfold.errors import StoreError, facts
from enfold.server.failures import json_response
from enfold.server.metrics import Metrics

_UNAVAILABLE = 503


class Health:
    """What is asked by whoever runs the server."""

    def __init__(self, engine: Engine, metrics: Metrics) -> None:
        self._engine = engine
        self._metrics = metrics
        self.draining = False
        """Set when the server stops: nothing new is to be sent here."""

    def routes(self) -> list[Route]:
        """Where it is asked."""
        return [
            Route("/healthz", self.alive, methods=["GET"]),
            Route("/readyz", self.ready, methods=["GET"]),
            Route("/metrics", self.figures, methods=["GET"]),
        ]

    async def alive(self, request: Request) -> Response:
        """The process answers."""
        request.state.route = "/healthz"
        return json_response({"status": "ok"})

    async def ready(self, request: Request) -> Response:
        """The store answers too, and the server does not stop."""
        request.state.route = "/readyz"
        store = {"engine": self._engine.store.engine, "status": "ok"}
        queue: Mapping[str, Any] | None = None
        try:
            queue = asdict(await self._engine.queue.state())
        except StoreError as error:
            store["status"] = facts(error).code
        ready = queue is not None and not self.draining
        status = "ready" if ready else "draining" if self.draining else "unavailable"
        body = {"status": status, "store": store, "queue": queue}
        return json_response(body, 200 if ready else _UNAVAILABLE)

    async def figures(self, request: Request) -> Response:
        """What the server did, for Prometheus."""
        request.state.route = "/metrics"
        gauges: list[tuple[str, str, float]] = []
        try:
            queue = await self._engine.queue.state()
        except StoreError:
            gauges.append(("enfold_store_up", "1 if the store answers.", 0))
        else:
            gauges.append(("enfold_store_up", "1 if the store answers.", 1))
            waiting, failing = sum(queue.waiting.values()), queue.failing
            gauges.append(("enfold_queue_waiting", "Work that waits in the outbox.", waiting))
            gauges.append(("enfold_queue_failing", "Of it, what failed before.", failing))
        text = self._metrics.write(gauges)
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4")
