"""Units: the pieces of a conversation from which a summary is assembled.

A unit is a sentence, a clause of a long sentence, a list item, some lines of code, a digest of a
tool call, or a line of the previous summary. Its text is quoted, never reworded. This module
divides messages into drafts, reads drafts into units, and finds units that a later correction
replaces. A tool call is one line: the tool, its target and the outcome, which is a line that
names an error, a line with the result of a run, all of a short output, or the plain values of a
JSON object.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, reduce
from itertools import chain, pairwise
from operator import or_, truediv
from typing import Any, NamedTuple

from enfold.errors import InputError
from enfold.jsontext import dump_text, loads
from enfold.messages import Attachment, Data, Message, Role, Text, ToolCall, ToolResult
from enfold.summaries.local.lexicon import (
    NUMBERS,
    PLACES,
    TECHNICAL,
    ExactItem,
    Lexicon,
    Token,
    TokenKind,
)
from enfold.summaries.request import day_of
from enfold.text.grammar import phrases_in
from enfold.text.harness import FENCED_BLOCK, spans
from enfold.text.rules import find_rules
from enfold.text.sentences import (
    WORD_CUES,
    Cue,
    TextForm,
    TextPiece,
    in_runs,
    phrase_cues,
    pieces,
)
from enfold.text.words import PAUSES, QUESTION_MARKS, QUOTES

TARGET_LENGTH = 120
OUTCOME_LENGTH = 180
VALUE_LENGTH = 60
"""Characters of a call, a result and a value."""
PENDING = "no result yet"
MAX_TARGETS = 6
"""Targets in one line."""
_LONG_FOLDER = 12
"""Characters. A shared folder of at least this length is written once."""
_SEARCHED = 4_000
"""Characters at each end of a result that are searched for the outcome."""
_MAX_LINE_LENGTH = 300
_MAX_JSON_LENGTH = 20_000
_MAX_DEPTH = 2
_MAX_NESTED = 3

_MAIN_ARGUMENTS = (
    *("file_path", "path", "filename", "file", "notebook_path", "command", "cmd", "script"),
    *("query", "pattern", "url", "expression", "sql", "subject", "title", "name", "id"),
)
"""Arguments that identify a call on their own, the best first."""
CHANGES = re.compile(
    r"write|edit|create|update|delete|remove|insert|apply|patch|commit|push|send|book|cancel|move|"
    r"rename|replace|migrate|deploy|install|submit|post|transfer|exchange|return|modify|add|set",
    re.IGNORECASE,
)
"""Names of tools that change something."""
_FAILURE = re.compile(
    r"\b(?:[A-Z]\w*(?:Error|Exception)\b|error(?:\[\w+\])?:|Error\b|ERROR\b|fatal:|"
    r"FAIL(?:ED|URE)?\b|Traceback|panic:|[Ee]xit (?:code|status):? [1-9]|command not found|"
    r"No such file|[Nn]ot found|[Pp]ermission denied|denied|refused|cannot |can't |could not |"
    r"unknown (?:flag|option|command))|错误|失败"
)
_FAILURE_START = re.compile(
    r"^\s*(?:Error\b|error:|fatal:|Traceback|panic:|Exit code [1-9]|[A-Z]\w*(?:Error|Exception):|"
    r"<tool_use_error>|bash: )"
)
_FAILURE_END = re.compile(
    r"\berror(?:\[\w+\])?:|\bError:|\*\*\* .*Error|[a-z](?:Error|Exception):|\bFAILED\b|\bfatal:|"
    r"\bpanic:|[Ee]xit (?:code|status):? [1-9]"
)
"""A failure in the last lines of an output that the tool did not mark as an error."""
_LAST_LINES = 6
_FAILED_RUN = re.compile(r"\b[1-9][\d,.]*\s+(?:failed|errors?)\b(?![./\w-])|^FAIL\b")
"""The last line of a test run that the tool did not mark as an error."""
_MARKER = re.compile(r"⟨ [^⟨⟩\n]* ⟩")
"""Stands for content that was left out; its target may leave the view."""
_RUN_RESULT = re.compile(
    r"\b\d[\d,.]*\s+(?:passed|failed|errors?|warnings?|tests?|files?|lines?|matches|insertions?|"
    r"rows?|results?|items?|vulnerabilities)\b(?![./\w-])|^(?:ok|PASS|FAIL|BUILD)\b|"
    r"\b[Ss]uccess(?:fully)?\b"
)
_NUMBERED_LINE = re.compile(r"^\s*\d+[→|:\t]")


class ToolDigest(NamedTuple):
    """A tool call and its result in one line."""

    message: int
    """The index of the message with the result, or of the last message if there is none."""
    tool: str
    """The name. Empty if the call is unknown."""
    target: str
    outcome: str
    """Empty if the result shows only that the call succeeded."""
    failed: bool

    @property
    def cues(self) -> int:
        """The cue of a call that failed or changed something."""
        if self.failed:
            return Cue.FAULT
        return Cue.OUTCOME if CHANGES.search(self.tool) else 0

    @property
    def text(self) -> str:
        """The line; empty if nothing is known about the call."""
        outcome = self.outcome
        if self.failed:
            outcome = f"failed: {outcome}" if outcome else "failed"
        if not (self.target or outcome or self.tool):
            return ""
        parts = (self.tool or "tool", self.target, outcome and f"→ {outcome}")
        return " ".join(filter(None, parts))


def digest_result(call: ToolCall | None, result: ToolResult, message: int) -> ToolDigest:
    """Return the digest of a result and, if it is known, its call."""
    tool = call.name if call else result.name
    target = describe_arguments(call.arguments) if call else ""
    text = text_of_result(result)
    failed = result.is_error or _FAILURE_START.match(text[:_MAX_LINE_LENGTH]) is not None
    outcome = _fault_line(text) if failed else _outcome(text)
    has_failed = failed or _FAILED_RUN.search(outcome) is not None
    return ToolDigest(message, tool, target, outcome, has_failed)


def describe_arguments(arguments: str | Mapping[str, Any]) -> str:
    """Return the main argument of a call, or all short arguments if none identifies it."""
    values = _object_of(arguments) if isinstance(arguments, str) else arguments
    if values is None:
        return shorten(str(arguments), TARGET_LENGTH)
    for key in _MAIN_ARGUMENTS:
        value = values.get(key)
        if isinstance(value, str) and value.strip():
            return shorten(value, TARGET_LENGTH)
    return shorten(", ".join(_plain_values(values)), TARGET_LENGTH)


def arguments_of(arguments: str | Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments of a call by name; none if they are not an object."""
    if isinstance(arguments, str):
        return _object_of(arguments) or {}
    return arguments


