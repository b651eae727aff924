"""Reading a conversation: messages become units, in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from enfold.jsontext import dump_text
from enfold.messages import Attachment, Data, Message, Text, ToolCall, ToolResult
from enfold.summaries.local import digests
from enfold.summaries.local.cues import Cue
from enfold.summaries.local.digests import Digest
from enfold.summaries.local.lexicon import Lexicon
from enfold.summaries.local.splitting import Form, Piece, pieces
from enfold.summaries.local.units import SPEAKERS, Origin, Unit, read

_PASSED_ON = Cue.DECISION | Cue.CORRECTION | Cue.OPEN | Cue.NEXT
_CODE_LENGTH = 160
_FEW_WORDS = 0.4
"""The share of words below which a line is no sentence."""
_SHORT = 30
"""Characters up to which a line is taken for a sentence anyway."""


def read_conversation(messages: Sequence[Message], lexicon: Lexicon) -> list[Unit]:
    """The units of the messages; a message that says nothing has none."""
    reader = _Reader(lexicon)
    for index, message in enumerate(messages):
        reader.read_message(message, index)
    reader.read_tools(len(messages) - 1)
    return reader.units


class _Reader:
    """Takes messages in, one after the other."""

    def __init__(self, lexicon: Lexicon) -> None:
        self.units: list[Unit] = []
        self._lexicon = lexicon
        self._calls: dict[str, ToolCall] = {}
        self._digests: list[Digest] = []

    def read_message(self, message: Message, index: int) -> None:
        origin = Origin(index, message.name or SPEAKERS[message.role], message.role)
        for part in message.parts:
            match part:
                case Text(text):
                    self._read_text(text, origin)
                case ToolCall(call_id):
                    self._calls[call_id] = part
                case ToolResult(call_id):
                    call = self._calls.pop(call_id, None)
                    self._digests.append(digests.digest(call, part, index))
                case Attachment(name=name) if name:
                    self._add(Piece(Form.LISTING, f"[{name}]", begins_line=True), origin)
                case Data(value):
                    self._read_text(dump_text(value), origin)

    def read_tools(self, last: int) -> None:
        """The digests, when all calls have met their results; a pending call is told too."""
        for call in self._calls.values():
            target = digests.describe_arguments(call.arguments)
            self._digests.append(Digest(last, call.name, target, digests.PENDING, failed=False))
        for digest in digests.gather(self._digests):
            piece = Piece(Form.TOOL, digest.text, begins_line=True)
            self._add(piece, Origin(digest.message, "", "tool"), cues=digest.cues)

    def _read_text(self, text: str, origin: Origin) -> None:
        for piece in pieces(text):
            if piece.form is Form.CODE:
                for lines in _code_lines(piece):
                    self._add(lines, origin)
            else:
                self._add(piece, origin)

    def _said_before(self, origin: Origin) -> int:
        """The cues of a sentence that only announces the next one, such as "Agreed."."""
        if not self.units or self.units[-1].origin != origin:
            return 0
        before = self.units[-1].reading
        return before.cues & _PASSED_ON if len(before.concepts) <= 1 else 0

    def _add(self, piece: Piece, origin: Origin, *, cues: int = 0) -> None:
        reading = read(piece.text, self._lexicon)
        if not reading.text:
            return
        cues |= self._said_before(origin)
        if cues:
            reading = reading._replace(cues=reading.cues | cues)
        form = piece.form
        if form is Form.SENTENCE and reading.plain < _FEW_WORDS and len(reading.text) > _SHORT:
            form = Form.LISTING
        self.units.append(Unit(reading, origin, form, len(self.units), piece.begins_line))


def _code_lines(code: Piece) -> Iterator[Piece]:
    """A block of code in runs of lines, each written in one."""
    held = ""
    for line in code.text.splitlines():
        stripped = digests.shorten(line, _CODE_LENGTH)
        if held and len(held) + len(stripped) > _CODE_LENGTH:
            yield code._replace(text=f"`{held}`")
            held = ""
        if stripped:
            held = f"{held} ⏎ {stripped}" if held else stripped
    if held:
        yield code._replace(text=f"`{held}`")
