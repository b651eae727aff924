"""The lossless strategy: repeats become references, and padding is removed.

No model is called. Every step can be undone exactly: the ledger says where everything is.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import accumulate
from random import Random

from enfold.condensation import (
    Condensation,
    CondensationEntry,
    EditedMessage,
    KeptMessage,
    Plan,
    Step,
    unchanged,
)
from enfold.jsontext import Path
from enfold.ledger import PieceSource, Recipe, Shortening
from enfold.messages import Message
from enfold.retention import Retention
from enfold.strategies.contract import Capabilities, Estimate, Prices, StrategyKind, Summarizers
from enfold.strategies.lossless.blocks import CalculatedSaving, calculate_savings, replace_blocks
from enfold.strategies.lossless.config import Encodings, LosslessConfig, Obsolete
from enfold.strategies.lossless.drafts import StepContext, TextDraft, shortening
from enfold.strategies.lossless.markers import Names, has_marker, pointed_at
from enfold.strategies.lossless.results import (
    consolidate,
    may_be_reencoded,
    reencode,
    remove_obsolete,
    replace_repeats,
    superseded_lists,
)
from enfold.strategies.lossless.texts import (
    EditRight,
    has_editable_results,
    texts_of,
    with_texts,
)
from enfold.tokens import compute_async, count_messages, get

__all__ = ["KIND", "Encodings", "Lossless", "LosslessConfig", "Obsolete", "shorten"]


_TRIED_WHOLE, _SAMPLE = 300_000, 100_000
"""Characters up to which an estimate tries all texts, and encodings on how many of more."""
_NOTHING_TWICE = "nothing that may be shortened is in view twice"


class LosslessRun:
    """One run over a plan; messages in `left_alone` stay as they are."""

    def __init__(
        self,
        plan: Plan,
        config: LosslessConfig,
        left_alone: AbstractSet[int],
        *,
        is_estimate: bool = False,
    ) -> None:
        found = _lists_to_remove(plan, config)
        self._lists = {index: found[index] for index in found if index not in left_alone}
        texts = [each for each in texts_of(plan) if each.message not in self._lists]
        self._plan = plan
        self._config = config
        self._is_estimate = is_estimate
        self._terms = StepContext(
            get(plan.tokenizer), config.min_saving, Names(texts), keep_last=config.keep == "last"
        )
        self._drafts = [TextDraft.of(shown) for shown in texts]
        frozen = left_alone | pointed_at(texts)
        for draft in self._drafts:
            if draft.was.message in frozen or has_marker(draft.text):
                draft.right = EditRight.NOTHING
        self._shown: list[str] = []
        """The text that each draft shows now."""
        self._edited: dict[int, Message] = {}
        """The messages that were changed, by index."""
        self._counts: dict[int, int] = {}
        """Their tokens."""
        self._not_sampled: list[TextDraft] = []
        self._saved_by_encodings = 0.0
        """Tokens for each character of the drafts that were not sampled."""
        self._calculated: dict[int, CalculatedSaving] = {}
        """About what an estimate saves by markers for blocks, by the index of the message."""

    def run(self) -> tuple[Step, ...]:
        """Run the steps of the config and return the tokens before and after each."""
        config, drafts, terms = self._config, self._drafts, self._terms
        steps: tuple[tuple[str, bool, Callable[[], None]], ...] = (
            (
                "state_cleanup",
                config.remove_obsolete_state,
                lambda: remove_obsolete(drafts, config.obsolete, terms),
            ),
            ("reencoding", config.reencode, self._reencode),
            (
                "result_consolidation",
                config.consolidate_tool_results,
                lambda: consolidate(drafts, terms),
            ),
            (
                "file_deduplication",
                config.deduplicate_file_reads,
                lambda: replace_repeats(drafts, terms),
            ),
            (
                "block_deduplication",
                config.deduplicate_blocks,
                self._replace_blocks,
            ),
        )
        done: list[Step] = []
        tokens = self._plan.tokens
        target = self._plan.target
        for name, is_enabled, do in steps:
            if done and target is not None and tokens <= target:
                break
            if is_enabled:
                before = tokens
                do()
                tokens = self._count()
                done.append(Step(name, before, tokens))
        return tuple(done)

    def _reencode(self) -> None:
        """Write texts in other encodings; an estimate takes a sample and assumes the rest."""
        drafts = list(filter(may_be_reencoded, self._drafts))
        sample, size = drafts, sum(len(draft.text) for draft in drafts)
        if self._is_estimate and size > _TRIED_WHOLE:
            shuffled = Random(0).sample(drafts, len(drafts))  # noqa: S311 - the same every time
            sizes = accumulate(len(draft.text) for draft in shuffled)
            end = 1 + next(at for at, sum_so_far in enumerate(sizes) if sum_so_far >= _SAMPLE)
            sample, self._not_sampled = shuffled[:end], shuffled[end:]
            size = sum(len(draft.text) for draft in sample)
        saved = reencode(sample, self._config.encodings, self._terms)
        self._saved_by_encodings = saved / max(1, size)

    def _replace_blocks(self) -> None:
        """Replace repeated blocks; an estimate calculates what that saves in a long session."""
        drafts, terms = self._drafts, self._terms
        if self._is_estimate and sum(len(draft.text) for draft in drafts) > _TRIED_WHOLE:
            counts = [self._counts.get(i, tokens) for i, tokens in enumerate(self._plan.counts)]
            self._calculated = calculate_savings(drafts, terms, counts)
        else:
            replace_blocks(drafts, terms)

    def entries(self) -> tuple[CondensationEntry, ...]:
        """Return one entry for every message."""
        drafts, shown, edited = self._drafts, self._shown, self._edited
        shortenings: dict[int, list[Shortening]] = {index: [] for index in edited}
        for index, draft in enumerate(drafts):
            if draft.is_changed:
                shortenings[draft.was.message].append(shortening(drafts, index, shown))
        for index, saving in self._calculated.items():
            sources = tuple(PieceSource(drafts[i].was.message, shown[i]) for i in saving.sources)
            shortenings[index].append(Shortening("", "", Recipe((), ""), sources))
        return tuple(
            EditedMessage(index, edited[index], self._counts[index], tuple(shortenings[index]))
            if index in edited
            else KeptMessage(index)
            for index in range(len(self._plan.messages))
        )

    def _count(self) -> int:
        """Return the tokens of the view as it is now."""
        plan = self._plan
        self._shown = [draft.shown() for draft in self._drafts]
        self._edited = self._with_shown()
        counts = count_messages(tuple(self._edited.values()), self._terms.tokenizer)
        self._counts = dict(zip(self._edited, counts, strict=True))
        for index, tokens in self._assumed_savings().items():
            self._edited.setdefault(index, plan.messages[index])
            left = self._counts.get(index, plan.counts[index]) - tokens
            self._counts[index] = max(1, left)
        before = sum(plan.counts[index] for index in self._edited)
        return plan.tokens + sum(self._counts.values()) - before

    def _assumed_savings(self) -> dict[int, int]:
        """Return the tokens that calculated blocks, and encodings not tried, save by message."""
        sizes: dict[int, int] = {}
        for draft in self._not_sampled:
            left = len(draft.text) - sum(hole.stop - hole.start for hole in draft.holes)
            sizes[draft.was.message] = sizes.get(draft.was.message, 0) + left
        saved = {index: saving.tokens for index, saving in self._calculated.items()}
        for index, size in sizes.items():
            saved[index] = saved.get(index, 0) + int(size * self._saved_by_encodings)
        return {index: tokens for index, tokens in saved.items() if tokens}

    def _with_shown(self) -> dict[int, Message]:
        """Return the messages that were changed, by index."""
        changed: dict[int, dict[tuple[int, int, Path], str]] = {}
        for draft, text in zip(self._drafts, self._shown, strict=True):
            if draft.is_changed:
                place = (draft.was.part, draft.was.inner, draft.was.path)
                changed.setdefault(draft.was.message, {})[place] = text
        messages = self._plan.messages
        return self._lists | {i: with_texts(messages[i], texts) for i, texts in changed.items()}


def _lists_to_remove(plan: Plan, config: LosslessConfig) -> dict[int, Message]:
    """Return the messages without superseded to-do lists, if the config removes those."""
    is_enabled = config.remove_obsolete_state and config.obsolete.todo_lists
    return superseded_lists(plan) if is_enabled else {}


@dataclass(frozen=True, slots=True)
class Lossless:
    """Replaces repeats by references."""

    config: LosslessConfig
    means: Summarizers

    id = "lossless"

    @property
    def retention(self) -> Retention:
        """The first and the newest messages."""
        config = self.config
        return Retention("messages", config.preserve_recent_count, config.preserve_first_count)

    def touches(self, plan: Plan) -> tuple[int, ...]:
        """Return the messages with results or to-do lists that may be shortened."""
        found = {each.message for each in texts_of(plan) if each.right}
        return tuple(sorted(found | set(_lists_to_remove(plan, self.config))))

    async def condense(self, plan: Plan) -> Condensation:
        """Return the plan with markers in place of text that is in view already."""
        is_estimate = not self.means.reviewed
        return await compute_async(shorten, plan, self.config, is_estimate=is_estimate)

    async def estimate(self, plan: Plan, prices: Prices | None = None) -> Estimate:  # noqa: ARG002
        """By trying, on a sample of the texts where they are long."""
        tried = replace(self, means=replace(self.means, reviewed=False))
        return Estimate.by_trying(plan, await tried.condense(plan))


def shorten(
    plan: Plan, config: LosslessConfig | None = None, *, is_estimate: bool = False
) -> Condensation:
    """Return the plan with markers in place of text that is in view already.

    An estimate tries encodings on a sample of the texts: its counts are close, and it shows the
    other texts as they are.
    """
    config = config or LosslessConfig()
    if not _may_shorten(plan, config):
        return unchanged(plan, Lossless.id, _NOTHING_TWICE)
    left_alone: set[int] = set()
    while True:
        work = LosslessRun(plan, config, left_alone, is_estimate=is_estimate)
        steps = work.run()
        entries = work.entries()
        larger = {
            entry.index
            for entry in entries
            if isinstance(entry, EditedMessage) and entry.tokens >= plan.counts[entry.index]
        }
        if not larger:
            break
        left_alone |= larger  # each marker saves tokens, but rarely all of them together do not
    if all(isinstance(entry, KeptMessage) for entry in entries):
        return unchanged(plan, Lossless.id, _NOTHING_TWICE)
    operations = tuple(f"{step.name}_completed" for step in steps)
    return Condensation(Lossless.id, entries, steps, operations=operations)


def _may_shorten(plan: Plan, config: LosslessConfig) -> bool:
    """Return True if a result or a to-do list may be edited. Most chats have none."""
    return has_editable_results(plan) or bool(_lists_to_remove(plan, config))


KIND = StrategyKind(
    id="lossless",
    name="Lossless",
    description="Replaces repeats by references, so nothing is lost. No model is called.",
    capabilities=Capabilities(lossless=True, individual=True, multi_pass=True),
    config=LosslessConfig,
    make=Lossless,
)
