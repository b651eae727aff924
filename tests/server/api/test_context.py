"""The context over HTTP: checked, prepared, compressed, blocked and freed again, undone."""

from __future__ import annotations

from enfold.engine import Engine
from enfold.errors import SummaryError
from enfold.testing import ScriptedSummarizer
from tests.server.conftest import Client, talk

CHAT = "/api/sessions/chat"


async def test_a_check_counts_what_is_about_to_be_sent(client: Client) -> None:
    await talk(client, "chat", 5)
    status = (await client.get(f"{CHAT}/status")).json()
    assert status["messages"] == 10
    assert status["decision"]["action"] == "keep"
    checked = await client.post(
        f"{CHAT}/check",
        json={"pending": "and now?", "system": "Be brief.", "tools": [{"name": "read"}]},
    )
    assert checked.json()["current_token_count"] > status["current_token_count"]
    assert checked.json()["context_limit"] < status["context_limit"]


async def test_a_full_session_is_compressed_on_the_way(client: Client) -> None:
    await talk(client, "chat", 40)
    view = (await client.post(f"{CHAT}/prepare", json={"pending": "and now?"})).json()
    assert view["compression"]["compressed"] is True
    assert view["decision"]["action"] == "keep"
    assert view["messages"][-1] == {"role": "user", "content": "and now?"}
    assert "They agreed on the plan." in view["messages"][0]["content"]
    assert len((await client.get(f"{CHAT}/messages?limit=100")).json()["messages"]) == 80


async def test_the_view_comes_in_the_dialect_that_is_asked_for(client: Client) -> None:
    await talk(client, "chat", 2)
    body = {"pending": "and now?", "dialect": "gemini"}
    view = (await client.post(f"{CHAT}/prepare", json=body)).json()
    assert view["messages"][-1]["parts"] == [{"text": "and now?"}]
    wrong = await client.post(f"{CHAT}/prepare", json={"dialect": "telegraph"})
    assert wrong.status_code == 400


async def test_a_preview_changes_nothing_and_a_compression_can_be_undone(client: Client) -> None:
    await talk(client, "chat")
    before = (await client.get(f"{CHAT}/status")).json()
    preview = (await client.post(f"{CHAT}/preview", json={})).json()
    assert preview["messages"] > 0
    assert (await client.get(f"{CHAT}/status")).json() == before
    done = (await client.post(f"{CHAT}/compress", json={"keep_tokens": 200})).json()
    assert (done["compressed"], done["author"]) == (True, "scripted")
    assert done["tokens_after"] < done["tokens_before"]
    assert done["receipt"] is not None
    undone = (await client.post(f"{CHAT}/undo")).json()
    assert undone == {"snapshot": done["snapshot"]}
    assert (await client.post(f"{CHAT}/undo")).json() == {"snapshot": None}
    after = (await client.get(f"{CHAT}/status")).json()
    assert after["current_token_count"] == before["current_token_count"]


async def test_without_force_nothing_is_done_that_is_not_due(client: Client) -> None:
    await talk(client, "chat", 2)
    done = (await client.post(f"{CHAT}/compress", json={"force": False})).json()
    assert (done["outcome"], done["compressed"]) == ("kept", False)


async def test_a_failure_blocks_until_a_retry_or_an_acknowledgement(
    client: Client, summarizer: ScriptedSummarizer, engine: Engine
) -> None:
    await talk(client, "chat", 40)
    summarizer.script(SummaryError("the model is away"))
    blocked = await client.post(f"{CHAT}/prepare", json={"settings": {"strategy": "native"}})
    error = blocked.json()["error"]
    assert (blocked.status_code, error["code"], error["retryable"]) == (409, "blocked", True)
    assert "retry" in error["message"]
    assert "away" in (await client.get(CHAT)).json()["blocked"]
    assert (await client.post(f"{CHAT}/retry")).status_code == 409
    acknowledged = await client.post(f"{CHAT}/acknowledge")
    assert acknowledged.status_code == 200
    view = await client.post(f"{CHAT}/prepare", json={})
    assert any("acknowledged" in warning for warning in view.json()["warnings"])
    summarizer.script("They agreed on the plan.")
    assert (await client.post(f"{CHAT}/retry")).json()["compressed"] is True
    assert (await client.get(CHAT)).json()["blocked"] is None


async def test_a_setting_of_the_call_that_does_not_exist_is_named(client: Client) -> None:
    await talk(client, "chat", 1)
    for path in ("check", "prepare", "preview", "compress"):
        answer = await client.post(f"{CHAT}/{path}", json={"settings": {"pending": "x"}})
        assert answer.status_code == 400
        assert "pending" in answer.json()["error"]["message"]


async def test_the_audit_log_has_the_figures(client: Client) -> None:
    await talk(client, "chat")
    done = (await client.post(f"{CHAT}/compress", json={})).json()
    (entry, *_) = (await client.get("/api/audit")).json()
    assert entry["action"] == "POST /api/sessions/{session}/compress"
    assert entry["counts"] == {
        "messages": done["messages"],
        "tokens_before": done["tokens_before"],
        "tokens_after": done["tokens_after"],
    }
