"""Events and who hears them."""

import asyncio
from dataclasses import replace

import pytest

from enfold.events import (
    CompressionFinished,
    CompressionStarted,
    Event,
    Events,
    SessionBlocked,
    SessionUnblocked,
    from_payload,
    payload,
)
from enfold.jsontext import dump_text, loads

STARTED = CompressionStarted("s", messages=45, tokens=90_000, strategy="native", automatic=True)


def test_an_event_says_what_happens_in_words() -> None:
    assert str(STARTED) == "Summarizing 45 messages (90,000 tokens)..."
    other = replace(STARTED, strategy="truncation")
    assert str(other) == "Condensing 45 messages (90,000 tokens)..."
    finished = CompressionFinished("s", "x", 45, 90_000, 9_000, 1.25, "local", automatic=True)
    assert str(finished) == "Summarized 45 messages: 90,000 → 9,000 tokens in 1.2 s"


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
    received: list[Event] = []
    stop = events.subscribe(received.append)
    events.emit(STARTED)
    stop()
    events.emit(STARTED)
    assert received == [STARTED]


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


@pytest.mark.parametrize(
    "event",
    [
        STARTED,
        CompressionFinished("s", "x", 4, 9, 1, 1.25, "local", automatic=True, warnings=("a", "b")),
        SessionBlocked("s", "the model is away"),
    ],
    ids=lambda event: event.name,
)
def test_an_event_can_be_had_back_from_its_payload(event: Event) -> None:
    decoded = loads(dump_text(payload(event)))
    assert from_payload({**decoded, "of": "a newer version"}) == event
    assert from_payload({**decoded, "event": "of a newer version"}) is None


def test_foreign_events_reach_only_their_subscribers() -> None:
    events = Events()
    here: list[Event] = []
    everywhere: list[Event] = []
    others: list[Event] = []
    passed_on: list[tuple[str, Event]] = []
    events.subscribe(here.append)
    events.subscribe(everywhere.append, namespace="ann", elsewhere=True)
    events.subscribe(others.append, namespace="ben", elsewhere=True)
    stop = events.forward(lambda namespace, event: passed_on.append((namespace, event)))
    ann = events.within("ann")
    ann.repeat(STARTED)
    assert (here, everywhere, others, passed_on) == ([], [STARTED], [], [])
    ann.emit(STARTED)
    assert (here, everywhere, passed_on) == ([STARTED], [STARTED] * 2, [("ann", STARTED)])
    stop()
    ann.emit(STARTED)
    assert len(passed_on) == 1
