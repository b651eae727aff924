"""Answers are recorded while they pass; only the end may wait."""

from __future__ import annotations

import json
from typing import Any

import pytest

from enfold.server.proxy.recorder import RecordedResponse, ResponseRecorder
from enfold.wire import WIRES
from enfold.wire.replies import Reply

STREAM = [(b"content-type", b"text/event-stream; charset=utf-8")]
WHOLE = [(b"content-type", b"application/json")]


def _event(kind: str, **fields: Any) -> bytes:
    data = json.dumps({"type": kind, **fields})
    return f"event: {kind}\ndata: {data}\n\n".encode()


DELTA = _event("response.output_text.delta", delta='event: response.completed "type":"response')
DONE = _event("response.completed", response={"id": "r", "status": "completed", "output": []})


class RecordedEvents:
    """Remembers what it was given, and when."""

    def __init__(self) -> None:
        self.events: list[Any] = []

    async def keep(self, reply: Reply) -> None:
        self.events.append(reply.id)

    def done(self, response: RecordedResponse) -> None:
        self.events.append(b"".join(response.chunks))


@pytest.mark.parametrize("size", [1, 7, 10_000])
async def test_a_stream_passes_up_to_its_last_event(size: int) -> None:
    kept = RecordedEvents()
    recorder = ResponseRecorder(
        RecordedResponse(WIRES["openai-responses"], STREAM), kept.done, kept.keep
    )
    whole = DELTA + DONE
    pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
    passed = b"".join(piece for piece in pieces if not recorder.feed(piece))
    assert whole.startswith(passed)
    assert b"}" not in passed[len(DELTA) :]
    assert size > len(whole) or len(passed) >= len(DELTA)
    assert kept.events == []
    await recorder.finish()
    assert kept.events == ["r"]
    recorder.close()
    assert kept.events == ["r", whole]


async def test_an_answer_that_is_no_stream_waits_until_it_is_whole() -> None:
    kept = RecordedEvents()
    recorder = ResponseRecorder(
        RecordedResponse(WIRES["openai-responses"], WHOLE), kept.done, kept.keep
    )
    assert [recorder.feed(b'{"id": "r'), recorder.feed(b'", "status": "completed"}')] == [
        True,
        True,
    ]
    await recorder.finish()
    assert kept.events[0] == "r"


async def test_a_recorder_without_a_keeper_waits_for_nothing() -> None:
    kept = RecordedEvents()
    recorder = ResponseRecorder(
        RecordedResponse(WIRES["openai-responses"], STREAM), kept.done, None
    )
    assert not any(recorder.feed(piece) for piece in (DELTA, DONE))
    await recorder.finish()
    recorder.close()
    assert kept.events == [DELTA + DONE]


async def test_a_large_answer_is_read_too() -> None:
    kept = RecordedEvents()
    recorder = ResponseRecorder(
        RecordedResponse(WIRES["openai-responses"], WHOLE), kept.done, kept.keep
    )
    body = {"id": "r", "status": "completed", "output": [], "text": "x" * 100_000}
    recorder.feed(json.dumps(body).encode())
    await recorder.finish()
    assert kept.events[0] == "r"