def pending(call: ToolCall, message: int) -> ToolDigest:
    """Return the digest of a call without a result."""
    return ToolDigest(message, call.name, describe_arguments(call.arguments), PENDING, failed=False)


def join_digests(digests: Iterable[ToolDigest]) -> Iterator[ToolDigest]:
    """Yield the digests; calls of one tool without an outcome share a line."""
    waiting: dict[str, list[ToolDigest]] = {}
    for each in digests:
        if each.outcome or each.failed or not each.target:
            yield each
            continue
        same = waiting.setdefault(each.tool, [])
        if all(each.target != other.target for other in same):
            same.append(each)
        if len(same) == MAX_TARGETS:
            yield _joined(waiting.pop(each.tool))
    yield from map(_joined, waiting.values())


def shorten(text: str, length: int) -> str:
    """Return the text in one line of at most `length` characters, cut between words."""
    line = " ".join(text[: length * 4].split())
    if len(line) <= length:
        return line
    cut = line.rfind(" ", length // 2, length)
    return f"{line[: cut if cut > 0 else length - 1].rstrip()}…"


def _joined(same: list[ToolDigest]) -> ToolDigest:
    """Return one digest for all; a folder that they share is written once, as in a shell."""
    targets = [each.target for each in same]
    folder = _shared_folder(targets) if len(same) > 1 else ""
    if len(folder) < _LONG_FOLDER:
        return same[-1]._replace(target=", ".join(targets))
    inside = ", ".join(target.removeprefix(folder) for target in targets)
    return same[-1]._replace(target=f"{folder}{{{inside}}}")


def _shared_folder(targets: list[str]) -> str:
    """Return the folder that all paths begin with, and its slash; empty if they are not paths."""
    first, last = min(targets), max(targets)
    same = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), 0)
    folder = first[: first.rfind("/", 0, same) + 1]
    return "" if " " in folder else folder


