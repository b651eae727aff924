"""Metrics: text that Prometheus can read."""

from __future__ import annotations

import re

from enfold.events import CompressionFailed, CompressionFinished
from enfold.records import UsageEvent
from enfold.server.metrics import BUCKETS, Metrics

LINE = re.compile(r'[a-z_]+(\{([a-z]+="([^"\\]|\\.)*",?)+\})? \S+')


def test_every_line_is_a_comment_or_a_sample() -> None:
    metrics = Metrics()
    metrics.started()
    metrics.ended("GET", 'a"b\\c\nd', 200, 0.002)
    lines = metrics.write([("enfold_store_up", "1 if the store answers.", 1)]).splitlines()
    assert all(line.startswith("# ") or LINE.fullmatch(line) for line in lines)
    assert r'route="a\"b\\c\nd"' in "\n".join(lines)


def test_durations_are_counted_up_to_each_bound() -> None:
    metrics = Metrics()
    for seconds in (0.0005, 0.001, 5.0, 1_000.0):
        metrics.started()
        metrics.ended("GET", "/x", 200, seconds)
    found = dict(re.findall(r'enfold_request_seconds_bucket\{.*le="(.*)"\} (\d+)', metrics.write()))
    assert list(found) == [*map(str, BUCKETS), "+Inf"]
    assert (found["0.001"], found["3.0"], found["10.0"], found["+Inf"]) == ("2", "2", "3", "4")
    assert 'enfold_request_seconds_count{route="/x"} 4' in metrics.write()


def test_methods_are_few_whatever_callers_send() -> None:
    metrics = Metrics()
    for method in ("GET", "BREW", "X" * 100):
        metrics.started()
        metrics.ended(method, "/x", 405, 0)
    assert set(re.findall(r'method="(\w+)"', metrics.write())) == {"GET", "other"}


def test_replies_are_counted_by_provider_and_unknown_costs_apart() -> None:
    metrics = Metrics()
    metrics.used(UsageEvent("reply", None, "openai:a", 10, 4, 2, 0.5))
    metrics.used(UsageEvent("reply", None, "openai:b"))
    text = metrics.write()
    assert 'enfold_replies_total{provider="openai",cost="known"} 1' in text
    assert 'enfold_replies_total{provider="openai",cost="unknown"} 1' in text
    assert 'enfold_reply_tokens_total{provider="openai",kind="input"} 10' in text
    assert 'enfold_reply_tokens_total{provider="openai",kind="cached"} 4' in text
    assert 'enfold_reply_dollars_total{provider="openai"} 0.5' in text


def test_warnings_are_counted_by_name() -> None:
    metrics = Metrics()
    metrics.warned("marker-in-tool-arguments")
    metrics.warned("marker-in-tool-arguments")
    text = metrics.write()
    assert 'enfold_warnings_total{warning="marker-in-tool-arguments"} 2' in text


def test_compressions_are_counted_by_how_they_ended() -> None:
    metrics = Metrics()
    metrics.listen(CompressionFinished("chat", "id", 3, 1_000, 400, 0.5, "local", automatic=True))
    for cost in (0.25, None):
        metrics.listen(
            CompressionFinished("chat", "id", 3, 9, 9, 0.5, "gpt", automatic=False, cost=cost)
        )
    metrics.listen(CompressionFailed("chat", "summary_failed", "away", True, False))
    text = metrics.write()
    assert "enfold_compression_dollars_total 0.25" in text
    assert 'enfold_compressions_by_cost_total{cost="unknown"} 2' in text
    assert 'enfold_compressions_total{outcome="finished",automatic="true"} 1' in text
    assert 'enfold_compressions_total{outcome="summary_failed",automatic="false"} 1' in text
    assert "enfold_tokens_freed_total 600" in text


def test_sizes_of_caches_are_written_by_name() -> None:
    metrics = Metrics()
    metrics.cache_sizes = lambda: {"prefixes": 3, "message_facts": 50_000}
    lines = metrics.write().splitlines()
    assert 'enfold_cache_entries{cache="prefixes"} 3' in lines
    assert 'enfold_cache_entries{cache="message_facts"} 50000' in lines
