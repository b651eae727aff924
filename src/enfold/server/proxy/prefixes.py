"""Prefixes: the beginning of a long body that came before is not read again.

Clients send their whole history on every turn. What a body has in common with an earlier one is
found by comparing the two, or by a digest where the earlier one is not held any more; where its
messages begin and end, and what is known of them, is remembered. Only what is new is decoded.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from operator import attrgetter
from secrets import token_hex
from typing import TYPE_CHECKING, overload

from enfold.errors import InputError
from enfold.server.proxy import bodies
from enfold.server.proxy.bodies import Body, Form
from enfold.server.proxy.facts import Facts

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

    form: Form
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

    def may_begin(self, form: Form, raw: bytes) -> bool:
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

    def read(self, form: Form, raw: bytes) -> tuple[Body, Prefix | None]:
        """The body, cut into messages, and what is known of how it begins."""
        if len(raw) < self._long:
            return bodies.read(form, raw), None
        known = self._longest(form, raw)
        body = _read_after(known, raw) if known is not None else None
        if body is None:
            known, body = None, bodies.read(form, raw)
        prefix = _lengthened(known, body) if known is not None else _begun(body)
        if prefix is not None:
            self._remember(prefix, instead_of=known)
        return body, prefix

    def _longest(self, form: Form, raw: bytes) -> Prefix | None:
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
        rest = bodies.read(prefix.form, _without(raw, prefix.places, stand_in))
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
        rest = bodies.read(body.form, _without(body.raw, places, stand_in))
    except InputError:
        return False
    after = body.messages[len(places) // 2 :]
    return list(rest.messages) == [stand_in, *after] and rest.fields == body.fields


def _without(raw: bytes, places: array[int], stand_in: bytes) -> bytes:
    """The body with one item in place of the messages that are there."""
    return raw[: places[0]] + stand_in + raw[places[-1] :]


def _stand_in() -> bytes:
    return f'"{token_hex(16)}"'.encode()
