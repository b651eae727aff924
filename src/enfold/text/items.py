"""The exact items of texts and messages, without keys, tokens and passwords."""

from __future__ import annotations

import re
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from types import NoneType
from typing import Any, TypeAlias

from enfold.errors import InputError
from enfold.jsontext import loads
from enfold.messages import Attachment, Data, Message, Part, Text, ToolCall, ToolResult
from enfold.text import TextMemo
from enfold.text.grammar import (
    ITEM_CLASSES,
    PHRASE_FINDERS,
    FoundItem,
    ItemClass,
    TokensOf,
    command_lines,
    handles_in,
    is_written_small,
    items_in_tokens,
    names_in,
    near_digits,
    number_parts,
    tokens_of,
)
from enfold.text.secrets import KEY, assigned_values, private_keys

ItemsByClass: TypeAlias = dict[ItemClass, dict[str, None]]
"""The distinct items of each class, in the order of their first occurrence."""

_COLOUR = re.compile(r"\x1b\[[0-9;]{0,20}[A-Za-z]")
"""Terminal colours. A bare escape takes their place, because that ends a token."""
_WITH_DIGITS = frozenset({"number", "date"})
"""Classes whose phrases have a digit."""
_VALUE_BORDER = re.compile(r"[\s\"'`=:&?/@,;]+")

_COMMAND_ARGUMENTS = frozenset({"cmd", "command", "commands", "script"})
_JSON_EDGES = frozenset({("{", "}"), ("[", "]")})


@dataclass(frozen=True, slots=True)
class _TextItems:
    """The items that the grammar finds in one text, before texts are compared."""

    tokens: tuple[FoundItem, ...]
    phrases: tuple[tuple[FoundItem, ...], ...]
    """By the kind of phrase, in the order of `PHRASE_FINDERS`."""
    names: tuple[str, ...]
    """Names, of which those are none whose words are also written small."""
    handles: tuple[str, ...]
    secrets: tuple[str, ...]
    private_keys: tuple[str, ...]


def extract(text: str) -> ItemsByClass:
    """Return the distinct exact items of a text."""
    return _joined([_read(block) for block in _blocks((text,))], (text,))


def extract_all(texts: Sequence[str]) -> ItemsByClass:
    """Return the distinct exact items of texts, as of one text with all of them.

    Texts that are asked for again in the same order are read once.
    """
    return _joined([_read_once(block) for block in _blocks(texts)], texts)


def _blocks(texts: Iterable[str]) -> Iterator[str]:
    """Yield the distinct lines of each text; many short texts together, to read them at once.

    No item goes beyond a line.
    """
    held: list[str] = []
    length = 0
    for text in texts:
        plain = _COLOUR.sub("\x1b", text) if "\x1b" in text else text
        held.append("\n".join(dict.fromkeys(plain.split("\n"))) if "\n" in plain else plain)
        length += len(plain)
        if length > _BLOCK:
            yield "\n".join(held)
            held, length = [], 0
    if held:
        yield "\n".join(held)


_BLOCK = 1 << 16
"""Characters that are read at once."""


def _read(lines: str) -> _TextItems:
    numbers = near_digits(lines)
    return _TextItems(
        tuple(items_in_tokens(lines)),
        tuple(
            tuple([(kind, item) for item in find(numbers if kind in _WITH_DIGITS else lines)])
            for kind, find in PHRASE_FINDERS
        ),
        tuple(names_in(lines)),
        tuple(handles_in(lines)),
        tuple(assigned_values(lines)),
        private_keys(lines),
    )


_read_once = TextMemo(_read, lambda found: 1 + len(found.tokens) + len(found.names))


def _joined(read: Sequence[_TextItems], texts: Sequence[str]) -> ItemsByClass:
    """Return the items of several texts."""
    found: ItemsByClass = {name: {} for name in ITEM_CLASSES}
    for each in read:
        for kind, item in each.tokens:
            found[kind][item] = None
    for place in range(len(PHRASE_FINDERS)):
        for each in read:
            for kind, item in each.phrases[place]:
                found[kind][item] = None
                if kind == "number":
                    for part in number_parts(item):  # `1.5` in `1.5 GB` is not a second item
                        found[kind].pop(part, None)
    names = dict.fromkeys(name for each in read for name in each.names)
    found["name"].update(dict.fromkeys(without_headings(names, texts)))
    found["name"].update(dict.fromkeys(handle for each in read for handle in each.handles))
    keys = "\n".join(key for each in read for key in each.private_keys)
    return _without_secrets(found, {secret for each in read for secret in each.secrets}, keys)


_FEW_NAMES = 20
"""Names whose words are searched in a text, which takes as long as reading all its tokens."""


