"""Metrics in the text format of Prometheus, and the health routes."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from time import time
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from enfold.engine import Engine
from enfold.errors import StoreError, facts
from enfold.events import CompressionFailed, CompressionFinished, Event
from enfold.jsontext import to_json
from enfold.records import UsageEvent
from enfold.server.access import caller_in, require_owner
from enfold.server.failures import Json

BUCKETS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 120.0)
"""Upper bounds in seconds."""
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

Labels = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class Durations:
    """A histogram of durations."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    total: float = 0.0

    def add(self, seconds: float) -> None:
        """Add a duration."""
        self.counts[bisect_left(BUCKETS, seconds)] += 1
        self.total += seconds


@dataclass(slots=True)
class _Replies:
    """The proxied calls of one provider."""

    priced: int = 0
    unpriced: int = 0
    dollars: float = 0.0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0

    def add(self, event: UsageEvent) -> None:
        """Add a call."""
        if event.cost is None:
            self.unpriced += 1
        else:
            self.priced += 1
            self.dollars += event.cost
        self.input_tokens += event.input_tokens or 0
        self.cached_tokens += event.cached_tokens or 0
        self.output_tokens += event.output_tokens or 0

    def counts(self) -> Iterator[tuple[tuple[str, str], int]]:
        """Yield the number of calls, by a label for those with a known cost and for the others."""
        for label, count in (("known", self.priced), ("unknown", self.unpriced)):
            if count:
                yield ("cost", label), count

    def tokens(self) -> Iterator[tuple[tuple[str, str], int]]:
        """Yield the tokens, by a label for their kind."""
        yield ("kind", "input"), self.input_tokens
        yield ("kind", "cached"), self.cached_tokens
        yield ("kind", "output"), self.output_tokens


