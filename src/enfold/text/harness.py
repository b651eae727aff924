"""Harness text: text that a client adds to the words that a person typed.

Coding agents send reminders, skill bodies, command output, IDE context and instruction files with
the user's role. `spans` tells them from the person's words. Blocks in tags are recognised by their
names and, where a name is new, by their shape: a block of its own lines in tags that no markup
language has. Passages without tags are recognised by how they begin. `harness.toml` has both lists.
Pasted logs and stack traces count as harness text too.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Literal, NamedTuple, TypeAlias

from enfold.messages import Attachment, Message, Part, Text
from enfold.text import TextMemo

SpanKind: TypeAlias = Literal["person", "harness", "context"]


class Span(NamedTuple):
    """A part of a text and its author."""

    start: int
    end: int
    kind: SpanKind
    """`person`: typed. `harness`: added by a client. `context`: a coding agent's instruction
    files, environment and permissions."""


_TAG = re.compile(r"<([A-Za-z][\w.:-]*)((?:\s[^<>]{0,400})?)>")
FENCED_BLOCK = re.compile(
    r"^[ \t]*(```+|~~~+)[^\n]*\n.*?(?:^[ \t]*\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL
)
"""A fenced block: code, a file or output that a person quotes."""
_INSTRUCTION_FILES = re.compile(
    r"# claudeMd\b|^Contents of [^\n]*\.(?:md|mdc|txt)\b|^# [\w.-]+\.md\b"
    r"|(?:AGENTS|CLAUDE|GEMINI|copilot-instructions)\.md \(|\.cursorrules\b",
    re.MULTILINE,
)
_QUOTED_MESSAGE = re.compile(
    r"The user sent (?:the following|a new) message[^\n]*:\s*\n(?P<person>.+?)"
    r"(?=\n\s*\n(?:Please address|IMPORTANT)|\Z)",
    re.DOTALL,
)
"""A client passes on in a reminder what a person typed while the model worked."""
_LINE_TAG = re.compile(r"^[ \t]*<([A-Za-z][\w-]*)(?:\s[^<>]{0,400})?>", re.MULTILINE)
_SERVER_ENTRIES = 8_192
"""Entries of a generation of the memo of spans in a server."""
_MIN_TEMPLATE_LENGTH = 1500
_MIN_TEMPLATE_TAGS = 3
"""The body of a command has at least this many kinds of blocks."""

_OUTPUT_LINE = re.compile(
    r"""^(?:
      \s+at\s\S.*[:(]                                       # stack frames
    | Traceback\s\(most | \s+File\s".+",\sline\s\d
    | \s*[\w./\\@-]+:\d+(?::\d+)?:?\s                       # compilers: path:line:column
    | \[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d | \[?\d\d:\d\d:\d\d   # logs
    | diff\s--git\s | index\s[0-9a-f]{7} | @@\s-\d | ---\sa/ | \+\+\+\sb/
    | \s*[\u23fa\u23bf\u25cf\u2502\u256d\u2570\u251c\u2514\u250c\u2500]   # drawn frames and trees
    | \s*[+-]?\s?\d+\s*[|\u2502\u2192\t]                    # numbered lines of a file
    | [\u279c\u276f]\s | [\w.-]+@[\w.-]+[: ][^\n]*[$#%]\s     # shell prompts
    | npm\s(?:ERR!|warn|error) | \[?(?:ERROR|WARN(?:ING)?|INFO|DEBUG)[\s:\]\[]
    | error(?:\[E\d+\]|\sTS\d+)?:\s | (?:fatal|remote|warning):\s | E\s{3,}\S | Error:\s\S
    | (?:PASS|FAIL|FAILED|PASSED)\s\S | ---\s(?:PASS|FAIL) | ok\s+\S+\s+[\d.]+s
    | \s(?:create|delete)\smode\s\d{6} | \s?\d+\sfiles?\schanged
    )""",
    re.VERBOSE,
)
_MIN_OUTPUT_LINES = 4
_MAX_OUTPUT_GAP = 3
"""Lines inside pasted output that do not look like output."""


@dataclass(frozen=True, slots=True)
class _Passage:
    kind: SpanKind
    pattern: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class _Tables:
    names: dict[str, SpanKind]
    """Kinds of the text inside tags, by the tag's name in lower case."""
    bodies: frozenset[str]
    """Names of blocks in the bodies of commands and skills."""
    markup: frozenset[str]
    harness_words: frozenset[str]
    context_words: frozenset[str]
    passages: tuple[tuple[str, _Passage], ...]
    """With a text that must occur before the passage is looked for."""


@cache
def _tables() -> _Tables:
    path = files(__package__).joinpath("harness.toml")
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    tags, words = table["tags"], table["words"]
    kinds: dict[str, SpanKind] = {
        "harness": "harness",
        "bodies": "harness",
        "context": "context",
        "person": "person",
    }
    flags = re.MULTILINE | re.DOTALL
    return _Tables(
        {name: kind for group, kind in kinds.items() for name in tags[group]},
        frozenset(tags["bodies"]),
        frozenset(tags["markup"]),
        frozenset(words["harness"]),
        frozenset(words["context"]),
        tuple(
            (each["anchor"], _Passage(each["kind"], re.compile(each["pattern"], flags)))
            for each in table["passages"]
        ),
    )


def person_text(message: Message) -> str:
    """Return the words that a person typed in a user message, else an empty text."""
    if message.role != "user":
        return ""
    return "\n\n".join(filter(None, (_person(part.text) for part in _texts(message))))


def person_only(message: Message) -> Message | None:
    """Return the message with the person's words and files only, None if there are none.

    The same object is returned if the message has no harness text.
    """
    if message.role != "user":
        return None
    kept: list[Part] = []
    for part in message.parts:
        if isinstance(part, Attachment):
            kept.append(part)
        elif isinstance(part, Text) and (words := _person(part.text)):
            kept.append(part if words == part.text else replace(part, text=words))
    if not kept:
        return None
    is_same = len(kept) == len(message.parts) and all(map(_is, kept, message.parts))
    return message if is_same else replace(message, parts=tuple(kept))


def is_context(message: Message) -> bool:
    """Return True if the message is or holds a coding agent's context block."""
    return message.role in {"user", "system"} and any(
        span.kind == "context" for part in _texts(message) for span in spans(part.text)
    )


def _is(one: Part, other: Part) -> bool:
    return one is other


def _texts(message: Message) -> Iterator[Text]:
    return (part for part in message.parts if isinstance(part, Text))


def _person(text: str) -> str:
    """Return the person's words of a text; the text itself if all of it is theirs."""
    if is_typed(text):
        return text
    found = spans(text)
    words = (text[start:end].strip() for start, end, kind in found if kind == "person")
    return "\n\n".join(filter(None, words))


def is_typed(text: str) -> bool:
    """Return True if a person typed all of a text, and it is not empty."""
    found = _find_spans(text)
    if found:
        return len(found) == 1 and found[0].kind == "person"
    return text != ""


def spans(text: str) -> tuple[Span, ...]:
    """Return the text cut into consecutive spans by author."""
    if not text:
        return ()
    return _find_spans(text) or (Span(0, len(text), "person"),)


def _read_spans(text: str) -> tuple[Span, ...]:
    """Return the spans of a text; none if all of it is a person's."""
    marks = [*_passages(text)]
    if "<" in text and ">" in text:
        marks += _tag_blocks(text, 0, len(text))
        if len(text) >= _MIN_TEMPLATE_LENGTH and _is_template(text):
            return (Span(0, len(text), "harness"),)
    if text.count("\n") >= _MIN_OUTPUT_LINES - 1:
        marks += _pasted_output(text)
    return tuple(_joined(text, marks)) if marks else ()


# A message is asked about by several steps of a compression, and by the next compression again.
_find_spans = TextMemo(_read_spans, lambda found: 1 + len(found) // 2)


def use_small_memo() -> None:
    """Remember the spans of fewer texts from now on, to save memory in a server."""
    _find_spans.limit(_SERVER_ENTRIES)


def _passages(text: str) -> Iterator[Span]:
    for passage in [each for anchor, each in _tables().passages if anchor in text]:
        for match in passage.pattern.finditer(text):
            typed = match.re.groupindex.get("person")
            if typed is None:
                yield Span(match.start(), match.end(), passage.kind)
                continue
            yield Span(match.start(), match.start(typed), passage.kind)
            yield Span(match.end(typed), match.end(), passage.kind)


def _tag_blocks(text: str, start: int, end: int) -> Iterator[Span]:
    """Yield the blocks in tags of programs between two places of a text."""
    fences = (
        [fence.span() for fence in FENCED_BLOCK.finditer(text, start, end)] if "```" in text else []
    )
    at = start
    while (tag := _TAG.search(text, at, end)) is not None:
        at = tag.end()
        name = tag[1].lower()
        kind = _kind_of_tag(name)
        if kind is None or any(low <= tag.start() < high for low, high in fences):
            continue
        close = _closing_tag(text, tag, end)
        if close is None or not _is_block(text, tag, close, start):
            continue
        if name not in _tables().names and not _is_prose(text[tag.end() : close.start()], name):
            continue
        if kind == "person":
            yield Span(tag.start(), tag.end(), "harness")
            yield from _tag_blocks(text, tag.end(), close.start())
            yield Span(close.start(), close.end(), "harness")
        else:
            yield from _block(text, tag, close, kind)
        at = start = close.end()


def _kind_of_tag(name: str) -> SpanKind | None:
    """Return the kind of a block by its tag's name, None if a person may have written the tag."""
    tables = _tables()
    if (kind := tables.names.get(name)) is not None:
        return kind
    if name in tables.markup or ":" in name or "." in name:
        return None
    words = re.split(r"[-_]", name)
    if len(words) == 1:
        return None
    return "context" if tables.context_words.intersection(words) else "harness"


def _closing_tag(text: str, tag: re.Match[str], end: int) -> re.Match[str] | None:
    """Return the tag that closes the block; blocks of the same name may be nested in it."""
    depth = 1
    pair = re.compile(rf"<(/?){re.escape(tag[1])}(?:\s[^<>]{{0,400}})?>")
    for other in pair.finditer(text, tag.end(), end):
        depth += -1 if other[1] else 1
        if not depth:
            return other
    return None


def _is_block(text: str, tag: re.Match[str], close: re.Match[str], start: int) -> bool:
    """Return True if the block stands on lines of its own or, of a program's tag, has several."""
    line = text.rfind("\n", start, tag.start()) + 1 or start
    opens_line = not text[line : tag.start()].strip()
    if not opens_line:
        # Some clients append a reminder to the person's last line.
        return tag[1].lower() in _tables().names and "\n" in text[tag.end() : close.start()]
    if tag[1].lower() in _tables().names:
        return True
    stop = text.find("\n", close.end())
    rest = text[close.end() : stop if stop >= 0 else len(text)].strip()
    return not rest or rest.startswith("<")


def _is_prose(inside: str, name: str) -> bool:
    """Return True if the inside of a block with an unlisted name is not pasted markup."""
    tables = _tables()
    words = re.split(r"[-_]", name)
    if tables.harness_words.intersection(words) or tables.context_words.intersection(words):
        return True
    lines = [line for line in inside.splitlines() if line.strip()]
    return sum(line.lstrip().startswith("<") for line in lines) * 2 < len(lines)


def _block(text: str, tag: re.Match[str], close: re.Match[str], kind: SpanKind) -> Iterator[Span]:
    inside = text[tag.end() : close.start()]
    if kind == "harness" and _INSTRUCTION_FILES.search(inside) and "reminder" in tag[1].lower():
        kind = "context"
    typed = _QUOTED_MESSAGE.search(inside) if "The user sent" in inside else None
    if typed is None:
        yield Span(tag.start(), close.end(), kind)
        return
    start, end = typed.span("person")
    yield Span(tag.start(), tag.end() + start, kind)
    yield Span(tag.end() + end, close.end(), kind)


def _is_template(text: str) -> bool:
    """Return True if the text is the body of a command: instructions in several kinds of blocks."""
    tables = _tables()
    names: set[str] = set()
    for tag in _LINE_TAG.finditer(text):
        name = tag[1].lower()
        kind = tables.names.get(name)
        if kind in {"person", "context"} and name not in tables.bodies:
            return False
        if name in tables.markup or (kind and name not in tables.bodies) or name in names:
            continue
        if f"</{tag[1]}>" in text:
            names.add(name)
    return len(names) >= _MIN_TEMPLATE_TAGS and any("_" in name or "-" in name for name in names)


def _pasted_output(text: str) -> Iterator[Span]:
    """Yield runs of lines that look like the output of programs."""
    at = start = end = 0
    hits = gap = 0
    for line in text.splitlines(keepends=True):
        if _OUTPUT_LINE.match(line):
            if not hits:
                start = at
            hits, gap, end = hits + 1, 0, at + len(line)
        elif hits:
            gap += 1
            if gap > _MAX_OUTPUT_GAP or not line.strip():
                if hits >= _MIN_OUTPUT_LINES:
                    yield Span(start, end, "harness")
                hits = gap = 0
        at += len(line)
    if hits >= _MIN_OUTPUT_LINES:
        yield Span(start, end, "harness")


def _joined(text: str, marks: list[Span]) -> Iterator[Span]:
    """Yield the spans of the whole text: the marks, and the person's words between them.

    White space between two marks belongs to the first; marks of one kind in a row become one span.
    """
    held: Span | None = None
    at = 0
    in_order = sorted(marks, key=lambda mark: (mark.start, -mark.end))
    for mark in (*in_order, Span(len(text), len(text), "person")):
        start, end = max(mark.start, at), mark.end
        if end <= at and end < len(text):
            continue
        if text[at:start].strip():
            if held:
                yield held
            yield Span(at, start, "person")
            held = None
        elif held:
            held = held._replace(end=start)
        else:
            start = at
        if start == end:
            break
        if held and held.kind == mark.kind:
            held = held._replace(end=end)
        else:
            if held:
                yield held
            held = Span(start, end, mark.kind)
        at = end
    if held:
        yield held