def text_of_result(result: ToolResult) -> str:
    """Return the text of a result."""
    return "\n".join(
        part.text if isinstance(part, Text) else dump_text(part.value)
        for part in result.parts
        if isinstance(part, Text | Data)
    )


def _fault_line(text: str) -> str:
    """Return the line that names the error: the last of a traceback, otherwise the first."""
    lines = _outer_lines(text)
    named = [line for line in lines if _FAILURE.search(line)]
    if not named:
        return shorten(lines[0], OUTCOME_LENGTH) if lines else ""
    explained = [line for line in named if not _FAILURE_START.match(line) or ":" in line]
    is_trace = "Traceback" in text[:_SEARCHED]
    return shorten((explained or named)[-1 if is_trace else 0], OUTCOME_LENGTH)


def _outcome(text: str) -> str:
    text = text.strip()
    if _MARKER.fullmatch(text):
        return ""
    if text.startswith(("{", "[")) and len(text) <= _MAX_JSON_LENGTH:
        values = _json_outcome(text)
        if values:
            return values
    if len(text) <= OUTCOME_LENGTH and "\n" not in text:
        return shorten(text, OUTCOME_LENGTH)
    if _NUMBERED_LINE.match(text):
        return ""
    lines = _outer_lines(text)
    results = [line for line in lines if _RUN_RESULT.search(line)]
    results = results or [line for line in lines[-_LAST_LINES:] if _FAILURE_END.search(line)]
    return shorten(results[-1], OUTCOME_LENGTH) if results else ""


def _outer_lines(text: str) -> list[str]:
    """Return the lines near both ends that are neither empty nor very long."""
    if len(text) > 2 * _SEARCHED:
        text = f"{text[:_SEARCHED]}\n{text[-_SEARCHED:]}"
    return [
        line
        for line in text.splitlines()
        if line.strip() and len(line) <= _MAX_LINE_LENGTH and not _MARKER.fullmatch(line.strip())
    ]


def _json_outcome(text: str) -> str:
    try:
        value = loads(text)
    except InputError:
        return ""
    if isinstance(value, list):
        return f"{len(value)} entries"
    return shorten(", ".join(_plain_values(value)), OUTCOME_LENGTH) if value else ""


def _object_of(text: str) -> Mapping[str, Any] | None:
    try:
        value = loads(text)
    except InputError:
        return None
    return value if isinstance(value, dict) else None


def _plain_values(value: Mapping[str, Any], depth: int = 0) -> Iterator[str]:
    """Yield `key=value` for plain values, then for nested ones."""
    nested = {key: inner for key, inner in value.items() if isinstance(inner, dict | list)}
    for key, inner in value.items():
        if key not in nested and inner not in (None, "", False):
            yield f"{key}={shorten(str(inner), VALUE_LENGTH)}"
    for key, inner in nested.items():
        yield from _nested_values(key, inner, depth + 1)


def _nested_values(key: str, value: Any, depth: int) -> Iterator[str]:
    if isinstance(value, list):
        plain = [str(each) for each in value if isinstance(each, str | int | float)]
        if plain:
            yield f"{key}={shorten(', '.join(plain), VALUE_LENGTH)}"
        value = [each for each in value[:_MAX_NESTED] if isinstance(each, dict)]
    else:
        value = [value]
    if depth <= _MAX_DEPTH:
        for each in value:
            yield from _plain_values(each, depth)


