"""Selection: which messages of a graph's state are folded now, and which stay verbatim.

A message is known by its id, never by its place: states are trimmed, overwritten, edited and cut
back between two turns. Where a history may be divided is not decided here but by `retention`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from langchain_core.messages import BaseMessage, SystemMessage
from langchain_core.runnables import Runnable

from enfold.dialects.langchain import parse_message
from enfold.langgraph.options import Options
from enfold.langgraph.prompts import fill
from enfold.langgraph.running import RunningSummary
from enfold.messages import Message
from enfold.retention import Retention, Split, split


@dataclass(frozen=True, slots=True)
class Standing:
    """A state's messages, as a summarization finds them."""

    system: tuple[BaseMessage, ...]
    """The system message that leads them; none, or one."""
    live: tuple[BaseMessage, ...]
    """Those that no summary stands for."""
    running: RunningSummary | None
    """The summary that applies to them."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The live messages, divided."""

    folded: tuple[BaseMessage, ...]
    kept: tuple[BaseMessage, ...]
    folded_tokens: int
    kept_tokens: int
    is_due: bool
    """True if there are enough of them that some should be folded."""


def read(
    messages: Sequence[BaseMessage],
    running: RunningSummary | None,
    final_prompt: Runnable[dict[str, Any], Any],
) -> Standing:
    """What the messages are: a system message, copies of the summary, summarized ones, the rest."""
    applying = running if running is None or _applies(running, messages) else None
    shown = _shown(running, final_prompt)
    own = [message for message in messages if (message.type, message.content) not in shown]
    leads = bool(own) and isinstance(own[0], SystemMessage)
    system, rest = (tuple(own[:1]), own[1:]) if leads else ((), own)
    return Standing(system, tuple(_unsummarized(rest, applying)), applying)


def select(standing: Standing, options: Options) -> Selection:
    """The oldest of the live messages until what is left fits, if there are enough of them."""
    live, count = standing.live, options.token_counter
    counts = [count([message]) for message in live]
    total = count(list(live)) if live else 0
    room = options.room - (count(list(standing.system)) if standing.system else 0)
    wanted = _wanted(counts, total, options.trigger, room)
    if wanted == 0:
        return Selection((), live, 0, sum(counts), is_due=False)
    parsed = [parse_message(message) for message in live]
    divided = _split(parsed, counts, wanted, room)
    if divided.pinned is not None:
        # It stays beside the tail, so the tail has less room.
        wanted = _wanted(counts, total, options.trigger, room - counts[divided.pinned])
        divided = _split(parsed, counts, wanted, room)
    folded = [index for index in divided.folded if index != divided.pinned]
    kept = sorted(set(range(len(live))).difference(folded))
    return Selection(
        tuple(live[index] for index in folded),
        tuple(live[index] for index in kept),
        sum(counts[index] for index in folded),
        sum(counts[index] for index in kept),
        is_due=True,
    )


def _split(messages: Sequence[Message], counts: Sequence[int], wanted: int, room: int) -> Split:
    """The division next to the wanted one that the rules allow."""
    policy = Retention("messages", len(messages) - wanted)
    return split(messages, counts, policy, room=max(0, room))


def _wanted(counts: Sequence[int], total: int, trigger: int, room: int) -> int:
    """How many of the oldest to fold: up to where the trigger is reached and the rest fits.

    Where the rest never fits, because the system message alone is too large, it is all of them: the
    rules about what must stay have the last word anyway. 0 if the trigger is not reached.
    """
    sums = list(accumulate(counts))
    reached = [number for number, tokens in enumerate(sums, 1) if tokens >= trigger]
    fitting = (number for number in reached if total - sums[number - 1] <= room)
    return next(fitting, len(counts) if reached else 0)


def _applies(running: RunningSummary, messages: Sequence[BaseMessage]) -> bool:
    """Whether the summary tells the past of these messages.

    It no longer does where the branch was cut back into what was summarized: it would tell what
    never happened here. Then the messages themselves are still there to be summarized anew, if the
    first of them is; if it is not, the summary is all there is of the beginning, and stays.
    """
    present = {message.id for message in messages if message.id is not None}
    if running.last_summarized_message_id in present:
        return True
    return running.first_summarized_message_id not in present


def _shown(
    running: RunningSummary | None, final_prompt: Runnable[dict[str, Any], Any]
) -> list[tuple[str, Any]]:
    """How the turn before showed the summary: it may be among the messages now."""
    if running is None:
        return []
    shown = fill(final_prompt, system_message=[], summary=running.summary, messages=[])
    return [(message.type, message.content) for message in shown]


def _unsummarized(
    messages: Sequence[BaseMessage], running: RunningSummary | None
) -> list[BaseMessage]:
    """The messages that the summary does not stand for."""
    if any(message.id is None for message in messages):
        raise ValueError(
            "Messages are required to have ID field. Give each message an `id`, or let a graph's "
            "`add_messages` give it one."
        )
    if running is None:
        return list(messages)
    known = running.summarized_message_ids
    ids = [message.id for message in messages]
    last = running.last_summarized_message_id
    for id in ids[ids.index(last) + 1 :] if last in ids else ():
        if id in known:
            raise ValueError(
                f"Message with ID {id} has already been summarized, and is there again after the "
                "last summarized one. Give new messages ids of their own."
            )
    return [message for message in messages if message.id not in known]
