"""Savings over the API."""

from __future__ import annotations

from tests.server.conftest import MODEL, Client, talk


async def test_activity_reports_saved_tokens(client: Client) -> None:
    empty = (await client.get("/api/activity")).json()
    assert (empty["days"], empty["total"]["compressions"]) == ([], 0)
    await talk(client, "s", 30)
    done = (await client.post("/api/sessions/s/compress", json={})).json()
    found = (await client.get("/api/activity")).json()
    freed = done["tokens_before"] - done["tokens_after"]
    assert found["total"]["tokens"] == freed
    assert found["total"]["unknown"] == 1
    (day,) = found["days"]
    assert (day["tokens"], day["failures"], day["cached_share"]) == (freed, 0, None)
    assert found["by_strategy"]["native"]["compressions"] == 1
    assert found["by_model"][MODEL]["tokens"] == freed


async def test_others_see_nothing_of_it(client: Client, ann: Client) -> None:
    await talk(client, "s", 30)
    await client.post("/api/sessions/s/compress", json={})
    assert (await ann.get("/api/activity")).json()["days"] == []
