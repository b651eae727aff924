"""Request bodies: cut into messages that stay bytes, with the facts that are needed of each.

A message that is not changed is never decoded in order to be sent: it leaves with the bytes that it
came with. `MessageFactsCache` holds role, content hash and token counts of messages by the digest
of their bytes. `PrefixCache` remembers how long bodies begin, so that only the new messages of a
turn are read.
"""

from __future__ import annotations

import asyncio
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache, partial
from hashlib import sha256
from itertools import accumulate, chain
from operator import attrgetter
from secrets import token_hex
from typing import (
    TYPE_CHECKING,
    Any,
    TypeAlias,
    TypeVar,
    TypeVarTuple,
    Unpack,
    cast,
    overload,
)

from enfold import wire
from enfold.errors import InputError
from enfold.identity import content_hash
from enfold.jsontext import dumps, fields, items, loads
from enfold.messages import Message, Role
from enfold.tokens import count_conversation, count_messages, counting_threads
from enfold.tokens.apart import process_for
from enfold.tokens.counts import PART_KINDS, PartKind, collect
from enfold.wire import Wire, estimate

if TYPE_CHECKING:
    from hashlib import _Hash

Result = TypeVar("Result")
Further = TypeVarTuple("Further")
FactsKey: TypeAlias = bytes
"""The digest of dialect, tokenizer and a message's bytes. A short message is its own digest."""

_MAX_OUTPUT = 2**53
"""Tokens. A larger limit of the reply is the same as none, and would overflow in JSON."""
_SHORT_MESSAGE = 200
"""Bytes up to which a message is looked up by its bytes, which is faster than to hash it."""
_MAX_FACTS = 7_000
"""Messages whose facts are cached; about 450 bytes each. Long bodies have a cache of their own."""
_THREAD_BYTES = 50_000
"""Bytes of new messages from which they are counted in a thread."""
MAX_MESSAGES = 20_000
"""Messages of a body that is read. No client sends as many; each costs time and memory."""
MAX_TEXT = 8 * 2**20
"""Bytes of text of a body that is read: more than the windows of all models hold."""
MAX_OBJECTS = 100_000
"""Maximum objects in a body that is parsed: each costs much more than its bytes."""
LARGE_BODY = 2**20
"""Bytes of a body from which it is read in a thread."""
_TEXT_RATIO = 6
"""The bytes of a text for each byte that base64 does not use: spaces, marks, other scripts."""
_SLICE = 256 * 1024
_OBJECT = re.compile(rb'\{\s*["}]')
"""The start of an object; quotes in texts are escaped."""
_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="
_MIN_BODY = 100_000
"""Bytes of a body from which its prefix is remembered."""
_UNSETTLED_MESSAGES = 6
"""Messages at the end that are always read again: clients still move cache marks in them."""
_MAX_PREFIXES = 100
_MAX_PREFIX_MESSAGES = 50_000
"""In all prefixes together; about 250 bytes each."""
_MAX_HELD_BYTES = 32 * 2**20
"""Bytes of the newest prefixes that are held: comparing takes a tenth of the time of hashing."""
_ENDING_BYTES = 64
"""Bytes at a prefix's end. Most bodies that do not begin with the prefix differ in them."""
_COMMA = re.compile(rb"[ \t\r\n]*,[ \t\r\n]*")


@dataclass(slots=True)
class RequestBody:
    """The body of a conversation request."""

    wire: Wire
    raw: bytes
    fields: Mapping[str, bytes]
    """Each field as JSON. The field of the messages is empty, so that they are not held twice."""
    messages: Sequence[bytes]
    """Each message as JSON."""
    replaced_fields: tuple[str, ...] = ()
    """Fields that refer to messages at the provider. `messages` has them, so these are not sent."""

    @property
    def overhead(self) -> bytes:
        """A body without messages: system prompt and tools."""
        overhead = [
            (name, self.fields[name]) for name in self.wire.overhead_keys if name in self.fields
        ]
        if not overhead:
            return _no_overhead(self.wire.messages_key)
        return _join_object([(self.wire.messages_key, b"[]"), *overhead])

    def field(self, name: str) -> Any:
        """Return a field, decoded; None where it is missing."""
        raw = self.fields.get(name)
        return None if raw is None else loads(raw)

    def max_output(self) -> int | None:
        """Return the request's limit of the reply, in tokens; None where it sets none."""
        for path in self.wire.max_output_paths:
            first, *rest = path.split(".")
            if first not in self.fields:
                continue
            value = self.field(first)
            for name in rest:
                value = value.get(name) if isinstance(value, dict) else None
            if isinstance(value, int) and not isinstance(value, bool):
                return min(value, _MAX_OUTPUT)
        return None

    def with_max_output(self, tokens: int) -> RequestBody:
        """Return the body with a limit of the reply that is at least this, if it has a limit."""
        current = self.max_output()
        if current is None or current >= tokens:
            return self
        fields = dict(self.fields)
        for path in self.wire.max_output_paths:
            first, *rest = path.split(".")
            value = self.field(first)
            if rest and isinstance(value, dict) and rest[0] in value:
                fields[first] = dumps({**value, rest[0]: tokens})
            elif not rest and value is not None:
                fields[first] = dumps(tokens)
        return replace(self, fields=fields)

    def with_messages(self, messages: Iterable[bytes]) -> bytes:
        """Return the body with other messages; other fields keep their bytes and their order."""
        array = b"[" + b",".join(messages) + b"]"
        fields = {**self.fields, self.wire.messages_key: array}
        return _join_object(
            (name, raw) for name, raw in fields.items() if name not in self.replaced_fields
        )


