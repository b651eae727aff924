"""Times of messages: read from files, kept in the store, given to the pipeline, never sent."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

import enfold
from enfold import wire
from enfold.engine.recognition import ProxiedConversations
from enfold.engine.transfer import export_archive, import_transcript
from enfold.identity import content_hash
from enfold.jsontext import dumps
from enfold.messages import Message, Text
from enfold.server.proxy import bodies
from enfold.server.proxy.turn import ProxyPipeline, ProxyRequest
from enfold.testing import ScriptedSummarizer, assistant, call, result, user
from enfold.tokens import count_message
from enfold.transcripts import Transcript, TranscriptEntry, read
from enfold.wire import WIRES
from enfold.wire.fields import as_time
from tests.transcripts.files import CHATGPT_EXPORT, CLAUDE_LOG, CODEX_LOG, lines, the_one

NOON = datetime(2026, 5, 7, 12, tzinfo=UTC)


def dated(text: str, at: datetime | None = NOON) -> Message:
    return Message("user", (Text(text),), at=at)


@pytest.mark.parametrize(
    ("value", "time"),
    [
        ("2026-05-07T12:00:00Z", NOON),
        ("2026-05-07T12:00:00", NOON),
        (" 2026-05-07T14:00:00+02:00", NOON),
        ("2026-05-07", datetime(2026, 5, 7, tzinfo=UTC)),
        (1778155200, NOON),
        (1778155200.0, NOON),
        (1778155200_000, NOON),
        (1778155200_000_000, NOON),
        (1778155200_000_000_000, NOON),
        ("last week", None),
        ("", None),
        (12, None),
        (-1778155200, None),
        (float("nan"), None),
        (True, None),
        (None, None),
        ({"seconds": 1}, None),
    ],
)
def test_values_that_are_times(value: Any, time: datetime | None) -> None:
    assert as_time(value) == time


def test_a_time_keeps_its_zone_so_that_its_date_is_the_local_one() -> None:
    late = as_time("2026-05-07T23:30:00-05:00")
    assert late is not None
    assert late.date().isoformat() == "2026-05-07"


def test_a_time_changes_neither_equality_nor_hashes_nor_counts() -> None:
    with_time, without = dated("hello"), dated("hello", None)
    assert with_time == without
    assert content_hash(with_time) == content_hash(without)
    assert count_message(with_time, "o200k_base") == count_message(without, "o200k_base")


@pytest.mark.parametrize("name", [name for name in wire.DIALECTS if name != "enfold"])
def test_a_time_is_not_written_to_a_providers_wire(name: str) -> None:
    dialect = wire.get(name)
    assert dialect.render_message(dated("hello")) == dialect.render_message(dated("hello", None))


@pytest.mark.parametrize("field", ["at", "ts", "timestamp", "created_at"])
def test_the_enfold_dialect_reads_times_and_gives_them_back_as_they_came(field: str) -> None:
    raw = {"role": "user", "content": "hello", field: "2026-05-07T12:00:00.000Z"}
    message = wire.get("enfold").parse_message(raw)
    assert message.at == NOON
    assert wire.get("enfold").render_message(message) == raw


def test_the_enfold_dialect_writes_the_time_of_a_new_message() -> None:
    dialect = wire.get("enfold")
    raw = dialect.render_message(dated("hello"))
    assert raw["at"] == "2026-05-07T12:00:00+00:00"
    assert dialect.parse_message(raw).at == NOON


def test_every_transcript_format_with_times_gives_them() -> None:
    claude = datetime(2026, 3, 25, 0, 33, 44, 472_000, tzinfo=UTC)
    codex = datetime(2026, 1, 27, 12, 34, 56, tzinfo=UTC)
    chatgpt = datetime.fromtimestamp(1761983485.583, UTC)
    for content, time in (
        (lines(CLAUDE_LOG), claude),
        (lines(CODEX_LOG), codex),
        (dumps(CHATGPT_EXPORT[:1]), chatgpt),
    ):
        messages = the_one(content).conversation().messages
        assert messages
        assert {message.at for message in messages} == {time}


def test_a_reply_of_several_events_has_the_time_of_the_first() -> None:
    log = [
        {**event, "timestamp": f"2026-03-25T00:33:{10 + number}Z"}
        for number, event in enumerate(CLAUDE_LOG)
    ]
    seconds = [
        message.at.second for message in the_one(lines(log)).conversation().messages if message.at
    ]
    assert seconds == [12, 13, 16, 17, 18]


@pytest.mark.parametrize("dialect", ["openai", "anthropic", "enfold"])
def test_conversations_of_every_dialect_give_the_times_of_their_messages(dialect: str) -> None:
    body = {
        "messages": [
            {"role": "user", "content": "hi", "ts": "2026-05-07T12:00:00Z"},
            {"role": "assistant", "content": "hello", "created_at": 1778155200},
            {"role": "user", "content": "bye"},
        ]
    }
    one, _ = read(lines([body, body]), dialect=dialect)
    assert [message.at for message in one.conversation().messages] == [NOON, NOON, None]
    assert wire.render(one.conversation()) == body


async def test_a_stored_message_has_the_time_of_its_source(tmp_path: Path) -> None:
    entries = (
        TranscriptEntry(dated("a", NOON.astimezone(timezone(timedelta(hours=2)))), "1"),
        TranscriptEntry(assistant("b"), "2", "1"),
    )
    async with enfold.open(f"sqlite:///{tmp_path / 'chats.db'}") as engine:
        session = await import_transcript(engine, Transcript(entries, tip="2", id="chat"))
        before = datetime.now(UTC) - timedelta(seconds=5)
        await session.append(user("c"))
        first, second, third = [shown.message.at for shown in (await session.prepare()).view.shown]
        assert first == NOON
        assert second is None, "the time of the import is not the time of the message"
        assert third is not None
        assert before <= third <= datetime.now(UTC) + timedelta(seconds=5)
        (copy,) = read(await export_archive(engine, session))
        assert [entry.message.at for entry in copy.entries] == [first, None, third]


async def test_an_edit_has_the_time_of_its_message(tmp_path: Path) -> None:
    output = "\n".join(f"{number}: word" for number in range(2_000))
    async with enfold.open(f"sqlite:///{tmp_path / 'chats.db'}") as engine:
        session = await engine.session("chat")
        for number in range(3):
            name = f"call-{number}"
            await session.append(
                user(f"Look again, {number}."),
                assistant("", call(name, "read", {"path": "same.py"})),
                replace(result(name, output), at=NOON),
                assistant(f"Done {number}."),
            )
        await session.append(user("And now?"))
        await session.compress(strategy="lossless")
        edited = [shown for shown in (await session.prepare()).view.shown if shown.edit is not None]
        assert edited
        assert {shown.message.at for shown in edited} == {NOON}


async def test_a_proxied_message_has_the_time_at_which_it_arrived(tmp_path: Path) -> None:
    history = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "hello"},
        {"role": "user", "content": "bye"},
    ]
    raw = dumps({"model": "gpt-4o", "messages": history})
    body = bodies.parse_body(WIRES["openai"], raw)
    async with enfold.open(f"sqlite:///{tmp_path / 'chats.db'}") as engine:
        pipeline = ProxyPipeline(engine, ProxiedConversations(engine))
        request = ProxyRequest(body, "openai:gpt-4o", session="chat", arrived_at=NOON)
        await pipeline.prepare(request)
        await pipeline.idle()
        session = await engine.session("chat")
        assert [each.message.at for each in (await session.prepare()).view.shown] == [NOON] * 3


async def test_a_summarizer_sees_the_times_of_a_conversation_without_a_store() -> None:
    summarizer = ScriptedSummarizer("They talked.")
    body = [
        {"role": "user", "content": "alpha " * 500, "at": NOON.isoformat()},
        {"role": "assistant", "content": "beta " * 500, "at": NOON.isoformat()},
        {"role": "user", "content": "gamma " * 500},
        {"role": "assistant", "content": "delta " * 500, "at": NOON.isoformat()},
        {"role": "user", "content": "bye"},
    ]
    await enfold.condense(wire.parse(body, "enfold"), keep_tokens=5, summarizer=summarizer)
    (request,) = summarizer.requests
    assert [message.at for message in request.messages][-3:] == [NOON, None, NOON]
