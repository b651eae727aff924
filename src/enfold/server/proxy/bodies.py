"""Request bodies: cut into messages that are still bytes, and put together again.

A message that is not changed is never decoded for its own sake: it leaves with the bytes that it
came with. What has to be known of it is in `facts`.
"""

from __future__ import annotations

import asyncio
import re
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import sha256
from operator import attrgetter
from secrets import token_hex
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast, overload

from enfold import wire
from enfold.errors import InputError
from enfold.estimates import estimate
from enfold.identity import content_hash
from enfold.jsontext import dumps, fields, items, loads
from enfold.messages import Message, Role
from enfold.tokens import count_conversation, count_messages
from enfold.wire import Wire

_MOST_OUTPUT = 2**53
"""Tokens. What is larger limits nothing, and cannot be reckoned with."""


@dataclass(frozen=True, slots=True)
class Body:
    """A request as it came."""

    form: Wire
    raw: bytes
    fields: Mapping[str, bytes]
    """Each still as JSON; the messages' own is empty, so that they are not held twice."""
    messages: Sequence[bytes]
    """Each still as JSON."""
    elsewhere: tuple[str, ...] = ()
    """Fields that name messages at the provider, which stand among these messages too."""

    @property
    def beside(self) -> bytes:
        """What is sent beside the messages, as a body with no messages in it."""
        there = [
            (name, self.fields[name]) for name in self.form.overhead_keys if name in self.fields
        ]
        return _object([(self.form.messages_key, b"[]"), *there])

    def value(self, name: str) -> Any:
        """A field of the body, decoded; None where it is not there."""
        raw = self.fields.get(name)
        return None if raw is None else loads(raw)

    def max_output(self) -> int | None:
        """The limit that the request sets to the answer. None where it sets none."""
        for path in self.form.max_output_paths:
            first, *rest = path.split(".")
            found = self.value(first)
            for name in rest:
                found = found.get(name) if isinstance(found, dict) else None
            if isinstance(found, int) and not isinstance(found, bool):
                return min(found, _MOST_OUTPUT)
        return None

    def with_messages(self, messages: Iterable[bytes]) -> bytes:
        """The same request with other messages; its other fields as they came, where they were."""
        array = b"[" + b",".join(messages) + b"]"
        fields = {**self.fields, self.form.messages_key: array}
        return _object((name, raw) for name, raw in fields.items() if name not in self.elsewhere)


def bodies_read(form: Wire, raw: bytes) -> Body:
    """The body, cut into messages; `InputError` says what is wrong with it."""
    found = fields(raw)
    sent = found.get(form.messages_key, b"[]").lstrip()
    if form.messages_key in found:
        found[form.messages_key] = b"[]"
    if sent.startswith(b'"'):
        # Responses take a text for the one message that it is.
        return Body(form, raw, found, (dumps({"role": "user", "content": loads(sent)}),))
    if not sent.startswith(b"["):
        raise InputError(f"expected an array in {form.messages_key!r}")
    return Body(form, raw, found, tuple(items(sent)))


def _object(members: Iterable[tuple[str, bytes]]) -> bytes:
    return b"{" + b",".join(dumps(name) + b":" + raw for name, raw in members) + b"}"


if TYPE_CHECKING:
    from hashlib import _Hash

Result = TypeVar("Result")
Key: TypeAlias = bytes
"""The digest of dialect, tokenizer, and a message's bytes."""

_REMEMBERED = 50_000
"""How many messages; about 300 bytes each."""
_LARGE = 50_000
"""Bytes of unseen messages from which the work is done beside the event loop."""
_COUNTING = ThreadPoolExecutor(max_workers=2, thread_name_prefix="enfold-counting")
"""Few threads that stay: a tokenizer's library keeps about 8 MB for each that ever counted."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a message by its bytes."""

    role: Role
    content: str
    """The hash of what it says."""
    tokens: int
    estimate: int


