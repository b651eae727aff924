"""The queue: one worker does each entry once, on both engines."""

from __future__ import annotations

from collections import Counter

from enfold.queue import Queue
from enfold.queue.shared import WorkHandler
from enfold.store import Store, open_store
from tests.queue.conftest import KIND, Doer, emptied, session


async def test_queued_work_is_done_once(store: Store, url: str) -> None:
    doer = Doer()
    queue = Queue(store, url)
    queue.start({KIND: WorkHandler(doer)})
    chat = await session(store)
    for message in ("one", "two", "one"):
        await queue.put(KIND, chat, message)
    await emptied(store)
    await queue.stop()
    assert doer.messages == ["one", "two"]


async def test_failed_work_is_retried_and_counted_as_waiting(store: Store, url: str) -> None:
    doer = Doer(failures=1)
    queue = Queue(store, url)
    queue.start({KIND: WorkHandler(doer)})
    await queue.put(KIND, await session(store), "one")
    while doer.failures:
        await doer.began.wait()
        doer.began.clear()
    state = await queue.state()
    assert (state.waiting, state.status) == ({KIND: 1}, "ok")
    await emptied(store)
    assert (await queue.state()).failing == 0
    await queue.stop()
    assert doer.messages == ["one"]


async def test_processes_share_the_work_and_nothing_is_done_twice(store: Store, url: str) -> None:
    doers = Doer(), Doer()
    async with await open_store(url) as second:
        queues = Queue(store, url), Queue(second, url)
        for queue, doer in zip(queues, doers, strict=True):
            queue.start({KIND: WorkHandler(doer, batch=2)})
        wanted = [
            (await session(store, f"chat {n}"), f"message {m}") for n in range(6) for m in (1, 2)
        ]
        for place, (chat, message) in enumerate(wanted):
            await queues[place % 2].put(KIND, chat, message)
        await emptied(store)
        for queue in queues:
            await queue.stop()
    done = Counter((entry.session, entry.message) for doer in doers for entry in doer.done)
    assert done == Counter(wanted)


async def test_closing_does_what_may_not_wait_and_leaves_the_rest(store: Store, url: str) -> None:
    now, later = Doer(), Doer()
    queue = Queue(store, url)
    chat = await session(store)
    await queue.put("now", chat, "one")
    await queue.put("later", chat, "one")
    await queue.stop()  # it never began, so nothing is done
    assert (await queue.state()).waiting == {"later": 1, "now": 1}
    queue = Queue(store, url)
    queue.start({"now": WorkHandler(now), "later": WorkHandler(later, before_closing=False)})
    await queue.stop()
    assert (now.messages, later.messages) == (["one"], [])
    assert (await queue.state()).waiting == {"later": 1}
