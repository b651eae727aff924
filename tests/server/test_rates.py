"""Rates: a bucket for each caller, filled evenly."""

from __future__ import annotations

import pytest

from enfold.engine import Engine
from enfold.errors import TooManyError
from enfold.server import create_app
from enfold.server.access import Buckets
from enfold.settings import ServerSettings
from tests.server.conftest import client_of
from tests.server.test_front import ui


def test_a_bucket_empties_and_fills_again() -> None:
    now = 0.0
    buckets = Buckets(60, clock=lambda: now)
    for _ in range(10):
        buckets.take("ann")
    with pytest.raises(TooManyError) as caught:
        buckets.take("ann")
    assert caught.value.retry_after == pytest.approx(1)
    buckets.take("ben")
    now = 2.0
    buckets.take("ann")
    buckets.take("ann")
    with pytest.raises(TooManyError):
        buckets.take("ann")


def test_a_bucket_holds_no_more_than_its_size() -> None:
    now = 0.0
    buckets = Buckets(60, clock=lambda: now)
    now = 3_600.0
    for _ in range(10):
        buckets.take("ann")
    with pytest.raises(TooManyError):
        buckets.take("ann")


async def test_each_caller_has_a_bucket_of_their_own(
    engine: Engine, tokens: tuple[str, str]
) -> None:
    app = create_app(engine, serving=ServerSettings(rate_limit=6))
    async with client_of(app, tokens[0]) as ann, client_of(app, tokens[1]) as ben:
        assert (await ann.get("/api/sessions")).status_code == 200
        refused = await ann.get("/api/sessions")
        assert (refused.status_code, refused.json()["error"]["code"]) == (429, "too_many_requests")
        assert 0 < int(refused.headers["retry-after"]) <= 10
        assert (await ben.get("/api/sessions")).status_code == 200


async def test_the_pieces_of_a_page_are_not_counted(engine: Engine) -> None:
    app = create_app(engine, serving=ServerSettings(rate_limit=6), ui=ui)
    async with client_of(app) as client:
        for _ in range(5):
            assert (await client.get("/_nicegui/static/a.js")).status_code == 200
        assert (await client.get("/")).status_code == 200
        assert (await client.get("/")).status_code == 429
        assert (await client.post("/_nicegui/client/1/upload/2")).status_code == 429