def without_headings(names: Collection[str], texts: Sequence[str]) -> list[str]:
    """Return the names of which no word is also written small in the texts."""
    if not names:
        return []
    plain = [_COLOUR.sub("\x1b", text) if "\x1b" in text else text for text in texts]
    words: Container[str] = TokensOf(plain)
    if len(names) > _FEW_NAMES:
        words = {token for text in plain for token in tokens_of(text)}
    return [name for name in names if not is_written_small(name, words)]


_LONG_PART = 8
"""Characters from which an item that occurs in a private key is a part of it, not a coincidence."""


def _without_secrets(
    found: ItemsByClass, secrets: AbstractSet[str], private_keys: str
) -> ItemsByClass:
    """Return the items that are neither a secret nor a part of one, and contain none."""
    all_secrets = "\n".join(sorted(secrets))

    def is_secret(item: str) -> bool:
        if KEY.search(item) or (len(item) >= _LONG_PART and item in private_keys):
            return True
        if not secrets:
            return False
        return item in all_secrets or not secrets.isdisjoint(_VALUE_BORDER.split(item))

    return {
        kind: {item: None for item in items if not is_secret(item)} for kind, items in found.items()
    }


def items_of(messages: Sequence[Message]) -> ItemsByClass:
    """Return the distinct exact items of messages."""
    commands = command_lines(_commands_called(messages))
    return extract("\n".join((*texts(messages), *(f"$ {line}" for line in commands))))


def texts(messages: Iterable[Message]) -> Iterator[str]:
    """Yield all texts of messages: words, the values of arguments and results, file names."""
    for message in messages:
        for part in message.parts:
            if type(part) is Text and part.text[:1].isalnum():  # nearly all, and no JSON
                yield part.text
            else:
                yield from part_texts(part)


def part_texts(part: Part) -> Sequence[str]:
    """Return all texts of a part; a text that is no JSON itself."""
    match part:
        case Text(text) | ToolCall(arguments=str(text)):
            return _texts_of(text)
        case ToolResult(parts=inner):
            return [text for each in inner for text in part_texts(each)]
        case ToolCall(arguments=value) | Data(value):
            return _strings(value)
        case Attachment(name=name, url=url):
            return tuple(filter(None, (name, url)))
    return ()


def _texts_of(text: str) -> Sequence[str]:
    """Return the strings in a JSON object or array, or the text itself if it is neither."""
    if text[:1].isalnum() or not _has_json_edges(text):
        return (text,)
    found = _json_texts(text)
    return (text,) if found is _NO_JSON else found


_NO_JSON = ("",)
_CHARACTERS_PER_ENTRY = 64


def _read_json(text: str) -> tuple[str, ...]:
    value = _parsed(text)
    return _NO_JSON if value is text else tuple(_strings(value))


# Several steps of a compression read the same calls and results.
_json_texts = TextMemo(
    _read_json, lambda found: 1 + len(found) + sum(map(len, found)) // _CHARACTERS_PER_ENTRY
)


def _commands_called(messages: Iterable[Message]) -> Iterator[str]:
    """Yield the commands in the arguments of tool calls."""
    for message in messages:
        for part in message.parts:
            arguments = _arguments(part) if isinstance(part, ToolCall) else None
            if isinstance(arguments, Mapping):
                for name in _COMMAND_ARGUMENTS.intersection(arguments):
                    yield from _strings(arguments[name])


def _arguments(call: ToolCall) -> Any:
    return _parsed(call.arguments) if isinstance(call.arguments, str) else call.arguments


def _parsed(text: str) -> Any:
    """Return the value of a JSON object or array, or the text itself if it is neither."""
    if text[:1].isalnum() or not _has_json_edges(text):  # nearly all texts begin with a word
        return text
    try:
        return loads(text.strip())
    except InputError:
        return text


def _has_json_edges(text: str) -> bool:
    if text[:1].isspace() or text[-1:].isspace():  # else stripping it would make a copy
        text = text.strip()
    return (text[:1], text[-1:]) in _JSON_EDGES


_WITHOUT_TEXT = frozenset({int, float, bool, NoneType})


def _strings(value: Any) -> list[str]:
    """Return every string in a JSON value; strings that are JSON themselves are read as JSON."""
    if isinstance(value, str):
        return [value]
    found: list[str] = []
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            inner = _parsed(each)
            if inner is each:
                found.append(each)
            else:
                waiting.append(inner)
        elif type(each) in _WITHOUT_TEXT:
            continue
        elif isinstance(each, Mapping):
            waiting.extend(reversed(list(each.values())))
        elif isinstance(each, list | tuple):
            waiting.extend(reversed(each))
    return found
