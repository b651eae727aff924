"""Material: everything a summary can be made of, read, weighed and counted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from enfold.messages import Message, text_of
from enfold.summaries.local.choice import Cost
from enfold.summaries.local.conversation import draft_conversation, read_drafts
from enfold.summaries.local.corrections import replaced
from enfold.summaries.local.earlier import ages, read_earlier
from enfold.summaries.local.layout import JOINT, PEOPLE
from enfold.summaries.local.lexicon import Lexicon
from enfold.summaries.local.questions import SETTLED, mark_open, settled
from enfold.summaries.local.sifting import sift
from enfold.summaries.local.splitting import Form
from enfold.summaries.local.units import Unit
from enfold.summaries.local.worth import concept_worths, unit_factors
from enfold.summaries.request import Style, SummaryRequest
from enfold.tokens import Tokenizer

AGE = 3.0
"""How much more the oldest lines of the earlier summary weigh than new ones: what was kept longest
is lost for good if it is lost, and without this every fold would wash some of it away."""
_RECENT_LENGTH = 20_000
"""Characters of the messages that stay that are looked at."""
_CROWD = 3
"""How many named speakers make a meeting, in which it helps to know who was there."""


@dataclass(frozen=True, slots=True)
class Material:
    """Units, with what each is worth and what it costs; lists go by the unit's index."""

    units: list[Unit]
    last: int
    """The index of the last message."""
    costs: list[Cost]
    factors: list[float]
    worths: dict[str, float]
    """By concept."""
    replaced: dict[int, float]
    """Units that a correction made stale."""
    people: tuple[str, ...] = field(default=())
    """Everybody who is named, in a conversation of several."""

    @property
    def earlier(self) -> list[int]:
        """The units of the earlier summary."""
        return [i for i, u in enumerate(self.units) if u.is_earlier and u.form is not Form.ITEM]

    @property
    def all_earlier(self) -> list[int]:
        """Those, and the items that it listed."""
        return [i for i, u in enumerate(self.units) if u.is_earlier]

    @property
    def new(self) -> list[int]:
        """The units of the messages."""
        return [i for i, u in enumerate(self.units) if not u.is_earlier]


def gather(request: SummaryRequest, tokenizer: Tokenizer) -> Material:
    """The material of a request."""
    lexicon = Lexicon()
    earlier = read_earlier(request.previous or "", lexicon)
    people = _people(earlier, request.messages)
    earlier = [unit for unit in earlier if unit.origin.speaker != PEOPLE]
    drafts = draft_conversation(request.messages)
    texts = [draft.text.split() for draft in drafts]
    counts = lexicon.learn([*texts, *map(_runs, earlier)])
    now = _concepts(request.recent, lexicon)
    worths = concept_worths(counts, len(texts) + len(earlier), lexicon, now)
    chosen = sift(drafts, texts, worths, lexicon, request.target)
    units = [*earlier, *read_drafts(drafts, texts, chosen, lexicon)]
    last = len(request.messages) - 1
    units = [unit for unit in units if unit.reading.concepts] or units
    units = mark_open(units, None if request.recent else last)
    stale = replaced(units, lexicon) | dict.fromkeys(settled(units), SETTLED)
    return Material(
        units=units,
        last=last,
        costs=_costs(units, tokenizer),
        factors=_factors(units, stale, request.style),
        worths=worths,
        replaced=stale,
        people=people,
    )


def _factors(units: list[Unit], stale: dict[int, float], style: Style) -> list[float]:
    return [
        factor * stale.get(index, 1.0) * (1 + AGE * age)
        for index, (factor, age) in enumerate(
            zip(unit_factors(units, style), ages(units), strict=True)
        )
    ]


def _runs(unit: Unit) -> list[str]:
    """What stands between blanks; a listed item begins no sentence, so that its capital tells."""
    runs = unit.reading.text.split()
    return ["-", *runs] if unit.form is Form.ITEM else runs


def _people(earlier: Iterable[Unit], messages: Iterable[Message]) -> tuple[str, ...]:
    known = " ".join(u.reading.text for u in earlier if u.origin.speaker == PEOPLE)
    names = dict.fromkeys(known.split(JOINT) if known else ())
    names.update(dict.fromkeys(message.name for message in messages if message.name))
    return tuple(names) if len(names) >= _CROWD else ()


def _concepts(recent: Iterable[Message], lexicon: Lexicon) -> set[str]:
    text = "\n".join(text_of(message.parts)[:_RECENT_LENGTH] for message in recent)
    return {concept for raw in text[:_RECENT_LENGTH].split() for concept in lexicon[raw].concepts}


def _costs(units: list[Unit], tokenizer: Tokenizer) -> list[Cost]:
    """Tokens by unit; what a line of each speaker takes besides is counted once."""
    speakers = sorted({unit.origin.speaker for unit in units})
    labels = [f"- {speaker}: \n" if speaker else "- \n" for speaker in speakers]
    counts = tokenizer.count_many([*labels, *(unit.reading.text for unit in units)])
    lines = dict(zip(speakers, counts, strict=False))
    texts = counts[len(speakers) :]
    return [Cost(text, lines[u.origin.speaker]) for text, u in zip(texts, units, strict=True)]