SPEAKERS: dict[Role, str] = {"user": "User", "system": "System", "assistant": "", "tool": ""}
"""The label of each role. Most lines are the assistant's, so these have none."""
LAST_GENERATION = 3
"""Later compressions count as this one, together with the new messages."""
UNNAMED = frozenset(SPEAKERS.values())


class Reading(NamedTuple):
    """The content of a piece of text."""

    text: str
    concepts: tuple[str, ...]
    items: tuple[ExactItem, ...]
    cues: int
    technical: int
    """The number of paths, addresses and identifiers."""
    plain: float
    """The share of words among its tokens; low for code, tables and logs."""
    trimmed: bool = False
    """True if filler words at the start were removed."""


class Origin(NamedTuple):
    """The place that a unit comes from."""

    message: int
    """The index of the message; negative for a line of the previous summary."""
    speaker: str
    """The label before the text; may be empty."""
    role: Role
    section: str = ""
    """The section of the previous summary."""
    generation: int = LAST_GENERATION
    """The compression that added it to the previous summary; 0 is the first."""
    day: str = ""
    """The day of the message, such as 2026-05-07, if it is known."""


class UnitDraft(NamedTuple):
    """A piece of a message that is not read yet."""

    text: str
    form: TextForm
    origin: Origin
    begins_line: bool = True
    cues: int = 0


class SummaryUnit(NamedTuple):
    """One candidate for the summary: a reading, without the fields that only its form needs.

    It has the fields of a reading themselves, because a second object takes more memory.
    """

    text: str
    concepts: tuple[str, ...]
    items: tuple[ExactItem, ...]
    cues: int
    technical: int
    """The number of paths, addresses and identifiers."""
    is_trimmed: bool
    """True if filler words at the start were removed."""
    origin: Origin
    form: TextForm
    place: int
    """Its number in the conversation; neighbours differ by one."""
    begins_line: bool

    @classmethod
    def of(
        cls,
        reading: Reading,
        origin: Origin,
        form: TextForm,
        place: int,
        *,
        begins_line: bool = True,
        cues: int = 0,
    ) -> SummaryUnit:
        """Return the unit of a reading, with more cues."""
        text, concepts, items, found, technical, _, trimmed = reading
        return cls(
            text,
            concepts,
            items,
            found | cues,
            technical,
            trimmed,
            origin,
            form,
            place,
            begins_line,
        )

    @property
    def is_earlier(self) -> bool:
        """True if it comes from the previous summary."""
        return self.origin.message < 0


# Messages to drafts

_CODE_LENGTH = 160


def draft_conversation(messages: Sequence[Message]) -> list[UnitDraft]:
    """Return the pieces of all messages in order, followed by the digests of tool calls."""
    drafts: list[UnitDraft] = []
    calls: dict[str, ToolCall] = {}
    digests: list[ToolDigest] = []
    days: dict[int, str] = {}
    for index, message in enumerate(messages):
        speaker = message.name or SPEAKERS[message.role]
        origin = Origin(index, speaker, message.role, day=day_of(message))
        for part in message.parts:
            match part:
                case Text(text) if message.role == "user":
                    drafts += _draft_user_text(text, origin)
                case Text(text):
                    drafts += _draft_text(text, origin)
                case ToolCall(call_id):
                    calls[call_id] = part
                case ToolResult(call_id):
                    digests.append(digest_result(calls.pop(call_id, None), part, index))
                    days[index] = origin.day
                case Attachment(name=name) if name:
                    drafts.append(UnitDraft(f"[{name}]", TextForm.LISTING, origin))
                case Data(value):
                    drafts += _draft_text(dump_text(value), origin)
    digests += [pending(call, len(messages) - 1) for call in calls.values()]
    for digest in join_digests(digests):
        origin = Origin(digest.message, "", "tool", day=days.get(digest.message, ""))
        drafts.append(UnitDraft(digest.text, TextForm.TOOL, origin, cues=digest.cues))
    return merge_counted(drafts)


