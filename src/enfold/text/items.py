"""The exact items of texts and messages, without keys, tokens and passwords."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from enfold.errors import InputError
from enfold.jsontext import loads
from enfold.messages import Attachment, Data, Message, Part, Text, ToolCall, ToolResult
from enfold.text.grammar import (
    ITEM_CLASSES,
    ItemClass,
    command_lines,
    items_in_token,
    lines_with,
    names_in,
    number_parts,
    phrases_in,
    tokens_of,
)

ItemsByClass: TypeAlias = dict[ItemClass, dict[str, None]]
"""The distinct items of each class, in the order of their first occurrence."""

_COLOUR = re.compile(r"\x1b\[[0-9;]{0,20}[A-Za-z]")
"""Terminal colours. A bare escape takes their place, because that ends a token."""
_SECRET = re.compile(
    r"(?<![A-Za-z0-9])(?:(?:sk|pk|rk)[-_][\w-]{12,}|gh[pousr]_\w{16,}|github_pat_\w+"
    r"|glpat-[\w-]+|xox[abeprs]-[\w-]+|AKIA[0-9A-Z]{12,}|AIza[\w-]{20,}|eyJ[\w-]{8,}"
    r"|hf_\w{16,}|npm_\w{16,}|ya29\.\S+|SG\.\S{16,})"
)
"""The known prefixes of keys."""
_ASSIGNMENT = r"[\"'\\]{0,3}[ \t]?[:=][ \t]?[\"'\\]{0,3}(?:Bearer |Basic )?"
_ASSIGNED_SECRET = re.compile(
    r"(?:[Ss]ecret|SECRET|[Pp]assw(?:or)?d|PASSW(?:OR)?D|[Cc]redentials?|[Aa]uthorization)"
    rf"{_ASSIGNMENT}([^\s\"',;)}}\]&]{{6,200}}+)"
    r"|Bearer ([^\s\"',;)}\]&]{12,200}+)|(?:-u|--user)[ =][\"']?[^\s:\"']{1,60}+:([^\s\"']{4,200}+)"
    rf"|(?:[Kk]ey|KEY|[Tt]oken|TOKEN|[Ss]ig(?:nature)?){_ASSIGNMENT}"
    r"((?=[^\s\d]{0,200}\d)(?=[^\sA-Za-z]{0,200}[A-Za-z])[^\s\"',;)}\]&/.]{12,200}+)"
)
"""A value with a name such as `key`, `token` or `password`."""
_SECRET_WORDS = (
    *("ecret", "ECRET", "assw", "ASSW", "redential", "uthorization", "earer "),
    *("key", "Key", "KEY", "oken", "TOKEN", "ignature", "sig", "Sig", "-u", "--user"),
)
_VALUE_BORDER = re.compile(r"[\s\"'`=:&?/@,;]+")

_COMMAND_ARGUMENTS = frozenset({"cmd", "command", "commands", "script"})
_JSON_EDGES = frozenset({("{", "}"), ("[", "]")})


def extract(text: str) -> ItemsByClass:
    """Return the distinct exact items of a text."""
    found: ItemsByClass = {name: {} for name in ITEM_CLASSES}
    plain = _COLOUR.sub("\x1b", text) if "\x1b" in text else text
    lines = "\n".join(dict.fromkeys(plain.split("\n")))
    tokens = dict.fromkeys(tokens_of(lines))
    for token in tokens:
        for kind, item in items_in_token(token):
            found[kind][item] = None
    for kind, item in phrases_in(lines):
        found[kind][item] = None
        if kind == "number":
            for part in number_parts(item):  # `1.5` in `1.5 GB` is not a second item
                found[kind].pop(part, None)
    found["name"].update(dict.fromkeys(names_in(lines, tokens.keys())))
    return _without_secrets(found, lines)


def _without_secrets(found: ItemsByClass, lines: str) -> ItemsByClass:
    """Return the items that are neither a secret nor a part of one, and contain none."""
    assigned = _ASSIGNED_SECRET.findall(lines_with(lines, *_SECRET_WORDS))
    secrets = frozenset(value for values in assigned for value in values if value)
    all_secrets = "\n".join(sorted(secrets))

    def is_secret(item: str) -> bool:
        if _SECRET.search(item):
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
            yield from _texts(part)


def _texts(part: Part) -> Iterator[str]:
    match part:
        case Text(text):
            yield from _strings(_parsed(text))
        case ToolCall():
            yield from _strings(_arguments(part))
        case ToolResult(parts=inner):
            for each in inner:
                yield from _texts(each)
        case Data(value):
            yield from _strings(value)
        case Attachment(name=name, url=url):
            yield from filter(None, (name, url))


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
    bare = text.strip()
    if (bare[:1], bare[-1:]) not in _JSON_EDGES:
        return text
    try:
        return loads(bare)
    except InputError:
        return text


def _strings(value: Any) -> Iterator[str]:
    """Yield every string in a JSON value; strings that are JSON themselves are read as JSON."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            inner = _parsed(each) if each is not value else each
            if isinstance(inner, str):
                yield inner
            else:
                waiting.append(inner)
        elif isinstance(each, Mapping):
            waiting.extend(reversed(list(each.values())))
        elif isinstance(each, list | tuple):
            waiting.extend(reversed(each))
