"""Events and who hears them."""

import asyncio
from dataclasses import replace

from enfold.events import (
    CompressionFinished,
    CompressionStarted,
    Event,
    Events,
    SessionUnblocked,
    payload,
)

STARTED = CompressionStarted("s", messages=45, tokens=90_000, strategy="native", automatic=True)


def test_an_event_says_what_happens_in_words() -> None:
    assert str(STARTED) == "Summarizing 45 messages (90,000 tokens)..."
    other = replace(STARTED, strategy="truncation")
    assert str(other) == "Condensing 45 messages (90,000 tokens)..."
    finished = CompressionFinished("s", "x", 45, 90_000, 9_000, 1.25, "local", automatic=True)
    assert str(finished) == "Folded 45 messages: 90,000 → 9,000 tokens in 1.2 s"


def test_the_payload_is_the_same_at_every_door() -> None:
    assert payload(STARTED) == {
        "event": "compression.started",
        "session": "s",
        "messages": 45,
        "tokens": 90_000,
        "strategy": "native",
        "automatic": True,
    }


def test_listeners_hear_in_order_until_they_stop() -> None:
    events = Events()
    heard: list[Event] = []
    stop = events.subscribe(heard.append)
    events.emit(STARTED)
    stop()
    events.emit(STARTED)
    assert heard == [STARTED]


async def test_a_stream_carries_the_events_of_one_session() -> None:
    events = Events()
    stream = events.stream("s")
    waiting = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    events.emit(SessionUnblocked("other", acknowledged=True))
    events.emit(STARTED)
    assert await waiting == STARTED
    await stream.aclose()
    events.emit(STARTED)
