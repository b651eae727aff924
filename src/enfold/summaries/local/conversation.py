"""A conversation, taken apart into drafts, and drafts read into units."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from enfold.jsontext import dump_text
from enfold.messages import Attachment, Data, Message, Text, ToolCall, ToolResult
from enfold.summaries.local import digests
from enfold.summaries.local.cues import Cue
from enfold.summaries.local.digests import Digest
from enfold.summaries.local.lexicon import Lexicon
from enfold.summaries.local.splitting import Form, pieces
from enfold.summaries.local.units import SPEAKERS, Draft, Origin, Unit, read

_PASSED_ON = Cue.DECISION | Cue.CORRECTION | Cue.OPEN | Cue.NEXT
_CODE_LENGTH = 160
_FEW_WORDS = 0.4
"""The share of words below which a line is no sentence."""
_SHORT = 30
"""Characters up to which a line is taken for a sentence anyway."""


def draft_conversation(messages: Sequence[Message]) -> list[Draft]:
    """The pieces of all the messages, in order, the digested tool calls last."""
    drafts: list[Draft] = []
    calls: dict[str, ToolCall] = {}
    told: list[Digest] = []
    for index, message in enumerate(messages):
        origin = Origin(index, message.name or SPEAKERS[message.role], message.role)
        for part in message.parts:
            match part:
                case Text(text):
                    drafts += _drafts(text, origin)
                case ToolCall(call_id):
                    calls[call_id] = part
                case ToolResult(call_id):
                    told.append(digests.digest(calls.pop(call_id, None), part, index))
                case Attachment(name=name) if name:
                    drafts.append(Draft(f"[{name}]", Form.LISTING, origin))
                case Data(value):
                    drafts += _drafts(dump_text(value), origin)
    told += _pending(calls.values(), len(messages) - 1)
    for digest in digests.gather(told):
        origin = Origin(digest.message, "", "tool")
        drafts.append(Draft(digest.text, Form.TOOL, origin, cues=digest.cues))
    return drafts


def read_drafts(
    drafts: Sequence[Draft], texts: Sequence[list[str]], chosen: Iterable[int], lexicon: Lexicon
) -> list[Unit]:
    """The chosen drafts as units; `texts` are the runs between the blanks of each draft."""
    units: list[Unit] = []
    for place in chosen:
        reading = read(texts[place], lexicon)
        if not reading.text:
            continue
        draft = drafts[place]
        cues = draft.cues | _said_before(drafts, texts, place, lexicon)
        if cues:
            reading = reading._replace(cues=reading.cues | cues)
        form = draft.form
        if form is Form.SENTENCE and reading.plain < _FEW_WORDS and len(reading.text) > _SHORT:
            form = Form.LISTING
        units.append(Unit(reading, draft.origin, form, place, draft.begins_line))
    return units


def _said_before(
    drafts: Sequence[Draft], texts: Sequence[list[str]], place: int, lexicon: Lexicon
) -> int:
    """The cues of a sentence that only announces this one, such as "Agreed."."""
    before = place - 1
    if before < 0 or drafts[before].origin is not drafts[place].origin:
        return 0
    if len(drafts[before].text) > _SHORT:
        return 0
    reading = read(texts[before], lexicon)
    return reading.cues & _PASSED_ON if len(reading.concepts) <= 1 else 0


def _drafts(text: str, origin: Origin) -> list[Draft]:
    drafts: list[Draft] = []
    for form, piece, begins_line in pieces(text):
        if form is Form.CODE:
            drafts += [Draft(lines, form, origin) for lines in _code_lines(piece)]
        else:
            drafts.append(Draft(piece, form, origin, begins_line))
    return drafts


def _code_lines(code: str) -> Iterator[str]:
    """A block of code in runs of lines, each written in one."""
    held = ""
    for line in code.splitlines():
        stripped = digests.shorten(line, _CODE_LENGTH)
        if held and len(held) + len(stripped) > _CODE_LENGTH:
            yield f"`{held}`"
            held = ""
        if stripped:
            held = f"{held} ⏎ {stripped}" if held else stripped
    if held:
        yield f"`{held}`"


def _pending(calls: Iterable[ToolCall], last: int) -> Iterator[Digest]:
    for call in calls:
        target = digests.describe_arguments(call.arguments)
        yield Digest(last, call.name, target, digests.PENDING, failed=False)
