"""The four calls in camel case."""

from __future__ import annotations

from tests.server.conftest import MODEL, WINDOW, Client, talk


async def test_check_manual_config_and_summaries(client: Client) -> None:
    await talk(client, "chat")
    provider, _, model = MODEL.partition(":")
    asked = {"sessionId": "chat", "provider": provider, "model": model}
    check = (await client.post("/api/compression/check", json=asked)).json()
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
    more = {**asked, "additionalInput": "and now?"}
    grown = (await client.post("/api/compression/check", json=more)).json()
    assert grown["currentTokenCount"] > check["currentTokenCount"]
    manual = {**asked, "retentionTokenCount": 200}
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


async def test_the_model_of_the_call_wins_over_the_session(client: Client) -> None:
    await client.post("/api/sessions", json={"id": "chat", "model": MODEL})
    asked = {"sessionId": "chat", "provider": "openai", "model": "gpt-4o"}
    large = (await client.post("/api/compression/check", json=asked)).json()
    small = (await client.post("/api/compression/check", json={"sessionId": "chat"})).json()
    assert large["contextLimit"] > small["contextLimit"]


async def test_a_key_is_not_taken_from_a_request(client: Client) -> None:
    asked = {"sessionId": "chat", "apiKey": "sk-private"}
    answer = await client.post("/api/compression/manual", json=asked)
    assert answer.status_code == 400
    assert "apiKey" in answer.json()["error"]["message"]
    assert "private" not in answer.text


async def test_a_session_that_is_not_there(client: Client, ann: Client) -> None:
    await client.post("/api/sessions", json={"id": "chat"})
    answer = await ann.post("/api/compression/check", json={"sessionId": "chat"})
    assert answer.status_code == 404