_QUOTED = "quoted: "
"""Names a file that a message quotes, so that it is not taken for its author's words."""


def _draft_user_text(text: str, origin: Origin) -> Iterator[UnitDraft]:
    """Yield the pieces of a user's text.

    What a client added, and a file that the user quotes, count as the output of a tool.
    """
    output = origin._replace(speaker="", role="tool")
    rules = [] if origin.speaker not in UNNAMED else find_rules(text)
    stated = [text[rule.start : rule.end] for rule in rules]
    for start, end, kind in spans(text):
        if kind != "person":
            yield from _draft_text(text[start:end], output)
            continue
        at = start
        for fence in FENCED_BLOCK.finditer(text, start, end):
            yield from _mark_rules(_draft_text(text[at : fence.start()], origin), stated)
            for draft in _draft_text(fence.group(), output):
                yield draft._replace(text=f"{_QUOTED}{draft.text}")
            at = fence.end()
        yield from _mark_rules(_draft_text(text[at:end], origin), stated)


def _mark_rules(drafts: Iterable[UnitDraft], rules: Sequence[str]) -> Iterator[UnitDraft]:
    """Yield the drafts, with a cue for those in which a rule is stated."""
    for draft in drafts:
        states = any(draft.text in rule or rule in draft.text for rule in rules)
        yield draft._replace(cues=Cue.RULE) if states else draft


_DIGITS = re.compile(r"\d+")
_MIN_COUNTED = 4
"""Pieces that differ only in counters, from which they are merged."""


def merge_counted(drafts: list[UnitDraft]) -> list[UnitDraft]:
    """Return the drafts, with one in place of those that differ only in numbers that count up.

    "Moved file-1.", "Moved file-2." and so on become "Moved file-1–9. (9 times)".
    """
    groups: dict[tuple[str, str, TextForm], list[int]] = {}
    for index, draft in enumerate(drafts):
        if draft.form is not TextForm.TOOL and any(map(str.isdigit, draft.text)):
            key = (_DIGITS.sub("#", draft.text), draft.origin.speaker, draft.form)
            groups.setdefault(key, []).append(index)
    merged: dict[int, UnitDraft] = {}
    dropped: set[int] = set()
    for indexes in groups.values():
        text = _counted([drafts[index].text for index in indexes])
        if text:
            merged[indexes[0]] = drafts[indexes[0]]._replace(text=text)
            dropped.update(indexes[1:])
    if not merged:
        return drafts
    return [merged.get(i, draft) for i, draft in enumerate(drafts) if i not in dropped]


def _counted(texts: list[str]) -> str:
    """Return one text for all, if their numbers are equal or count up by one; else nothing."""
    if len(texts) < _MIN_COUNTED:
        return ""
    columns = list(zip(*(_DIGITS.findall(text) for text in texts), strict=True))
    shown: list[str] = []
    for column in columns:
        numbers = [int(each) for each in column]
        if len(set(numbers)) == 1:
            shown.append(column[0])
        elif all(after - before == 1 for before, after in pairwise(numbers)):
            shown.append(f"{column[0]}–{column[-1]}")
        else:
            return ""
    if all(len(set(column)) == 1 for column in columns):
        return ""
    filled = iter(shown)
    return f"{_DIGITS.sub(lambda _: next(filled), texts[0])} ({len(texts)} times)"


def _draft_text(text: str, origin: Origin) -> Iterator[UnitDraft]:
    found: Iterable[TextPiece] = pieces(text)
    if origin.speaker not in UNNAMED:
        # A sentence of a discussion ("I thought maybe we should") says little without the next.
        found = in_runs(found)
    for form, piece, begins_line in found:
        if form is TextForm.CODE:
            for lines in _code_lines(piece):
                yield UnitDraft(lines, form, origin)
        else:
            yield UnitDraft(piece, form, origin, begins_line)


