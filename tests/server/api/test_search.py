"""Search over HTTP: in one session or in all of one's own."""

from __future__ import annotations

from tests.histories import LONG_RESULT
from tests.server.conftest import Client


async def _add_message(client: Client, session: str, text: str) -> None:
    await client.post("/api/sessions", json={"id": session})
    await client.post(f"/api/sessions/{session}/messages", json={"messages": [text]})


async def test_words_are_found_in_one_session_or_in_all(client: Client) -> None:
    await _add_message(client, "tea", "the mooring plan for tea")
    await _add_message(client, "boats", "the mooring plan for boats")
    everywhere = (await client.get("/api/search", params={"q": '"mooring plan"'})).json()
    assert {hit["session"] for hit in everywhere} == {"tea", "boats"}
    there = (await client.get("/api/search", params={"q": "plan", "session": "tea"})).json()
    assert [hit["session"] for hit in there] == ["tea"]
    best = (await client.get("/api/search", params={"q": "boats", "best": True})).json()
    assert best[0]["rank"] is not None
    assert (await client.get("/api/search")).status_code == 400
    assert (await client.get("/api/search?q=x&session=none")).status_code == 404


async def test_search_stays_within_its_namespace(ann: Client, ben: Client, client: Client) -> None:
    await _add_message(ann, "chat", "the password is harbour")
    await _add_message(ben, "chat", "nothing of interest")
    for other in (ben, client):
        assert (await other.get("/api/search", params={"q": "harbour"})).json() == []
    query = {"q": "harbour", "session": "chat"}
    assert (await ben.get("/api/search", params=query)).json() == []
    assert len((await ann.get("/api/search", params=query)).json()) == 1


async def test_a_question_is_answered_from_one_session(ann: Client, ben: Client) -> None:
    await _add_message(ann, "chat", "the spare key hangs in the galley")
    await _add_message(ben, "chat", "nothing of interest")
    query = {"question": "Where does the spare key hang?", "tokens": "200"}
    answer = (await ann.get("/api/sessions/chat/recall", params=query)).json()
    assert answer["fits"]
    assert [each["text"] for each in answer["passages"]] == ["the spare key hangs in the galley"]
    assert not (await ben.get("/api/sessions/chat/recall", params=query)).json()["fits"]
    assert (await ann.get("/api/sessions/chat/recall")).status_code == 400
    by_place = {"reference": "1", "around": "1"}
    opened = (await ann.get("/api/sessions/chat/recall", params=by_place)).json()
    assert opened["passages"][0]["position"] == 1
    too_many = {"reference": "1", "around": "51"}
    assert (await ann.get("/api/sessions/chat/recall", params=too_many)).status_code == 400
    assert (await ann.get("/api/sessions/none/recall", params=query)).status_code == 404


async def test_a_tool_call_opens_its_whole_result(client: Client) -> None:
    await client.post("/api/sessions", json={"id": "log"})
    await client.post("/api/sessions/log/messages", json={"messages": LONG_RESULT})
    query = {"reference": "read1", "tokens": "50000"}
    opened = (await client.get("/api/sessions/log/recall", params=query)).json()
    assert [each["text"] for each in opened["passages"]] == [LONG_RESULT[2]["content"]]
