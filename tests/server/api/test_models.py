"""Models over HTTP."""

from __future__ import annotations

from tests.server.conftest import MODEL, WINDOW, Client


async def test_a_model_is_shown_changed_and_forgotten(client: Client) -> None:
    path = f"/api/models/{MODEL}"
    assert (await client.get(path)).json()["max_input"] == WINDOW
    changed = await client.patch(path, json={"max_input": 5_000, "threshold": 0.5})
    assert (changed.json()["max_input"], changed.json()["source"]) == (5_000, "manual")
    found = (await client.get("/api/models", params={"q": "TEST:SMALL"})).json()
    assert found == [changed.json()]
    assert (await client.delete(path)).status_code == 204
    assert (await client.get(path)).json()["source"] == "default"


async def test_a_model_with_a_slash_is_added(client: Client) -> None:
    made = await client.patch("/api/models/openrouter:meta/llama", json={"max_input": 1_000})
    assert made.json()["id"] == "openrouter:meta/llama"
    encoded = await client.get("/api/models/openrouter:meta%2Fllama")
    assert encoded.json() == made.json()


async def test_errors_name_the_wrong_field(client: Client) -> None:
    for body, place in (
        ({"max_input": 0}, "body.max_input"),
        ({"tokenizer": "abacus"}, "abacus"),
        ({"id": "x:y"}, "body.id"),
    ):
        answer = await client.patch(f"/api/models/{MODEL}", json=body)
        assert answer.status_code == 400
        assert place in answer.json()["error"]["message"]
    assert (await client.get("/api/models/nameless")).status_code == 400