def _code_lines(code: str) -> Iterator[str]:
    """Yield a block of code as runs of lines, each written in one line."""
    run = ""
    for line in code.splitlines():
        shortened = shorten(line, _CODE_LENGTH)
        if run and len(run) + len(shortened) > _CODE_LENGTH:
            yield f"`{run}`"
            run = ""
        if shortened:
            run = f"{run} ⏎ {shortened}" if run else shortened
    if run:
        yield f"`{run}`"


# Drafts to units

_PASSED_ON = Cue.DECISION | Cue.CORRECTION | Cue.OPEN | Cue.NEXT
_FEW_WORDS = 0.4
"""A line with a smaller share of words is not a sentence."""
_SHORT = 30
"""Characters up to which any line is a sentence."""


def read_drafts(
    drafts: list[UnitDraft], chosen: Sequence[int], lexicon: Lexicon
) -> list[SummaryUnit]:
    """Return the chosen drafts as units, by ascending indexes.

    The drafts are removed, so that not both are held.
    """
    units: list[SummaryUnit] = []
    for place in reversed(chosen):
        del drafts[place + 1 :]
        draft = drafts[place]
        # Of tool calls only paths and addresses are listed, and no phrase is one.
        reading = read(draft.text, lexicon, phrases=draft.form is not TextForm.TOOL)
        if not reading.text:
            continue
        cues = draft.cues | _cues_before(drafts, place, lexicon)
        form = draft.form
        if form is TextForm.SENTENCE and reading.plain < _FEW_WORDS and len(reading.text) > _SHORT:
            form = TextForm.LISTING
        begins_line = draft.begins_line
        units.append(
            SummaryUnit.of(reading, draft.origin, form, place, begins_line=begins_line, cues=cues)
        )
    drafts.clear()
    return units[::-1]


def _cues_before(drafts: Sequence[UnitDraft], place: int, lexicon: Lexicon) -> int:
    """Return the cues of a sentence that only announces this one, such as "Agreed."."""
    before = place - 1
    if before < 0 or drafts[before].origin is not drafts[place].origin:
        return 0
    if len(drafts[before].text) > _SHORT:
        return 0
    reading = read(drafts[before].text, lexicon)
    return reading.cues & _PASSED_ON if len(reading.concepts) <= 1 else 0


_QUESTION = re.compile(rf"[{QUESTION_MARKS}][{QUOTES})\]*_\s]*$")
_QUESTION_END = 8
"""Characters at the end of a sentence that may contain its question mark."""
_FEW_FILLERS = 2
"""A quotation may begin with this many fillers; if there are more, all are removed."""
_EMPTY = Reading("", (), (), 0, 0, 1.0)


_share = lru_cache(maxsize=4_096)(truediv)
_same = lru_cache(maxsize=4_096)(int)
"""Divides two numbers, and returns a number as it is. Equal values are one object, because a long
conversation has many readings."""


def read(text: str, lexicon: Lexicon, *, trim: bool = True, phrases: bool = True) -> Reading:
    """Return the content of a text; many fillers at its start are removed.

    A few fillers stay: a sentence that is quoted from its beginning can be found again verbatim.
    Without `phrases`, items of several words are not looked for.
    """
    raws = text.split()
    tokens = list(map(lexicon.__getitem__, raws))
    start = _first_with_content(tokens) if trim else 0
    opening = raws[:start] if start <= _FEW_FILLERS else []
    if start:
        raws, tokens = raws[start:], tokens[start:]
    if not tokens:
        return _EMPTY
    clean = " ".join(raws)
    if clean == text:
        clean = text  # not a copy, which would be held as long as the original
    kinds, cores, concepts, items, all_cues = zip(*tokens, strict=True)
    found = reduce(or_, all_cues)
    if found & Cue.ANCHOR:
        anchors = [core for core, cues in zip(cores, all_cues, strict=True) if cues & Cue.ANCHOR]
        found |= phrase_cues(clean, anchors)
    found = found & ~WORD_CUES | all_cues[0] & Cue.POINTER
    if _QUESTION.search(clean, len(clean) - _QUESTION_END):
        found |= Cue.QUESTION
    plain = kinds.count("word") + kinds.count("capitalized")
    distinct = dict.fromkeys(chain.from_iterable(concepts))
    is_single = len(tokens) == 1 and len(distinct) == len(tokens[0].concepts)
    return Reading(
        " ".join((*opening, clean)),
        tokens[0].concepts if is_single else tuple(distinct),
        _items(clean if phrases else "", raws, tokens, lexicon) if any(items) else (),
        _same(found),
        sum(kind in TECHNICAL for kind in kinds) if plain < len(kinds) else 0,
        _share(plain, len(kinds)),
        start > len(opening),
    )


