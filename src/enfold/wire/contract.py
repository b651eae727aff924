"""The interfaces that the modules of this package implement.

Every module is a `Dialect`: it parses and renders messages. A module whose provider the proxy can
stand in front of has a `WIRE` too: a table of everything else that is particular to the provider.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from enfold.messages import Conversation, Message
from enfold.wire.replies import CalledTool, ReplyParser, StreamJoiner

RawMessages: TypeAlias = Sequence[Mapping[str, Any]]
"""Messages of a dialect as JSON values."""
FieldReader: TypeAlias = Callable[[str], Any]
"""Returns a decoded top-level field of a request body; None where it is missing."""


class Dialect(Protocol):
    """A wire format of messages."""

    NAME: str

    def parse(self, value: Any) -> Conversation:
        """Return the conversation of a request body or an array of messages."""
        ...

    def render(self, conversation: Conversation) -> Any:
        """Return the conversation as a request body or an array of messages.

        One of this dialect is written as it was parsed, with its current messages; one of another
        dialect is translated.
        """
        ...

    def parse_message(self, raw: Any) -> Message:
        """Return one message."""
        ...

    def render_message(self, message: Message) -> Any:
        """Return one message as a JSON value."""
        ...


@dataclass(frozen=True, slots=True)
class RecallFormat:
    """The format of the recall tool in one dialect: its declaration, its calls and its results."""

    is_allowed: Callable[[FieldReader], bool]
    """Returns True if the request lets the model choose a tool and asks for a single reply."""
    tool_names: Callable[[dict[str, Any]], Iterable[str]]
    """Returns the names that one entry of `tools` declares."""
    add_tool: Callable[[bytes, str], bytes | None]
    """Returns the `tools` array with the recall tool added; None where it cannot be added."""
    complete_finishes: frozenset[str]
    """The finish reasons of replies whose tool calls are complete."""
    results: Callable[[Sequence[tuple[CalledTool, str]]], list[dict[str, Any]]]
    """Returns the messages that answer the calls."""
    without_calls: Callable[[RawMessages, str], list[dict[str, Any]]]
    """Returns the messages without the calls of the named tool."""
    join_bodies: Callable[[RawMessages, str], dict[str, Any]]
    """Returns several reply bodies as the one that the client receives."""
    joiner: Callable[[str], StreamJoiner]
    """Makes a joiner that hides the calls of the named tool."""
    add_to_message: Callable[[bytes, str], bytes] | None = None
    """Adds the recall tool to a message that declares tools. None: messages declare none."""
    merge_results: Callable[[RawMessages, Mapping[str, Any]], dict[str, Any]] | None = None
    """Adds held results to the client's next message. None: results are separate messages."""


@dataclass(frozen=True, slots=True)
class StoredResponses:
    """The fields with which requests refer to responses that the provider has stored."""

    previous_key: str
    """The field that names the response to continue from."""
    referenced_item: Callable[[bytes], str | None]
    """Returns the id of the stored item that a message refers to; None for other messages."""
    last_event: re.Pattern[bytes]
    """Matches the beginning of the event that completes a streamed response."""
    resendable: Callable[[RawMessages], list[Mapping[str, Any]]]
    """Returns the items of a response that was not stored, as they can be sent again."""


@dataclass(frozen=True, slots=True, eq=False)
class Wire:
    """Everything that is particular to one provider's HTTP interface."""

    dialect: str
    provider: str
    """The provider's name in model names such as `provider:model`."""
    upstream: str
    """The name of the upstream server, as in `ENFOLD_<NAME>_BASE_URL`."""
    address: str
    """The upstream server's public base URL, without a version."""
    path: re.Pattern[str]
    """Matches the paths of conversation requests; a group `model` holds the model, if any."""
    count_path: re.Pattern[str] | None
    """Matches the paths of requests that count a conversation; None if there are none."""
    messages_key: str
    overhead_keys: tuple[str, ...]
    """The other fields that take tokens: system prompt and tools."""
    max_output_paths: tuple[str, ...]
    """The fields that limit the reply's length; dots separate nested fields."""
    error_body: Callable[[str, int, str], dict[str, Any]]
    """Returns an error in the provider's format, from code, HTTP status and message."""
    reply_parser: Callable[[], ReplyParser]
    recall: RecallFormat
    text_finish: str
    """The finish reason of a text that the model has completed."""
    answers_in_text: Callable[[FieldReader], bool]
    """Returns True if the request lets the model answer with a text of any form."""
    stream_error: Callable[[Mapping[str, Any]], bytes]
    """Returns an error body as the event that ends a stream."""
    external_history_keys: tuple[str, ...] = ()
    """Fields that refer to history at the provider which other clients can change."""
    stored_responses: StoredResponses | None = None
    cache_mark_blocks: frozenset[str] = frozenset()
    """The types of content blocks that can carry a cache mark."""
    has_inline_system: bool = True
    """False: a system message may only come before the conversation."""
    client_headers: frozenset[bytes] = frozenset()
    """Headers that only this provider's clients send."""
    path_prefix: str | None = None
    """The beginning of paths that belong to this provider alone."""
    library_path: str = ""
    """The path that client libraries expect at the end of a base URL."""
    is_array_stream: Callable[[str], bool] = lambda _path: False
    """Returns True for paths whose streamed reply is one JSON array, not events."""
    compacts_itself: Callable[[FieldReader], bool] = lambda _field: False
    """Returns True if the request asks the provider to compact the history."""
    tools_in: Callable[[bytes], Sequence[dict[str, Any]]] = lambda _message: ()
    """Returns the tools that a message declares, in place of the field `tools`."""
    image_tokens: Callable[[int, int], int] | None = None
    """Estimates the tokens of an image from its width and height in pixels."""
