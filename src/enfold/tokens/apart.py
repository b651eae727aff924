"""Counting apart: a server counts long content in a process of low priority.

In a thread of the server it would compete with the requests for the interpreter and for the
processor: a message of 12 MB takes half a second of both.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from enfold.messages import Conversation
from enfold.tokens.counts import Content, Result, characters, count_async
from enfold.tokens.tokenizers import Tokenizer

if TYPE_CHECKING:
    from enfold.processes import LowPriorityProcess

LARGE = 1_000_000
"""Characters or bytes from which content is counted apart: sending it there takes less time."""


class _Server:
    """The process of this program, if it is a server."""

    process: LowPriorityProcess | None = None


def use_process(prepare: Callable[[], object]) -> None:
    """Let this program count apart, whose `__main__` must be one that a process can import.

    `prepare` loads in the process what the counting functions need.
    """
    from enfold.processes import LowPriorityProcess

    _Server.process = LowPriorityProcess(prepare)


def process_for(size: int) -> LowPriorityProcess | None:
    """Return the process for content of this size; None if the content is to be counted here.

    That is so in programs that are no servers, for short content, for the first long one in a
    while, and while the process starts.
    """
    process = _Server.process
    return process if process is not None and size >= LARGE and process.start() else None


async def count_apart(
    count: Callable[[Content, str], Result], content: Content, tokenizer: str
) -> Result:
    """Run a function that counts with the tokenizer of that name, apart or in a thread.

    The function must be one that can be imported.
    """
    messages = content.messages if isinstance(content, Conversation) else content
    process = None
    if _Server.process is not None:
        process = process_for(sum(map(characters, messages)))
    if process is not None:
        from concurrent.futures.process import BrokenProcessPool

        with suppress(BrokenProcessPool):  # it was ended; here it is counted in any case
            return await process.run(count, content, tokenizer)

    def count_here(content: Content, tokenizer: Tokenizer) -> Result:
        return count(content, tokenizer.name)

    return await count_async(count_here, content, tokenizer)