def _first_with_content(tokens: list[Token]) -> int:
    for index, token in enumerate(tokens):
        if token.kind != "mark" and not token.cues & Cue.FILLER:
            return index
    return len(tokens)


_NEEDS_PHRASES = NUMBERS | {"error"}
_PHRASE_KINDS = NUMBERS | {"error", "capitalized", "acronym", "numeral"}
_MAX_WORDS = {"error": 3, "command": 8}
"""Longer error messages and commands are not listed; the items in them are."""
_NAME_KINDS = frozenset({"capitalized", "acronym"})
_WORD_KINDS = frozenset({"word", "capitalized", "acronym"})
_ENDINGS = (*PAUSES, *QUOTES, ")", "|")
"""A capital letter after one of these is not the sign of a name."""


def _items(
    text: str, raws: list[str], tokens: list[Token], lexicon: Lexicon
) -> tuple[ExactItem, ...]:
    """Return the exact items; a single capitalized word that may begin a sentence is a word."""
    items: list[ExactItem] = []
    covered: set[int] = set()
    if text and ("`" in text or any(token.kind in _NEEDS_PHRASES for token in tokens)):
        for kind, phrase in phrases_in(text):
            inside = _tokens_inside(text, phrase, raws)
            exact = [tokens[index] for index in inside if tokens[index].items]
            # A phrase must not hide a path that is in the same token, nor the items of a sentence
            # in an unspaced script, which is one token.
            is_simple = all(token.kind in _PHRASE_KINDS for token in exact) or kind == "command"
            is_short = len(inside) <= _MAX_WORDS.get(kind, len(inside))
            if is_simple and is_short and covered.isdisjoint(inside):
                concepts = tuple(concept for token in exact for concept in token.concepts)
                items.append(ExactItem(kind, concepts, phrase))
                covered.update(inside)
    for index, token in enumerate(tokens):
        if not token.items or index in covered:
            continue
        if token.kind == "capitalized":
            end = _end_of_name(raws, tokens, index)
            if end > index + 1 or not _begins_anew(raws, tokens, index):
                items.append(_name(tokens[index:end]))
            covered.update(range(index, end))
        elif token.kind in {"integer", "numeral"}:
            items.append(ExactItem(token.kind, token.concepts, _with_its_word(tokens, index)))
        else:
            found = lexicon.exact.get(token.items)
            if found is None:
                found = [ExactItem(kind, (item.lower(),), item) for kind, item in token.items]
                lexicon.exact[token.items] = found
            items += found
    return tuple(items)


def _name(tokens: list[Token]) -> ExactItem:
    """Return the name that the tokens are."""
    concepts = tokens[0].concepts
    if len(tokens) > 1:
        concepts = tuple(concept for each in tokens for concept in each.concepts)
    return ExactItem("capitalized", concepts, " ".join([each.core for each in tokens]))


def _tokens_inside(text: str, phrase: str, raws: list[str]) -> list[int]:
    """Return the indexes of the tokens of which a phrase consists."""
    start = text.find(phrase)
    first = text.count(" ", 0, start)
    return list(range(first, min(len(raws), first + phrase.count(" ") + 1)))


def _begins_anew(raws: list[str], tokens: list[Token], index: int) -> bool:
    return not index or tokens[index - 1].kind == "mark" or raws[index - 1].endswith(_ENDINGS)


