"""Layout: chosen units as Markdown, section by section, in each in the conversation's order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from enfold.summaries.local.punctuation import PAUSES, UNSPACED_ENDS
from enfold.summaries.local.sections import CONTEXT, ORDER, TECHNICAL
from enfold.summaries.local.splitting import Form
from enfold.summaries.local.units import UNNAMED, Unit

GAP = " … "
"""Between two pieces of one message with something left out in between."""
ITEM_JOINT = "; "
"""Between two neighbouring items of a list."""
PEOPLE = "Participants"
"""How the line begins that names who took part."""
INDEX = "Mentioned"
"""How the line begins that lists exact items without their sentences."""
JOINT = ", "
_SOON = 3
"""Messages apart, at most, for a speaker's words to stand in one line."""
_LONG_LINE = 240
"""Characters after which a line takes no more of other messages."""


def lay_out(
    chosen: Iterable[tuple[str, Unit]],
    *,
    people: Sequence[str] = (),
    index: Sequence[str] = (),
    headings: bool = True,
) -> str:
    """The summary's text: units with their sections, who took part, and the index of items."""
    lines: dict[str, list[str]] = {}
    if people:
        lines[CONTEXT] = [f"- {PEOPLE}: {JOINT.join(people)}"]
    by_section: dict[str, list[Unit]] = {}
    for section, unit in chosen:
        by_section.setdefault(section, []).append(unit)
    for section, units in by_section.items():
        lines.setdefault(section, []).extend(_lines(units))
    if index:
        lines.setdefault(TECHNICAL, []).append(f"- {INDEX}: {JOINT.join(index)}")
    if not headings:
        return "\n".join(line for section in ORDER for line in lines.get(section, ()))
    blocks = ("\n".join((f"## {name}", *lines[name])) for name in ORDER if name in lines)
    return "\n\n".join(blocks)


def _lines(units: list[Unit]) -> Iterator[str]:
    ordered = sorted(units, key=lambda unit: (unit.origin.message, unit.place))
    line: list[Unit] = []
    for unit in ordered:
        if line and not _goes_on(line, unit):
            yield _line(line)
            if unit.origin.generation != line[-1].origin.generation:
                yield ""
            line = []
        line.append(unit)
    if line:
        yield _line(line)


def _goes_on(line: list[Unit], unit: Unit) -> bool:
    """Whether a unit shares the line: the same message, or somebody goes on after a short while."""
    if unit.form is Form.TOOL:
        return False
    before, origin = line[-1].origin, unit.origin
    if origin.message == before.message:
        return True
    if origin.speaker != before.speaker or origin.speaker in UNNAMED or before.message < 0:
        return False
    length = sum(len(each.reading.text) for each in line)
    return origin.message - before.message <= _SOON and length < _LONG_LINE


def _line(units: list[Unit]) -> str:
    speaker = units[0].origin.speaker
    return f"- {speaker}: {_joined(units)}" if speaker else f"- {_joined(units)}"


def _joined(units: list[Unit]) -> str:
    """Pieces in one line, with a gap wherever something was left out."""
    text, before = units[0].reading.text, units[0]
    for unit in units[1:]:
        reading = unit.reading
        if reading.trimmed or unit.place != before.place + 1 or unit.origin != before.origin:
            joint = GAP
        elif unit.begins_line and not text.endswith(PAUSES):
            joint = ITEM_JOINT
        else:
            joint = "" if text.endswith(UNSPACED_ENDS) else " "
        text += joint + reading.text
        before = unit
    return text
