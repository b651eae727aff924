"""Usage over HTTP: unknown is not zero, and callers see only their usage."""

from __future__ import annotations

import pytest

from enfold.engine import Engine
from enfold.records import UsageEvent
from tests.server.conftest import Client


async def test_totals_say_what_is_known(client: Client, ann: Client, engine: Engine) -> None:
    session = await engine.session("chat")
    empty = (await client.get("/api/usage")).json()
    assert empty == {"cost": 0.0, "known_cost": 0.0, "calls": 0, "totals": []}
    await session.record_usage(UsageEvent("reply", model="a", input_tokens=9, cost=0.25))
    usage = (await client.get("/api/sessions/chat/usage")).json()
    assert (usage["cost"], usage["calls"]) == (pytest.approx(0.25), 1)
    await session.record_usage(UsageEvent("summary", model="b", output_tokens=3))
    total = (await client.get("/api/usage")).json()
    assert (total["cost"], total["known_cost"], total["calls"]) == (None, pytest.approx(0.25), 2)
    assert {each["kind"] for each in total["totals"]} == {"reply", "summary"}
    assert (await client.get("/api/usage", params={"since": 2**52})).json()["calls"] == 0
    assert (await ann.get("/api/usage")).json() == empty