def _end_of_name(raws: list[str], tokens: list[Token], start: int) -> int:
    """Return the end of a name: before a word in small letters, or at punctuation."""
    end = start + 1
    while (
        end < len(tokens)
        and tokens[end].kind in _NAME_KINDS
        and raws[end - 1].endswith(tokens[end - 1].core)
        and raws[end].startswith(tokens[end].core)
    ):
        end += 1
    return end


def _with_its_word(tokens: list[Token], index: int) -> str:
    """Return a number with the word after it (12 rows) or before it (chapter 3)."""
    number = tokens[index].core
    after = tokens[index + 1] if index + 1 < len(tokens) else None
    if after and after.kind in _WORD_KINDS and after.concepts:
        return f"{number} {after.core}"
    before = tokens[index - 1] if index else None
    return f"{before.core} {number}" if before and before.concepts else number


# Corrections

REPLACED = 0.0
"""The factor of a statement that a correction certainly replaces, because it would mislead."""
PERHAPS_REPLACED = 0.6
"""The factor of a statement that shares one word with a correction."""
_MAX_TOPIC = 6
"""A word in more units does not show the subject of a sentence."""


def correction_topics(units: Sequence[SummaryUnit], lexicon: Lexicon) -> dict[str, list[int]]:
    """Return the words of corrections, each with the units that have it, or the first of many."""
    topics: dict[str, list[int]] = {
        concept: []
        for index in _corrections(units)
        for concept in units[index].concepts
        if lexicon.kind(concept) in {"word", "capitalized"}
    }
    for index, unit in enumerate(units if topics else ()):
        for concept in topics.keys() & unit.concepts:
            if len(topics[concept]) <= _MAX_TOPIC:
                topics[concept].append(index)
    return topics


def replaced(units: Sequence[SummaryUnit], topics: Mapping[str, Sequence[int]]) -> dict[int, float]:
    """Return the indexes of the units that a later correction replaces, with their factors."""
    factors: dict[int, float] = {}
    for index in _corrections(units):
        for other, shared in _same_subject(index, units, topics).items():
            factor = _factor_beside(units[other], units[index], shared)
            factors[other] = min(factor, factors.get(other, 1.0))
    return {index: factor for index, factor in factors.items() if factor < 1}


def _corrections(units: Iterable[SummaryUnit]) -> list[int]:
    # A correction in the previous summary had its effect when it was new.
    return [
        index
        for index, unit in enumerate(units)
        if unit.cues & Cue.CORRECTION and not unit.is_earlier
    ]


def _same_subject(
    index: int, units: Sequence[SummaryUnit], topics: Mapping[str, Sequence[int]]
) -> Counter[int]:
    """Return earlier statements, with the number of distinctive words they share with this one."""
    new = units[index]
    found = (topics.get(concept, ()) for concept in new.concepts)
    return Counter(
        other
        for others in found
        if len(others) <= _MAX_TOPIC
        for other in others
        if other < index and units[other].origin != new.origin
    )


def _factor_beside(old: SummaryUnit, new: SummaryUnit, shared: int) -> float:
    """Return the factor of the old statement, given the correction."""
    before, now = _values(old), _values(new)
    new_values = {now[concept] for concept in now.keys() - before.keys()}
    if old.form is TextForm.TOOL or not new_values & set(before.values()):
        return 1.0
    if old.cues & Cue.CORRECTION and shared < len(old.concepts) / 2:
        return 1.0  # it corrects something else
    if shared == 1 and not before.keys() & now.keys():
        return PERHAPS_REPLACED
    return REPLACED


def _values(unit: SummaryUnit) -> dict[str, str]:
    """Return a group of kinds for each concept of an exact item: a day may replace a number."""
    return {concept: _value_group(item.kind) for item in unit.items for concept in item.concepts}


def _value_group(kind: TokenKind) -> str:
    if kind in NUMBERS:
        return "number"
    if kind in PLACES:
        return "place"
    return "code" if kind in TECHNICAL else kind
