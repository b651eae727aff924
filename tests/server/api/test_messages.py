"""Messages over HTTP: appended once, read in pages, as they came."""

from __future__ import annotations

from typing import Any

import pytest

from tests.server.conftest import Client, talk

HISTORY = "/api/sessions/chat/messages"


async def test_messages_are_read_as_they_came(client: Client) -> None:
    await client.post("/api/sessions", json={"id": "chat"})
    sent: list[Any] = [
        {"role": "user", "content": "tea? 🍵", "unknown": {"deep": [1, 10**30, None]}},
        {"role": "assistant", "content": "yes", "refusal": None},
    ]
    appended = await client.post(HISTORY, json={"messages": sent})
    assert appended.status_code == 201
    read = (await client.get(HISTORY)).json()["messages"]
    assert [each["message"] for each in read] == sent
    assert [each["id"] for each in read] == appended.json()["ids"]
    assert [each["depth"] for each in read] == [1, 2]
    one = await client.get(f"{HISTORY}/{read[0]['id']}")
    assert one.json() == read[0]
    assert (await client.get(f"{HISTORY}/none")).status_code == 404


async def test_a_lone_surrogate_survives(client: Client) -> None:
    await client.post("/api/sessions", json={"id": "chat"})
    body = b'{"messages": [{"role": "user", "content": "half \\ud83c of a cup"}]}'
    json = {"content-type": "application/json"}
    assert (await client.post(HISTORY, content=body, headers=json)).status_code == 201
    assert b"\\ud83c of a cup" in (await client.get(HISTORY)).content


async def test_stored_messages_are_not_written_twice(client: Client) -> None:
    await client.post("/api/sessions", json={"id": "chat"})
    first = (await client.post(HISTORY, json={"messages": ["one"]})).json()["ids"]
    await client.put("/api/sessions/chat/tip", json={"tip": None})
    again = (await client.post(HISTORY, json={"messages": ["one", "two"]})).json()["ids"]
    assert again[:1] == first
    assert len((await client.get(HISTORY)).json()["messages"]) == 2


async def test_the_history_comes_in_pages(client: Client) -> None:
    await talk(client, "chat", 5)
    newest = (await client.get(HISTORY, params={"limit": 4})).json()["messages"]
    query = {"limit": 4, "before": newest[0]["id"]}
    older = (await client.get(HISTORY, params=query)).json()["messages"]
    assert [each["depth"] for each in (*older, *newest)] == [3, 4, 5, 6, 7, 8, 9, 10]
    query = {"limit": 2, "after": older[0]["id"]}
    newer = (await client.get(HISTORY, params=query)).json()["messages"]
    assert [each["depth"] for each in newer] == [4, 5]
    both = {"before": newest[0]["id"], "after": older[0]["id"]}
    assert (await client.get(HISTORY, params=both)).status_code == 400


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({"messages": []}, "body.messages"),
        ({"messages": [{"content": "who?"}]}, "body.messages[0]"),
        ({"messages": [{"role": "user", "content": 3}], "dialect": "openai"}, "body.messages[0]"),
        ({"messages": ["one"], "dialect": "telegraph"}, "telegraph"),
        ({"messages": ["one"], "after": "nothing"}, "nothing"),
    ],
    ids=["none", "no role", "a number", "dialect", "after"],
)
async def test_errors_name_the_wrong_field(client: Client, body: Any, place: str) -> None:
    await client.post("/api/sessions", json={"id": "chat"})
    answer = await client.post(HISTORY, json=body)
    assert answer.status_code in {400, 404}
    assert place in answer.json()["error"]["message"]
    assert (await client.get(HISTORY)).json()["messages"] == []


async def test_a_message_is_pinned_listed_and_unpinned(client: Client) -> None:
    await client.post("/api/sessions", json={"id": "chat"})
    system = {"role": "system", "content": "Answer in French."}
    appended = await client.post(HISTORY, json={"messages": [system, "The port is 4711."]})
    rule, port = appended.json()["ids"]
    assert (await client.post(f"{HISTORY}/{port}/pin")).status_code == 204
    pins = (await client.get("/api/sessions/chat/pins")).json()
    assert [(each["message"], each["why"]) for each in pins] == [
        (rule, "system"),
        (port, "pinned"),
    ]
    assert all(each["tokens"] > 0 and each["in_view"] for each in pins)
    assert pins[1]["text"] == "The port is 4711."
    for message in (rule, port):
        assert (await client.delete(f"{HISTORY}/{message}/pin")).status_code == 204
    assert (await client.get("/api/sessions/chat/pins")).json() == []
    assert (await client.post(f"{HISTORY}/none/pin")).status_code == 404


async def test_pins_are_in_the_audit_log(client: Client) -> None:
    await talk(client, "chat", 1)
    message = (await client.get(HISTORY)).json()["messages"][0]["id"]
    await client.post(f"{HISTORY}/{message}/pin")
    newest = (await client.get("/api/audit")).json()[0]
    assert newest["action"] == "POST /api/sessions/{session}/messages/{message}/pin"
    assert (newest["session"], newest["status"]) == ("chat", 204)
