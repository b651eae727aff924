"""Views of an agent's messages: which of them the model is sent, and what stands for the others.

A record says how many of the first messages it covers and what is shown of them: the places of
those that stay, and the others as LangChain's dicts. It is JSON, so every checkpointer can keep it.
Whether it belongs to a history is told by a digest of the covered messages' ids.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeAlias

from enfold.dialects import langchain as dialect
from enfold.messages import Conversation

if TYPE_CHECKING:
    from langchain_core.messages import AnyMessage

Record: TypeAlias = dict[str, Any]


def read_view(messages: Sequence[AnyMessage], record: Mapping[str, Any] | None) -> list[AnyMessage]:
    """What the record shows of these messages; all of them where it is not about them."""
    if record is None:
        return list(messages)
    covered = record["covered"]
    if covered > len(messages) or record["digest"] != _digest(messages[:covered]):
        return list(messages)
    shown = [
        messages[entry] if isinstance(entry, int) else message_of(entry)
        for entry in record["entries"]
    ]
    return [*shown, *messages[covered:]]


def record_of(messages: Sequence[AnyMessage], shown: Sequence[AnyMessage]) -> Record | None:
    """The record of a view of these messages; None where some of them cannot be told apart."""
    if len({message.id for message in messages if message.id}) != len(messages):
        return None
    places = {id(message): place for place, message in enumerate(messages)}
    return {
        "covered": len(messages),
        "digest": _digest(messages),
        "entries": [places.get(id(message), dict_of(message)) for message in shown],
    }


def folded(
    messages: Sequence[AnyMessage], before: Sequence[AnyMessage], after: Sequence[AnyMessage]
) -> list[AnyMessage]:
    """The messages that were shown before and are no longer, not even shortened."""
    ours = {id(message) for message in messages}
    still = {id(message) for message in after}
    shortened = {message.id for message in after if message.id}
    return [
        message
        for message in before
        if id(message) in ours and id(message) not in still and message.id not in shortened
    ]


def _digest(messages: Sequence[AnyMessage]) -> str:
    return sha256("\n".join(str(message.id) for message in messages).encode()).hexdigest()


def dict_of(message: AnyMessage) -> dict[str, Any]:
    """The message as JSON; what JSON cannot say, such as a tool's artifact, as text.

    No model is sent such a thing, and the message itself stays in the state.
    """
    return message.model_dump(mode="json", fallback=str)


def message_of(entry: Mapping[str, Any]) -> AnyMessage:
    """The message that `dict_of` wrote, or one that a strategy made in the same shape."""
    parsed = Conversation((dialect.parse_message(dict(entry)),), dialect=dialect.NAME)
    message: AnyMessage = dialect.render(parsed, "object")[0]
    return message