@cache
def _no_overhead(messages_key: str) -> bytes:
    """Return a body with nothing but an empty array of messages."""
    return _join_object([(messages_key, b"[]")])


def parse_body(wire: Wire, raw: bytes) -> RequestBody:
    """Cut a body into its messages; raise `InputError` where it is malformed."""
    found = fields(raw)
    messages = found.get(wire.messages_key, b"[]").lstrip()
    if wire.messages_key in found:
        found[wire.messages_key] = b"[]"
    if messages.startswith(b'"'):
        # The Responses API accepts a text in place of one user message.
        message = dumps({"role": "user", "content": loads(messages)})
        return RequestBody(wire, raw, found, (message,))
    if not messages.startswith(b"["):
        raise InputError(f"expected an array in {wire.messages_key!r}")
    return RequestBody(wire, raw, found, tuple(items(messages)))


def has_too_much_text(raw: bytes) -> bool:
    """Return True if a body has more text or objects than are read.

    Attachments in base64 do not count.
    """
    # In slices, because other threads wait while one is searched.
    slices = [(start, start + _SLICE) for start in range(0, len(raw), _SLICE)]
    if _exceeds(MAX_OBJECTS, (raw.count(b"{", *part) for part in slices)) and _exceeds(
        MAX_OBJECTS, (len(_OBJECT.findall(raw, *part)) for part in slices)
    ):
        return True
    if len(raw) <= MAX_TEXT:
        return False
    others = (len(raw[start:end].translate(None, _BASE64)) for start, end in slices)
    return _exceeds(MAX_TEXT // _TEXT_RATIO, others)


def _exceeds(limit: int, numbers: Iterable[int]) -> bool:
    """Return True as soon as the sum of the first numbers is above the limit."""
    return any(total > limit for total in accumulate(numbers))


def has_long_texts(body: RequestBody) -> bool:
    """Return True if large messages have more text than is read; attachments do not count."""
    texts: dict[PartKind, list[str]] = {kind: [] for kind in PART_KINDS}
    for raw in body.messages:
        if len(raw) > LARGE_BODY:
            collect(parse_message(raw, body.wire.dialect).parts, texts)
    texts["attachment"] = []
    return sum(map(len, chain.from_iterable(texts.values()))) > MAX_TEXT


def parse_message(raw: bytes, dialect: str) -> Message:
    """Return the message of its bytes."""
    return wire.get(dialect).parse_message(loads(raw))


async def parse_messages(raws: Sequence[bytes], dialect: str, at: datetime) -> list[Message]:
    """Return the messages of their bytes, each with the time; many are parsed in a thread."""
    return await _run_in_thread_if_large(_parse_messages, raws, dialect, at)


def _parse_messages(raws: Sequence[bytes], dialect: str, at: datetime) -> list[Message]:
    return [replace(parse_message(raw, dialect), at=at) for raw in raws]


def _join_object(members: Iterable[tuple[str, bytes]]) -> bytes:
    return b"{" + b",".join(dumps(name) + b":" + raw for name, raw in members) + b"}"


@dataclass(frozen=True, slots=True)
class MessageFacts:
    """The properties of a message that recognition and counting need."""

    role: Role
    content_hash: str
    tokens: int
    estimate: int


class MessageFactsCache:
    """Facts of messages, by the digest of their bytes; the oldest are dropped first."""

    def __init__(self, size: int = _MAX_FACTS) -> None:
        self._size = size
        self._facts: dict[FactsKey, MessageFacts] = {}
        self._overheads: dict[FactsKey, tuple[int, int]] = {}

    def sizes(self) -> dict[str, int]:
        """Return the number of entries of each collection."""
        return {"message_facts": len(self._facts), "overheads": len(self._overheads)}

    async def facts(
        self, raws: Sequence[bytes], dialect: str, tokenizer: str
    ) -> list[MessageFacts]:
        """Return the facts of every message."""
        if sum(map(len, raws)) < LARGE_BODY:
            keys = _facts_keys(raws, dialect, tokenizer)
        else:
            threads = counting_threads()
            work = partial(_facts_keys, raws, dialect, tokenizer)
            keys = await asyncio.get_running_loop().run_in_executor(threads, work)
        cached = list(map(self._facts.get, keys))
        if None not in cached:
            return cast("list[MessageFacts]", cached)
        missing = {
            key: raw for key, raw, facts in zip(keys, raws, cached, strict=True) if facts is None
        }
        computed = await _run_in_thread_if_large(
            _compute_facts, tuple(missing.values()), dialect, tokenizer, is_apart=True
        )
        new = dict(zip(missing, computed, strict=True))
        if len(self._facts) + len(new) > self._size:
            for key in list(self._facts)[: self._size // 4 + len(new)]:
                del self._facts[key]
        self._facts.update(new)
        return [facts or new[key] for key, facts in zip(keys, cached, strict=True)]

    async def overhead_tokens(
        self, overhead: bytes, dialect: str, tokenizer: str
    ) -> tuple[int, int]:
        """Return the tokens of system prompt and tools of a body without messages."""
        (key,) = _facts_keys([overhead], dialect, tokenizer)
        if key not in self._overheads:
            if len(self._overheads) >= self._size:
                self._overheads.clear()
            self._overheads[key] = await _run_in_thread_if_large(
                _count_overhead, (overhead,), dialect, tokenizer
            )
        return self._overheads[key]


def _facts_keys(raws: Sequence[bytes], dialect: str, tokenizer: str) -> list[FactsKey]:
    # SHA-256, because processors have instructions for it and every message is hashed every turn.
    start, hash_start = _hash_start(dialect, tokenizer)
    keys = []
    for raw in raws:
        if len(raw) <= _SHORT_MESSAGE:
            keys.append(start + raw)
        else:
            hasher = hash_start.copy()
            hasher.update(raw)
            keys.append(hasher.digest())
    return keys


@cache
def _hash_start(dialect: str, tokenizer: str) -> tuple[bytes, _Hash]:
    start = f"{dialect} {tokenizer} ".encode()
    return start, sha256(start)


async def _run_in_thread_if_large(
    work: Callable[[Sequence[bytes], str, Unpack[Further]], Result],
    raws: Sequence[bytes],
    dialect: str,
    *further: *Further,
    is_apart: bool = False,
) -> Result:
    size = sum(map(len, raws))
    if size < _THREAD_BYTES:
        return work(raws, dialect, *further)
    if is_apart and (process := process_for(size)) is not None:
        with suppress(BrokenProcessPool):  # it was ended; here it is done in any case
            return await process.run(work, raws, dialect, *further)
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(counting_threads(), work, raws, dialect, *further)


def _compute_facts(raws: Sequence[bytes], dialect: str, tokenizer: str) -> list[MessageFacts]:
    messages = [parse_message(raw, dialect) for raw in raws]
    counts = count_messages(messages, tokenizer)
    return [
        MessageFacts(message.role, content_hash(message), tokens, estimate(message))
        for message, tokens in zip(messages, counts, strict=True)
    ]


def _count_overhead(raws: Sequence[bytes], dialect: str, tokenizer: str) -> tuple[int, int]:
    counted = count_conversation(wire.parse(loads(raws[0]), dialect), tokenizer)
    return counted.total - counted.tools, counted.tools


@dataclass(slots=True)
class BodyPrefix:
    """A body up to the end of one of its messages."""

    wire: Wire
    raw: bytes | None = field(repr=False)
    """Its bytes, while they are held."""
    ending: bytes
    """Its last bytes."""
    hasher: _Hash
    """The hash of its bytes; the hash of a longer prefix continues it."""
    offsets: array[int]
    """The start and the end of each message, one after the other."""
    facts: dict[str, Sequence[MessageFacts]] = field(default_factory=dict, repr=False)
    """The facts of the first messages, by tokenizer."""
    ids: list[str] = field(default_factory=list, repr=False)
    """The identities of the messages after the leading system messages."""

    @property
    def size(self) -> int:
        """The number of its bytes."""
        return self.offsets[-1]

    @property
    def count(self) -> int:
        """The number of its messages."""
        return len(self.offsets) // 2

    def could_begin(self, wire: Wire, raw: bytes) -> bool:
        """Return False if the body certainly begins otherwise."""
        return (
            wire is self.wire
            and len(raw) > self.size
            and raw.startswith(self.ending, self.size - len(self.ending))
        )

    def remember_facts(self, tokenizer: str, facts: Sequence[MessageFacts]) -> None:
        """Keep the facts of its messages, which are the first of the given ones."""
        if len(self.facts.get(tokenizer, ())) < self.count:
            self.facts[tokenizer] = tuple(facts[: self.count])

    def remember_ids(self, ids: Sequence[str], lead: int) -> None:
        """Keep the identities of its messages; `lead` system messages come before them."""
        if len(self.ids) < self.count - lead:
            self.ids[:] = ids[: self.count - lead]


class MessageSlices(Sequence[bytes]):
    """Messages that are cut out of a body when they are read, and more messages after them."""

    __slots__ = ("_offsets", "_raw", "_rest")

    def __init__(self, raw: bytes, offsets: array[int], rest: Sequence[bytes] = ()) -> None:
        self._raw = raw
        self._offsets = offsets
        self._rest = rest

    def __len__(self) -> int:
        return len(self._offsets) // 2 + len(self._rest)

    @overload
    def __getitem__(self, at: int) -> bytes: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[bytes]: ...
    def __getitem__(self, at: int | slice) -> bytes | Sequence[bytes]:
        """Return a message, or consecutive messages."""
        sliced = len(self._offsets) // 2
        if isinstance(at, slice):
            start, stop, _ = at.indices(len(self))
            rest = self._rest[max(0, start - sliced) : max(0, stop - sliced)]
            return MessageSlices(self._raw, self._offsets[2 * start : 2 * stop], rest)
        index = range(len(self))[at]
        if index >= sliced:
            return self._rest[index - sliced]
        return self._raw[self._offsets[2 * index] : self._offsets[2 * index + 1]]

    def __iter__(self) -> Iterator[bytes]:
        """Yield the messages, without a check of each index."""
        raw, offsets = self._raw, self._offsets
        for start, end in zip(offsets[::2], offsets[1::2], strict=True):
            yield raw[start:end]
        yield from self._rest


class PrefixCache:
    """Parses bodies, and remembers how the long ones begin."""

    def __init__(
        self,
        *,
        min_body: int = _MIN_BODY,
        max_prefixes: int = _MAX_PREFIXES,
        max_messages: int = _MAX_PREFIX_MESSAGES,
        max_held: int = _MAX_HELD_BYTES,
    ) -> None:
        self._min_body = min_body
        self._max_prefixes = max_prefixes
        self._max_messages = max_messages
        self._max_held = max_held
        self._prefixes: list[BodyPrefix] = []
        """The most recently used is the last."""

    def sizes(self) -> dict[str, int]:
        """Return the number of prefixes, of their messages, and of the bytes that are held."""
        return {
            "prefixes": len(self._prefixes),
            "prefix_messages": sum(each.count for each in self._prefixes),
            "prefix_bytes": sum(len(each.raw or b"") for each in self._prefixes),
        }

    def parse(self, wire: Wire, raw: bytes) -> tuple[RequestBody, BodyPrefix | None]:
        """Return the body, cut into messages, and its prefix if the body is long."""
        if len(raw) < self._min_body:
            return parse_body(wire, raw), None
        cached = self._longest(wire, raw)
        body = _parse_after_prefix(cached, raw) if cached is not None else None
        if body is None:
            cached, body = None, parse_body(wire, raw)
        prefix = _extend_prefix(cached, body) if cached is not None else _first_prefix(body)
        if prefix is not None:
            self._add(prefix, replaced=cached)
        return body, prefix

    def _longest(self, wire: Wire, raw: bytes) -> BodyPrefix | None:
        """Return the longest prefix that the body begins with."""
        candidates = [each for each in self._prefixes if each.could_begin(wire, raw)]
        candidates.sort(key=attrgetter("size"), reverse=True)
        # Another thread may drop the bytes of a prefix meanwhile.
        held = ((each, each.raw) for each in candidates)
        found = next((each for each, its in held if its is not None and raw.startswith(its)), None)
        size = 0 if found is None else found.size
        longer = [each for each in reversed(candidates) if each.raw is None and each.size > size]
        return _longest_by_hash(longer, raw, found) if longer else found

    def _add(self, prefix: BodyPrefix, *, replaced: BodyPrefix | None) -> None:
        prefixes = [each for each in self._prefixes if each is not replaced]
        prefixes.append(prefix)
        while (
            len(prefixes) > self._max_prefixes
            or sum(each.count for each in prefixes) > self._max_messages
        ):
            del prefixes[0]
        # Threads share the list, so it is replaced and never changed. A prefix that two threads
        # add at once may be missing: then its body is parsed whole the next time.
        self._prefixes = prefixes
        left = self._max_held
        for each in reversed(prefixes):
            size = len(each.raw or b"")
            if size > left:
                each.raw = None
            else:
                left -= size


def _longest_by_hash(
    prefixes: Sequence[BodyPrefix], raw: bytes, found: BodyPrefix | None
) -> BodyPrefix | None:
    """Return the longest prefix that the body begins with; the body is hashed only once.

    `prefixes` are in the order of their size. `found` is a shorter prefix of the body.
    """
    hasher, at = (sha256(), 0) if found is None else (found.hasher.copy(), found.size)
    view = memoryview(raw)
    for each in prefixes:
        hasher.update(view[at : each.size])
        at = each.size
        found = each if hasher.digest() == each.hasher.digest() else found
    return found


def _parse_after_prefix(prefix: BodyPrefix, raw: bytes) -> RequestBody | None:
    """Parse a body that begins with the prefix; None if its messages are not those of the prefix.

    Only the rest is parsed, with a placeholder for the messages of the prefix. The placeholder is
    random, so that no message can be mistaken for it.
    """
    placeholder = _make_placeholder()
    try:
        rest = parse_body(prefix.wire, _replace_messages(raw, prefix.offsets, placeholder))
    except InputError:
        return None
    if list(rest.messages[:1]) != [placeholder]:
        return None  # the same field comes again later in the body, and the last one counts
    return replace(rest, raw=raw, messages=MessageSlices(raw, prefix.offsets, rest.messages[1:]))


def _first_prefix(body: RequestBody) -> BodyPrefix | None:
    """Return the prefix of a new body; None where it has too few messages."""
    settled = body.messages[:-_UNSETTLED_MESSAGES]
    if not settled:
        return None
    offsets = array("Q")
    if not _add_offsets(offsets, body.raw, body.raw.find(settled[0]), settled):
        return None
    if not _are_offsets_right(body, offsets):
        return None
    return _make_prefix(body, offsets, sha256(), 0)


def _extend_prefix(prefix: BodyPrefix, body: RequestBody) -> BodyPrefix:
    """Return a longer prefix of a body that begins with the prefix."""
    new = body.messages[prefix.count : -_UNSETTLED_MESSAGES]
    offsets = prefix.offsets[:]
    if not new or not _add_offsets(offsets, body.raw, _next_item(body.raw, prefix.size), new):
        return prefix
    longer = _make_prefix(body, offsets, prefix.hasher.copy(), prefix.size)
    return replace(longer, facts=dict(prefix.facts), ids=prefix.ids[:])


def _make_prefix(body: RequestBody, offsets: array[int], hasher: _Hash, hashed: int) -> BodyPrefix:
    """Return the body up to the last offset; its first `hashed` bytes are in the hash already."""
    raw = body.raw[: offsets[-1]]
    hasher.update(memoryview(raw)[hashed:])
    return BodyPrefix(body.wire, raw, raw[-_ENDING_BYTES:], hasher, offsets)


def _add_offsets(offsets: array[int], raw: bytes, at: int, messages: Sequence[bytes]) -> bool:
    """Add the offsets of the messages, which begin at `at`; False if they are not there."""
    for message in messages:
        if at < 0 or not raw.startswith(message, at):
            return False
        offsets.extend((at, at + len(message)))
        at = _next_item(raw, at + len(message))
    return True


def _next_item(raw: bytes, end: int) -> int:
    """Return the start of the array item after the one that ends at `end`; -1 if it is the last."""
    comma = _COMMA.match(raw, end)
    return comma.end() if comma is not None else -1


def _are_offsets_right(body: RequestBody, offsets: array[int]) -> bool:
    """Return False if the offsets are those of the same bytes in another place of the body."""
    placeholder = _make_placeholder()
    try:
        rest = parse_body(body.wire, _replace_messages(body.raw, offsets, placeholder))
    except InputError:
        return False
    after = body.messages[len(offsets) // 2 :]
    return list(rest.messages) == [placeholder, *after] and rest.fields == body.fields


def _replace_messages(raw: bytes, offsets: array[int], placeholder: bytes) -> bytes:
    return raw[: offsets[0]] + placeholder + raw[offsets[-1] :]


def _make_placeholder() -> bytes:
    return f'"{token_hex(16)}"'.encode()