class Memory:
    """The facts of messages, by the digest of their bytes; the oldest are forgotten first."""

    def __init__(self, size: int = _REMEMBERED) -> None:
        self._size = size
        self._facts: dict[Key, Facts] = {}
        self._beside: dict[Key, tuple[int, int]] = {}

    async def facts(self, raws: Sequence[bytes], dialect: str, tokenizer: str) -> list[Facts]:
        """The facts of every message, counted by the tokenizer."""
        keys = _keys(raws, dialect, tokenizer)
        known = [self._facts.get(key) for key in keys]
        unseen = {
            key: raw for key, raw, fact in zip(keys, raws, known, strict=True) if fact is None
        }
        if not unseen:
            return cast("list[Facts]", known)
        found = await _apart(_find, tuple(unseen.values()), dialect, tokenizer)
        new = dict(zip(unseen, found, strict=True))
        self._remember(new)
        return [fact or new[key] for key, fact in zip(keys, known, strict=True)]

    async def beside(self, raw: bytes, dialect: str, tokenizer: str) -> tuple[int, int]:
        """What a system prompt and tools take, given as a body with no messages in it."""
        (key,) = _keys([raw], dialect, tokenizer)
        if key not in self._beside:
            if len(self._beside) >= self._size:
                self._beside.clear()
            self._beside[key] = await _apart(_count_beside, (raw,), dialect, tokenizer)
        return self._beside[key]

    def _remember(self, found: dict[Key, Facts]) -> None:
        if len(self._facts) + len(found) > self._size:
            for key in list(self._facts)[: self._size // 4 + len(found)]:
                del self._facts[key]
        self._facts.update(found)


def _keys(raws: Sequence[bytes], dialect: str, tokenizer: str) -> list[Key]:
    """Processors have instructions for this hash, and long histories are hashed on every turn."""
    beginning = _beginning(dialect, tokenizer)
    keys = []
    for raw in raws:
        hashing = beginning.copy()
        hashing.update(raw)
        keys.append(hashing.digest())
    return keys


@cache
def _beginning(dialect: str, tokenizer: str) -> _Hash:
    return sha256(f"{dialect} {tokenizer} ".encode())


def parse(raw: bytes, dialect: str) -> Message:
    """The message of its bytes."""
    return wire.get(dialect).parse_message(loads(raw))


async def _apart(
    work: Callable[[Sequence[bytes], str, str], Result],
    raws: Sequence[bytes],
    dialect: str,
    tokenizer: str,
) -> Result:
    if sum(map(len, raws)) < _LARGE:
        return work(raws, dialect, tokenizer)
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(_COUNTING, work, raws, dialect, tokenizer)


def _find(raws: Sequence[bytes], dialect: str, tokenizer: str) -> list[Facts]:
    messages = [parse(raw, dialect) for raw in raws]
    counts = count_messages(messages, tokenizer)
    return [
        Facts(message.role, content_hash(message), tokens, estimate(message))
        for message, tokens in zip(messages, counts, strict=True)
    ]


def _count_beside(raws: Sequence[bytes], dialect: str, tokenizer: str) -> tuple[int, int]:
    conversation = wire.parse(loads(raws[0]), dialect)
    counted = count_conversation(conversation, tokenizer)
    return counted.total - counted.tools, counted.tools


if TYPE_CHECKING:
    from hashlib import _Hash

_LONG = 100_000
"""Bytes from which a body is worth it."""
_NEWEST = 6
"""So many messages at the end are read anew: clients still move cache marks in them."""
_MOST = 100
"""Prefixes that are remembered."""
_MOST_MESSAGES = 50_000
"""Of all prefixes together; about 250 bytes each."""
_HELD = 32 * 2**20
"""Bytes of the newest that are held: to compare them takes a tenth of the time of a digest."""
_LAST = 64
"""Bytes at its end by which most bodies are seen to have another beginning."""
_COMMA = re.compile(rb"[ \t\r\n]*,[ \t\r\n]*")


@dataclass(slots=True)
class Prefix:
    """A body up to the end of one of its messages."""

    form: Wire
    raw: bytes | None = field(repr=False)
    """Its bytes, while they are held."""
    last: bytes
    hashed: _Hash
    """The hash of its bytes, which that of a longer one goes on from."""
    places: array[int]
    """Where each message begins and ends, one after the other."""
    facts: dict[str, Sequence[Facts]] = field(default_factory=dict, repr=False)
    """What is known of the messages, from the first on, by tokenizer."""
    ids: list[str] = field(default_factory=list, repr=False)
    """The identities of those that are no system prompt."""

    @property
    def size(self) -> int:
        """Its bytes."""
        return self.places[-1]

    @property
    def count(self) -> int:
        """How many messages it has."""
        return len(self.places) // 2

    def may_begin(self, form: Wire, raw: bytes) -> bool:
        """Whether the body looks as if it began with it."""
        return (
            form is self.form
            and len(raw) > self.size
            and raw.startswith(self.last, self.size - len(self.last))
        )

    def learn(self, tokenizer: str, facts: Sequence[Facts]) -> None:
        """Remember the facts of its messages, which the given ones begin with."""
        if len(self.facts.get(tokenizer, ())) < self.count:
            self.facts[tokenizer] = tuple(facts[: self.count])

    def learn_ids(self, ids: Sequence[str], lead: int) -> None:
        """Remember the identities of its messages; so many system messages come before them."""
        if len(self.ids) < self.count - lead:
            self.ids[:] = ids[: self.count - lead]


class Cut(Sequence[bytes]):
    """Messages that are cut out of a body when they are asked for, and those that follow them."""

    __slots__ = ("_places", "_raw", "_rest")

    def __init__(self, raw: bytes, places: array[int], rest: Sequence[bytes] = ()) -> None:
        self._raw = raw
        self._places = places
        self._rest = rest

    def __len__(self) -> int:
        return len(self._places) // 2 + len(self._rest)

    @overload
    def __getitem__(self, at: int) -> bytes: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[bytes]: ...
    def __getitem__(self, at: int | slice) -> bytes | Sequence[bytes]:
        """A message, or some that follow each other."""
        own = len(self._places) // 2
        if isinstance(at, slice):
            start, stop, _ = at.indices(len(self))
            rest = self._rest[max(0, start - own) : max(0, stop - own)]
            return Cut(self._raw, self._places[2 * start : 2 * stop], rest)
        index = range(len(self))[at]
        if index >= own:
            return self._rest[index - own]
        return self._raw[self._places[2 * index] : self._places[2 * index + 1]]


class Prefixes:
    """Reads bodies, and remembers how they begin."""

    def __init__(
        self,
        *,
        long: int = _LONG,
        most: int = _MOST,
        messages: int = _MOST_MESSAGES,
        held: int = _HELD,
    ) -> None:
        self._long = long
        self._most = most
        self._messages = messages
        self._held = held
        self._known: list[Prefix] = []
        """Those that came last are at the end."""

    def read(self, form: Wire, raw: bytes) -> tuple[Body, Prefix | None]:
        """The body, cut into messages, and what is known of how it begins."""
        if len(raw) < self._long:
            return bodies_read(form, raw), None
        known = self._longest(form, raw)
        body = _read_after(known, raw) if known is not None else None
        if body is None:
            known, body = None, bodies_read(form, raw)
        prefix = _lengthened(known, body) if known is not None else _begun(body)
        if prefix is not None:
            self._remember(prefix, instead_of=known)
        return body, prefix

    def _longest(self, form: Wire, raw: bytes) -> Prefix | None:
        """The longest one that the body begins with."""
        may = [each for each in self._known if each.may_begin(form, raw)]
        may.sort(key=attrgetter("size"), reverse=True)
        same = (each for each in may if each.raw is not None and raw.startswith(each.raw))
        found = next(same, None)
        size = 0 if found is None else found.size
        longer = [each for each in reversed(may) if each.raw is None and each.size > size]
        return _longest_by_hash(longer, raw, found) if longer else found

    def _remember(self, prefix: Prefix, *, instead_of: Prefix | None) -> None:
        self._known = [each for each in self._known if each is not instead_of]
        self._known.append(prefix)
        while len(self._known) > self._most or self._count() > self._messages:
            del self._known[0]
        self._let_go()

    def _let_go(self) -> None:
        """Hold no more bytes than may be held, those of the newest."""
        left = self._held
        for each in reversed(self._known):
            size = len(each.raw or b"")
            if size > left:
                each.raw = None
            else:
                left -= size

    def _count(self) -> int:
        return sum(each.count for each in self._known)


def _longest_by_hash(prefixes: Sequence[Prefix], raw: bytes, found: Prefix | None) -> Prefix | None:
    """The longest that the body begins with, the shortest given first; it is hashed once for all.

    `found` is a shorter one that it begins with.
    """
    hashing, at = (sha256(), 0) if found is None else (found.hashed.copy(), found.size)
    view = memoryview(raw)
    for each in prefixes:
        hashing.update(view[at : each.size])
        at = each.size
        found = each if hashing.digest() == each.hashed.digest() else found
    return found


def _read_after(prefix: Prefix, raw: bytes) -> Body | None:
    """The body that begins with it; None where it says more than the one that it was taken from.

    What is left is read with one item in place of all that is known. No other item is like it, so
    one cannot be taken for it.
    """
    stand_in = _stand_in()
    try:
        rest = bodies_read(prefix.form, _without(raw, prefix.places, stand_in))
    except InputError:
        return None
    if list(rest.messages[:1]) != [stand_in]:
        return None  # another field of the same name comes after, and is the one that counts
    return replace(rest, raw=raw, messages=Cut(raw, prefix.places, rest.messages[1:]))


def _begun(body: Body) -> Prefix | None:
    """The beginning that the body is to be known by; None where it has none."""
    old = body.messages[:-_NEWEST]
    if not old:
        return None
    places = array("Q")
    if not _place(places, body.raw, body.raw.find(old[0]), old):
        return None
    return _prefix(body, places, sha256(), 0) if _is_cut_right(body, places) else None


def _lengthened(prefix: Prefix, body: Body) -> Prefix:
    """The beginning that a later body is to be known by."""
    new = body.messages[prefix.count : -_NEWEST]
    places = prefix.places[:]
    if not new or not _place(places, body.raw, _next(body.raw, prefix.size), new):
        return prefix
    longer = _prefix(body, places, prefix.hashed.copy(), prefix.size)
    return replace(longer, facts=dict(prefix.facts), ids=prefix.ids[:])


def _prefix(body: Body, places: array[int], hashing: _Hash, hashed: int) -> Prefix:
    """The body up to the last of the places; so many bytes are in the hash already."""
    raw = body.raw[: places[-1]]
    hashing.update(memoryview(raw)[hashed:])
    return Prefix(body.form, raw, raw[-_LAST:], hashing, places)


def _place(places: array[int], raw: bytes, at: int, messages: Sequence[bytes]) -> bool:
    """Add where the messages are, the first of them there; False if they are not."""
    for message in messages:
        if at < 0 or not raw.startswith(message, at):
            return False
        places.extend((at, at + len(message)))
        at = _next(raw, at + len(message))
    return True


def _next(raw: bytes, end: int) -> int:
    """Where the item begins after one that ends there; -1 if it is the last."""
    comma = _COMMA.match(raw, end)
    return comma.end() if comma is not None else -1


def _is_cut_right(body: Body, places: array[int]) -> bool:
    """Whether these are the messages' own places, and not those of the same bytes elsewhere."""
    stand_in = _stand_in()
    try:
        rest = bodies_read(body.form, _without(body.raw, places, stand_in))
    except InputError:
        return False
    after = body.messages[len(places) // 2 :]
    return list(rest.messages) == [stand_in, *after] and rest.fields == body.fields


def _without(raw: bytes, places: array[int], stand_in: bytes) -> bytes:
    """The body with one item in place of the messages that are there."""
    return raw[: places[0]] + stand_in + raw[places[-1] :]


def _stand_in() -> bytes:
    return f'"{token_hex(16)}"'.encode()
