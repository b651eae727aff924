"""Summaries over HTTP: listed, written anew, edited, deleted, and accounted for."""

from __future__ import annotations

from enfold.testing import ScriptedSummarizer
from tests.server.conftest import Client, talk

CHAT = "/api/sessions/chat"


async def test_a_summary_is_edited_written_anew_and_deleted(
    client: Client, summarizer: ScriptedSummarizer
) -> None:
    await talk(client, "chat")
    assert (await client.get(f"{CHAT}/summaries")).json() == []
    made = (await client.post(f"{CHAT}/compress", json={})).json()
    (first,) = (await client.get(f"{CHAT}/summaries")).json()
    assert (first["id"], first["text"]) == (made["snapshot"], "They agreed on the plan.")
    edited = await client.put(f"{CHAT}/summary", json={"text": "In my own words."})
    assert (edited.json()["author"], edited.json()["previous"]) == ("user", first["id"])
    summarizer.script("Written anew, with care.")
    anew = await client.post(f"{CHAT}/regenerate", json={})
    assert anew.json()["summary"] == "Written anew, with care."
    deleted = await client.delete(f"{CHAT}/summaries/{anew.json()['snapshot']}")
    assert deleted.status_code == 204
    texts = {each["id"]: each["text"] for each in (await client.get(f"{CHAT}/summaries")).json()}
    # No earlier text comes back: one of them may have been edited out for a reason.
    assert set(texts.values()) == {None}


async def test_an_edit_is_taken_back_only_on_request(client: Client) -> None:
    await talk(client, "chat")
    made = (await client.post(f"{CHAT}/compress", json={})).json()
    for earlier, shown in (("true", [made["snapshot"]]), ("false", [])):
        edited = await client.put(f"{CHAT}/summary", json={"text": "In my own words."})
        undone = await client.post(f"{CHAT}/undo?to_earlier_text={earlier}")
        assert undone.json() == {"snapshot": edited.json()["id"]}
        left = (await client.get(f"{CHAT}/summaries")).json()
        assert [each["id"] for each in left if not each["undone"]] == shown
    refused = await client.post(f"{CHAT}/undo?to_earlier_text=perhaps")
    assert refused.status_code == 400


async def test_without_a_summary_there_is_nothing_to_edit(client: Client) -> None:
    await talk(client, "chat", 2)
    for answer in (
        await client.put(f"{CHAT}/summary", json={"text": "words"}),
        await client.post(f"{CHAT}/regenerate", json={}),
        await client.delete(f"{CHAT}/summaries/none"),
        await client.get(f"{CHAT}/summaries/none/receipt"),
    ):
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")


async def test_a_receipt_accounts_for_every_item(client: Client) -> None:
    await client.post("/api/sessions", json={"id": "chat"})
    messages = [
        {"role": "assistant", "content": f"See /srv/files/plan{number}.txt. " + "alpha " * 60}
        for number in range(20)
    ]
    await client.post(
        f"{CHAT}/messages", json={"messages": ["Look for them.", *messages, "Thanks."]}
    )
    made = (await client.post(f"{CHAT}/compress", json={"keep_tokens": 100})).json()
    path = f"{CHAT}/summaries/{made['snapshot']}/receipt"
    receipt = (await client.get(path, params={"limit": 3})).json()
    assert receipt["lost"] == []
    assert len(receipt["restorable"]) == 3
    assert receipt["more"]["restorable"] > 0


async def test_memories_are_listed(client: Client) -> None:
    await talk(client, "chat", 2)
    assert (await client.get(f"{CHAT}/memories")).json() == []
