"""Sessions over HTTP: made, listed in pages, changed, forked, deleted."""

from __future__ import annotations

import pytest

from enfold.engine import Engine
from tests.server.conftest import Client


async def test_a_session_is_made_shown_changed_and_deleted(client: Client) -> None:
    made = await client.post("/api/sessions", json={"id": "chat", "title": "Tea"})
    assert made.status_code == 201
    assert made.json()["title"] == "Tea"
    changed = await client.patch(
        "/api/sessions/chat", json={"title": "Coffee", "settings": {"threshold": 0.5}}
    )
    assert changed.json() == {
        **made.json(),
        "title": "Coffee",
        "settings": {"threshold": 0.5},
        "updated_at": changed.json()["updated_at"],
    }
    assert (await client.get("/api/sessions/chat")).json() == changed.json()
    assert (await client.delete("/api/sessions/chat")).status_code == 204
    gone = await client.get("/api/sessions/chat")
    assert (gone.status_code, gone.json()["error"]["code"]) == (404, "not_found")


async def test_a_session_without_a_name_gets_one(client: Client) -> None:
    first, second = [(await client.post("/api/sessions", json={})).json()["id"] for _ in range(2)]
    assert first != second


@pytest.mark.parametrize("name", ["a/b", "../etc/passwd", "né & 茶", "a b?c#d", "x%2Fy"])
async def test_any_name_will_do(client: Client, name: str) -> None:
    from urllib.parse import quote

    assert (await client.post("/api/sessions", json={"id": name})).status_code == 201
    path = f"/api/sessions/{quote(name, safe='')}"
    assert (await client.get(path)).json()["id"] == name
    assert (await client.get(f"{path}/branches")).json() == []


async def test_sessions_come_in_pages_that_miss_none(client: Client) -> None:
    names = {f"chat {number}" for number in range(7)}
    for name in names:
        await client.post("/api/sessions", json={"id": name})
    found: list[str] = []
    after: str | None = None
    while True:
        query = {"limit": "3"} | ({"after": after} if after else {})
        page = (await client.get("/api/sessions", params=query)).json()
        found += [session["id"] for session in page["sessions"]]
        after = page["next"]
        if after is None:
            break
    assert len(found) == len(names)
    assert set(found) == names


async def test_a_fork_has_the_messages_and_goes_its_own_way(client: Client, engine: Engine) -> None:
    session = await engine.session("chat", title="Tea")
    first, second = await session.append("one", "two")
    forked = await client.post("/api/sessions/chat/fork", json={"id": "other", "at": first})
    assert forked.status_code == 201
    assert (forked.json()["title"], forked.json()["tip"]) == ("Tea", first)
    other = await engine.find("other")
    await other.append("three")
    assert len(await other.messages()) == 2
    assert (await session.history())[-1].id == second
    taken = await client.post("/api/sessions/chat/fork", json={"id": "other"})
    assert taken.status_code == 400


async def test_branches_are_listed_and_switched(client: Client, engine: Engine) -> None:
    session = await engine.session("chat")
    first, second = await session.append("one", "two")
    (third,) = await session.append("instead", after=first)
    branches = (await client.get("/api/sessions/chat/branches")).json()
    assert [(each["tip"], each["current"]) for each in branches] == [(second, False), (third, True)]
    switched = await client.put("/api/sessions/chat/tip", json={"tip": second})
    assert switched.json()["tip"] == second
    assert (await client.put("/api/sessions/chat/tip", json={"tip": "none"})).status_code == 404


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({"id": ""}, "body.id"),
        ({"id": 3}, "body.id"),
        ({"name": "chat"}, "body.name"),
        ({"settings": {"threshold": 3}}, "threshold"),
        ({"settings": {"self": 7}}, "self"),
    ],
    ids=str,
)
async def test_errors_name_the_wrong_field(
    client: Client, body: dict[str, object], place: str
) -> None:
    answer = await client.post("/api/sessions", json=body)
    error = answer.json()["error"]
    assert answer.status_code == 400
    assert place in error["message"]
    assert error["request_id"] == answer.headers["x-request-id"]


async def test_a_cursor_that_is_none_is_refused(client: Client) -> None:
    answer = await client.get("/api/sessions", params={"after": "yesterday"})
    assert answer.status_code == 400
    assert "after" in answer.json()["error"]["message"]


async def test_two_people_have_sessions_of_one_name(ann: Client, ben: Client) -> None:
    await ann.post("/api/sessions", json={"id": "chat", "title": "Ann's"})
    assert (await ben.get("/api/sessions/chat")).status_code == 404
    assert (await ben.get("/api/sessions")).json()["sessions"] == []
    await ben.post("/api/sessions", json={"id": "chat", "title": "Ben's"})
    assert (await ben.delete("/api/sessions/chat")).status_code == 204
    assert (await ann.get("/api/sessions/chat")).json()["title"] == "Ann's"