class Metrics:
    """Counters of one process."""

    def __init__(self) -> None:
        self._since = time()
        self._in_progress = 0
        self._requests: dict[tuple[str, str, int], int] = defaultdict(int)
        """By method, route and status."""
        self._seconds: dict[str, Durations] = defaultdict(Durations)
        """By route."""
        self._compressions: dict[Labels, int] = defaultdict(int)
        self._compressing = Durations()
        self._freed = 0
        self._condensed: dict[Labels, float] = defaultdict(int)
        self._condensing_dollars = 0.0
        self._replies: dict[str, _Replies] = {}
        """By provider."""
        self._warnings: dict[Labels, int] = defaultdict(int)
        self.cache_sizes: Callable[[], Mapping[str, int]] = dict
        """Returns the number of entries of each cache by name."""

    def started(self) -> None:
        """Count the start of a request."""
        self._in_progress += 1

    def ended(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count the end of a request; status 0 if its caller disconnected before the answer."""
        self._in_progress -= 1
        # Callers choose the method, and every new value would be a new time series.
        label = method if method in _METHODS else "other"
        self._requests[label, route, status] += 1
        self._seconds[route].add(seconds)

    def listen(self, event: Event) -> None:
        """Count compressions."""
        if isinstance(event, CompressionFinished):
            self._compressions[_outcome("finished", automatic=event.automatic)] += 1
            self._compressing.add(event.seconds)
            self._freed += max(0, event.tokens_before - event.tokens_after)
            priced = (("cost", "unknown" if event.cost is None else "known"),)
            self._condensed[priced] += 1
            self._condensing_dollars += event.cost or 0.0
        elif isinstance(event, CompressionFailed):
            self._compressions[_outcome(event.code, automatic=event.automatic)] += 1

    def warned(self, kind: str) -> None:
        """Count a warning that a client got."""
        self._warnings[(("warning", kind),)] += 1

    def used(self, event: UsageEvent) -> None:
        """Count a proxied call by provider. Callers choose the model, so it is no label."""
        name = (event.model or "").partition(":")[0]
        replies = self._replies.get(name)
        if replies is None:
            replies = self._replies[name] = _Replies()
        replies.add(event)

    def write(self, gauges: Iterable[tuple[str, str, float]] = ()) -> str:
        """Return all metrics as text; `gauges` are name, explanation and current value."""
        requests: dict[Labels, float] = {
            (("method", method), ("route", route), ("status", str(status))): count
            for (method, route, status), count in self._requests.items()
        }
        seconds: dict[Labels, Durations] = {
            (("route", route),): each for route, each in self._seconds.items()
        }
        replies: dict[Labels, float] = {}
        tokens: dict[Labels, float] = {}
        dollars: dict[Labels, float] = {}
        for name, calls in self._replies.items():
            provider = ("provider", name)
            replies |= {(provider, label): count for label, count in calls.counts()}
            tokens |= {(provider, label): count for label, count in calls.tokens()}
            dollars[(provider,)] = calls.dollars
        lines = [
            *_counter("enfold_requests_total", "Requests answered.", requests),
            *_histogram("enfold_request_seconds", "Time to answer a request.", seconds),
            *_counter("enfold_compressions_total", "Compressions.", self._compressions),
            *_histogram(
                "enfold_compression_seconds", "Time of a compression.", {(): self._compressing}
            ),
            *_counter(
                "enfold_tokens_freed_total", "Tokens that compressions freed.", {(): self._freed}
            ),
            *_counter(
                "enfold_compressions_by_cost_total",
                "Finished compressions, by cost known or unknown.",
                self._condensed,
            ),
            *_counter(
                "enfold_compression_dollars_total",
                "Known costs of finished compressions.",
                {(): self._condensing_dollars},
            ),
            *_counter("enfold_replies_total", "Proxied calls with an answer.", replies),
            *_counter("enfold_reply_tokens_total", "Tokens of proxied calls.", tokens),
            *_counter(
                "enfold_reply_dollars_total",
                "Known costs of proxied calls.",
                dollars,
            ),
            *_counter("enfold_warnings_total", "Warnings that clients got.", self._warnings),
            *_labelled_gauge(
                "enfold_cache_entries",
                "Entries of each cache; bytes where the name says so.",
                {(("cache", name),): size for name, size in self.cache_sizes().items()},
            ),
            *_gauge("enfold_requests_in_progress", "Requests in progress.", self._in_progress),
            *_gauge("enfold_start_time_seconds", "Start time of the process.", self._since),
        ]
        for name, explanation, value in gauges:
            lines += _gauge(name, explanation, value)
        return "\n".join((*lines, ""))


def _outcome(name: str, *, automatic: bool) -> Labels:
    return ("outcome", name), ("automatic", str(automatic).lower())


def _labelled_gauge(name: str, explanation: str, values: Mapping[Labels, float]) -> Iterator[str]:
    yield from _head(name, explanation, "gauge")
    yield from (f"{name}{_labelled(labels)} {value}" for labels, value in sorted(values.items()))


def _counter(name: str, explanation: str, values: Mapping[Labels, float]) -> Iterator[str]:
    yield from _head(name, explanation, "counter")
    yield from (f"{name}{_labelled(labels)} {value}" for labels, value in sorted(values.items()))


def _gauge(name: str, explanation: str, value: float) -> Iterator[str]:
    yield from _head(name, explanation, "gauge")
    yield f"{name} {value:g}" if abs(value) < 1e6 else f"{name} {value:.3f}"  # noqa: PLR2004


def _histogram(name: str, explanation: str, values: Mapping[Labels, Durations]) -> Iterator[str]:
    yield from _head(name, explanation, "histogram")
    for labels, durations in sorted(values.items(), key=lambda item: item[0]):
        below = 0
        for bound, count in zip((*map(str, BUCKETS), "+Inf"), durations.counts, strict=True):
            below += count
            yield f"{name}_bucket{_labelled((*labels, ('le', bound)))} {below}"
        yield f"{name}_sum{_labelled(labels)} {durations.total:.6f}"
        yield f"{name}_count{_labelled(labels)} {below}"


def _head(name: str, explanation: str, kind: str) -> Iterator[str]:
    yield f"# HELP {name} {explanation}"
    yield f"# TYPE {name} {kind}"


def _labelled(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


_UNAVAILABLE = 503


class Health:
    """The routes for monitoring: `/healthz`, `/readyz` and `/metrics`."""

    def __init__(self, engine: Engine, metrics: Metrics, *, token_required: bool = False) -> None:
        self._engine = engine
        self._metrics = metrics
        self.identity: dict[str, Any] = {"token_required": token_required}
        """The facts by which `enfold wrap` recognises a server that it may use."""
        self.draining = False
        """True while the server stops: it takes no new requests."""

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [
            Route("/healthz", self.alive, methods=["GET"]),
            Route("/readyz", self.ready, methods=["GET"]),
            Route("/metrics", self.figures, methods=["GET"]),
        ]

    async def alive(self, request: Request) -> Response:
        """Answer that the process runs."""
        request.state.route = "/healthz"
        return Json({"status": "ok"})

    async def ready(self, request: Request) -> Response:
        """Answer 200 if the store can be reached and the server is not stopping."""
        request.state.route = "/readyz"
        store = {"engine": self._engine.store.engine, "status": "ok"}
        queue: Mapping[str, Any] | None = None
        server = dict(self.identity)
        try:
            queue = to_json(await self._engine.queue.state())
            server["client_key"] = (await self._engine.settings()).proxy_client_key
        except StoreError as error:
            store["status"] = facts(error).code
        ready = queue is not None and not self.draining
        status = "ready" if ready else "draining" if self.draining else "unavailable"
        body = {"status": status, "store": store, "queue": queue, "server": server}
        return Json(body, 200 if ready else _UNAVAILABLE)

    async def figures(self, request: Request) -> Response:
        """Answer the owner, or anybody where no token is used, with the metrics of all callers."""
        request.state.route = "/metrics"
        caller = caller_in(request.scope)
        if caller.has_token:
            require_owner(caller)
        gauges: list[tuple[str, str, float]] = []
        try:
            queue = await self._engine.queue.state()
        except StoreError:
            gauges.append(("enfold_store_up", "1 if the store answers.", 0))
        else:
            gauges.append(("enfold_store_up", "1 if the store answers.", 1))
            waiting, failing = sum(queue.waiting.values()), queue.failing
            gauges.append(("enfold_queue_waiting", "Entries that wait in the outbox.", waiting))
            gauges.append(("enfold_queue_failing", "Those that have failed before.", failing))
        text = self._metrics.write(gauges)
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4")
