"""The four calls in camel case."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

from enfold.server import create_app
from enfold.testing import ScriptedGateway
from enfold.wiring import open_engine
from tests.server.conftest import HERE, MODEL, WINDOW, Client, client_of, talk


async def test_check_manual_config_and_summaries(client: Client) -> None:
    await talk(client, "chat")
    provider, _, model = MODEL.partition(":")
    query = {"sessionId": "chat", "provider": provider, "model": model}
    check = (await client.post("/api/compression/check", json=query)).json()
    assert check.keys() == {
        "needsCompression",
        "currentTokenCount",
        "contextLimit",
        "thresholdTokenCount",
        "utilizationPercentage",
        "retentionTokenBudget",
        "retainedMessageCount",
        "compressibleMessageCount",
    }
    assert 0 < check["utilizationPercentage"] < 1.5
    more = {**query, "additionalInput": "and now?"}
    grown = (await client.post("/api/compression/check", json=more)).json()
    assert grown["currentTokenCount"] > check["currentTokenCount"]
    manual = {**query, "retentionTokenCount": 200}
    done = (await client.post("/api/compression/manual", json=manual)).json()
    assert done["compressed"] is True
    assert done["newTokenCount"] < done["originalTokenCount"]
    config = (await client.get("/api/compression/config", params={"sessionId": "chat"})).json()
    assert (config["autoCompress"], config["model"]) == (True, MODEL)
    assert config["contextLimit"] == WINDOW - WINDOW // 20
    found = (await client.get("/api/compression/summaries", params={"sessionId": "chat"})).json()
    assert [each["id"] for each in found] == [done["summaryId"]]
    assert found[0]["messageCutoffId"] == done["messageCutoffId"]
    assert found[0]["content"]["summaryText"] == done["summary"]


async def test_a_client_that_was_written_from_the_design_reads_every_field(client: Client) -> None:
    """Each line does what a component of the design does with the answers."""
    await talk(client, "chat")
    provider, _, model = MODEL.partition(":")
    options = {"sessionId": "chat", "provider": provider, "model": model}
    history = (await client.get("/api/sessions/chat/messages")).json()["messages"]

    async def indicator() -> tuple[int, str]:
        status = (await client.post("/api/compression/check", json=options)).json()
        percentage = round(status["utilizationPercentage"] * 100)
        assert status["needsCompression"] is (
            status["currentTokenCount"] > status["thresholdTokenCount"]
        )
        return percentage, f"{status['currentTokenCount']:,} / {status['contextLimit']:,} tokens"

    async def controls() -> dict[str, Any]:
        answer = await client.post("/api/compression/manual", json={**options, "force": True})
        result: dict[str, Any] = answer.json()
        return result

    async def display() -> list[dict[str, Any]]:
        answer = await client.get("/api/compression/summaries", params={"sessionId": "chat"})
        summaries = [each for each in answer.json() if each["kind"] == "summary"]
        assert all(each["sessionId"] == "chat" for each in summaries)
        assert all(each["createdAt"] <= each["updatedAt"] for each in summaries)
        return [json.loads(each["contentJson"]) for each in summaries]

    before, _ = await indicator()
    first = await controls()
    assert first["compressed"] is True
    after, shown = await indicator()
    assert after < before
    assert shown.startswith(f"{first['newTokenCount']:,} / ")
    (content,) = await display()
    assert content == {
        **content,
        "summaryText": first["summary"],
        "messageRange": {
            "firstMessageId": history[0]["id"],
            "lastMessageId": first["messageCutoffId"],
        },
        "compressionType": "manual",
        "originalTokenCount": first["originalTokenCount"],
        "messagesIncluded": first["messagesCompressed"],
    }
    assert content["summaryTokenCount"] < content["originalTokenCount"]
    assert datetime.fromisoformat(content["compressionTimestamp"]).tzinfo is not None
    again = await controls()
    assert again["compressed"] is False
    assert (again["messagesCompressed"], again["messageCutoffId"]) == (0, None)


async def test_the_model_of_the_call_wins_over_the_session(client: Client) -> None:
    await client.post("/api/sessions", json={"id": "chat", "model": MODEL})
    query = {"sessionId": "chat", "provider": "openai", "model": "gpt-4o"}
    large = (await client.post("/api/compression/check", json=query)).json()
    small = (await client.post("/api/compression/check", json={"sessionId": "chat"})).json()
    assert large["contextLimit"] > small["contextLimit"]


async def test_a_key_of_a_request_is_used_for_that_call_and_stored_nowhere(tmp_path: Path) -> None:
    gateway, path = ScriptedGateway("They agreed on the plan."), tmp_path / "keys.db"
    async with (
        open_engine(f"sqlite:///{path}", gateway=gateway) as engine,
        client_of(create_app(engine)) as client,
    ):
        await talk(client, "chat")
        query = {"sessionId": "chat", "provider": "openai", "model": "gpt-4o-mini"}
        manual = {**query, "apiKey": "sk-private", "retentionTokenCount": 200}
        done = (await client.post("/api/compression/manual", json=manual)).json()
        listed = await client.get("/api/compression/summaries", params={"sessionId": "chat"})
    (found,) = listed.json()
    assert done["summary"].endswith("They agreed on the plan.")
    connection = gateway.connections[0]
    assert connection.name == "openai:gpt-4o-mini"
    assert connection.key is not None
    assert connection.key.reveal() == "sk-private"
    assert b"sk-private" not in b"".join(map(Path.read_bytes, path.parent.glob("keys.db*")))
    content = json.loads(found["contentJson"])
    assert content["summaryText"] == done["summary"]
    assert content["summaryTokenCount"] == found["tokenCount"]
    assert content["messagesIncluded"] == done["messagesCompressed"]
    assert content["messageRange"]["lastMessageId"] == done["messageCutoffId"]
    assert datetime.fromisoformat(content["compressionTimestamp"]).tzinfo is not None


async def test_a_key_of_a_request_goes_to_the_server_of_the_sessions_profile(
    tmp_path: Path,
) -> None:
    gateway = ScriptedGateway("They agreed on the plan.")
    async with (
        open_engine(f"sqlite:///{tmp_path / 'keys.db'}", gateway=gateway) as engine,
        client_of(create_app(engine)) as client,
    ):
        await engine.profiles.save("own", {"provider": "openai", "model": "m", "base_url": HERE})
        await client.post("/api/sessions", json={"id": "chat", "profile": "own"})
        await talk(client, "chat")
        manual = {"sessionId": "chat", "apiKey": "sk-private", "retentionTokenCount": 200}
        for model in ({}, {"provider": "openai", "model": "other"}):
            await client.post("/api/compression/manual", json={**manual, **model})
            await client.post("/api/sessions/chat/undo")
        elsewhere = {"provider": "anthropic", "model": "claude-haiku-4-5"}
        await client.post("/api/compression/manual", json={**manual, **elsewhere})
    called = [(each.name, each.base_url) for each in gateway.connections]
    assert called == [
        ("openai:m", HERE),
        ("openai:other", HERE),
        ("anthropic:claude-haiku-4-5", None),
    ]


async def test_the_cost_of_a_compression_is_in_its_answer_and_in_the_metrics(
    tmp_path: Path,
) -> None:
    gateway = ScriptedGateway("They agreed on the plan.")
    async with (
        open_engine(f"sqlite:///{tmp_path / 'costs.db'}", gateway=gateway) as engine,
        client_of(create_app(engine)) as client,
    ):
        for name, prices in (("unknown", {}), ("priced", {"inputPrice": 5, "outputPrice": 9})):
            fields = {"provider": "compatible", "base_url": HERE, "model": name, **prices}
            await engine.profiles.save(name, fields)
            await engine.set("summarizer", name)
            await talk(client, name)
            done = (await client.post(f"/api/sessions/{name}/compress", json={})).json()
            assert (done["cost"] is None) == (name == "unknown")
        lines = (await client.get("/metrics")).text.splitlines()
    assert f"enfold_compression_dollars_total {done['cost']}" in lines
    assert done["cost"] > 0
    for label in ("known", "unknown"):
        assert f'enfold_compressions_by_cost_total{{cost="{label}"}} 1' in lines


async def test_a_session_that_is_not_there(client: Client, ann: Client) -> None:
    await client.post("/api/sessions", json={"id": "chat"})
    answer = await ann.post("/api/compression/check", json={"sessionId": "chat"})
    assert answer.status_code == 404
