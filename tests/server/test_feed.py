"""Feeds: in order, with a memory, and without anybody who can hold the others up."""

from __future__ import annotations

import asyncio

import pytest

from enfold.errors import LimitError
from enfold.events import Events, SessionUnblocked
from enfold.server import feed as feeds_of
from enfold.server.feed import FeedEvent, Feeds


def _event(session: str) -> SessionUnblocked:
    return SessionUnblocked(session, acknowledged=False)


def _sessions_in(queue: asyncio.Queue[FeedEvent | None]) -> list[str | None]:
    received = [queue.get_nowait() for _ in range(queue.qsize())]
    return [None if each is None else each.event.session for each in received]


async def test_events_stay_in_their_namespace() -> None:
    events = Events()
    feeds = Feeds(events)
    hers, his = feeds.of("ann").listen(), feeds.of("ben").listen()
    events.within("ann").emit(_event("chat"))
    events.within("").emit(_event("ours"))
    assert (_sessions_in(hers), _sessions_in(his)) == (["chat"], [])


async def test_a_returning_listener_gets_missed_events() -> None:
    events = Events()
    feed = Feeds(events).of("")
    queue = feed.listen()
    for name in "abc":
        events.emit(_event(name))
    first = queue.get_nowait()
    assert first is not None
    assert _sessions_in(feed.listen(first.id)) == ["b", "c"]
    assert _sessions_in(feed.listen("unknown")) == []
    assert _sessions_in(feed.listen()) == []


async def test_a_listener_that_does_not_read_is_dropped() -> None:
    events = Events()
    feed = Feeds(events).of("")
    slow = feed.listen()
    for number in range(2 * feeds_of.REMEMBERED + 1):
        events.emit(_event(str(number)))
    received = [each async for each in feed.follow(slow)]
    assert len(received) == 2 * feeds_of.REMEMBERED - 1
    events.emit(_event("more"))
    assert slow.empty()


async def test_the_number_of_listeners_is_limited() -> None:
    feed = Feeds(Events()).of("")
    for _ in range(feeds_of.LISTENERS):
        feed.listen()
    with pytest.raises(LimitError):
        feed.listen()


async def test_the_end_of_a_feed_is_announced() -> None:
    feeds = Feeds(Events())
    queue = feeds.of("").listen()
    feeds.close()
    assert [event async for event in feeds.of("").follow(queue)] == []
