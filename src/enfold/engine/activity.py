"""Activity of the engine: savings, costs and failures of compressions, day by day.

The money saved is an estimate: the tokens that a compression freed, at the model's price for
input, once for every reply that came in the session since. The share of these replies' input that
the provider read from its cache counts at the price of cached tokens. Every compression discards
the cached prompt, so the first reply after it reads the new view at the full price; that is
subtracted. A model without a known price saves an unknown amount.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from typing import Any, ClassVar, Literal, TypeAlias

from enfold.amounts import dollars, number
from enfold.engine.engine import Engine
from enfold.engine.session import Session
from enfold.engine.state import VARIANT, message_of, model_in
from enfold.jsontext import loads
from enfold.llm.costs import Figures, Prices, compare, prices, recommend
from enfold.llm.profiles import cost_candidates
from enfold.messages import text_of
from enfold.records import CompressionRow, DailyFailures, DailyUsage, SessionKey
from enfold.store import catalog, tree
from enfold.store.database import Database
from enfold.text.sentences import shorten_title

_DAY = 24 * 3600
_A_MILLION = 1_000_000


Verdict: TypeAlias = Literal["helped", "unused", "no gain", "loss"]
"""`unused`: no request since. `no gain`: no tokens left the view. `loss`: it cost more than it
saved."""
LATEST = 5
"""Pins and recalls that are read with their texts."""


@dataclass(frozen=True, slots=True)
class Saving:
    """One compression and its savings."""

    day: date
    strategy: str
    model: str
    tokens: int
    """Tokens that left the view."""
    spared: int
    """Tokens that were not sent again since."""
    dollars: float | None
    """The price of those, less the price of the cache that was discarded. None is unknown."""
    cost: float = 0.0
    """The cost of writing the summary, as far as it is known."""
    replies: int = 1
    """The number of replies since."""
    session: str = ""
    title: str = ""
    client: str | None = None
    snapshot: str = ""
    created_at: int = 0

    @property
    def net(self) -> float | None:
        """The money saved after the cost of the summary. None is unknown."""
        return None if self.dollars is None else self.dollars - self.cost

    @property
    def verdict(self) -> Verdict:
        """The judgement of the compression."""
        if not self.tokens:
            return "no gain"
        if not self.replies:
            return "unused"
        return "loss" if self.net is not None and self.net < 0 else "helped"


@dataclass(frozen=True, slots=True)
class KeptText:
    """A message that was pinned, or a question to the full history."""

    session: str
    title: str
    text: str
    created_at: int
    position: int | None = None
    """The number of the message on its branch."""


@dataclass(frozen=True, slots=True)
class Total:
    """The savings of several compressions."""

    compressions: int = 0
    """The number of compressions."""
    tokens: int = 0
    """The tokens that were taken out of views."""
    spared: int = 0
    """The tokens that were not sent again since."""
    dollars: float = 0.0
    """The price of the spared tokens, for models with a known price."""
    unknown: int = 0
    """The number of compressions for models of unknown price."""

    @staticmethod
    def sum(savings: Sequence[Saving]) -> Total:
        """Return the total of savings."""
        return Total(
            len(savings),
            sum(each.tokens for each in savings),
            sum(each.spared for each in savings),
            sum(each.dollars or 0.0 for each in savings),
            sum(each.dollars is None for each in savings),
        )


@dataclass(frozen=True, slots=True)
class DayActivity(Total):
    """The savings and failures of one day, in UTC."""

    day: date = date.min
    """The day."""
    failures: int = 0
    """The number of failed compressions."""
    cached_share: float | None = None
    """The share of the replies' input that came from the provider's cache. None: no replies."""

    @classmethod
    def of(cls, total: Total, day: date, failures: int, cached_share: float | None) -> DayActivity:
        """Return a day with the savings of a total."""
        return cls(**asdict(total), day=day, failures=failures, cached_share=cached_share)


@dataclass(frozen=True, slots=True)
class Activity:
    """Savings, usage and failures of a namespace since a time."""

    JSON_FIELDS: ClassVar = (
        "total",
        "failures=failed",
        "cached_share",
        "spent",
        "unknown_costs",
        "days",
        "by_strategy",
        "by_model",
        "by_client",
        "helped",
        "net_dollars",
        "bill",
        "bill_without",
        "recalls",
        "pinned",
    )
    savings: tuple[Saving, ...] = ()
    usage: tuple[DailyUsage, ...] = ()
    failures: tuple[DailyFailures, ...] = ()
    recalls: int = 0
    """The number of questions to full histories, through every door."""
    pinned: int = 0
    """The number of messages that were pinned."""
    latest_recalls: tuple[KeptText, ...] = ()
    latest_pins: tuple[KeptText, ...] = ()

    @property
    def total(self) -> Total:
        """The sum of all savings."""
        return Total.sum(self.savings)

    @property
    def is_empty(self) -> bool:
        """True if nothing at all happened."""
        return not (self.savings or self.usage or self.failures or self.recalls or self.pinned)

    @property
    def failed(self) -> int:
        """Number of compressions that failed."""
        return sum(each.failures for each in self.failures)

    @property
    def cached_share(self) -> float | None:
        """Share of the replies' input that came from the provider's cache. None: no replies."""
        read = sum(each.input_tokens for each in self._used("reply"))
        return sum(each.cached_tokens for each in self._used("reply")) / read if read else None

    @property
    def spent(self) -> float:
        """The cost of summaries, as far as it is known."""
        return sum(each.cost for each in self._used("summary"))

    @property
    def net_dollars(self) -> float | None:
        """The money saved less the cost of summaries. None if a price is unknown."""
        if self.total.unknown or self.unknown_costs:
            return None
        return self.total.dollars - self.spent

    @property
    def bill(self) -> float | None:
        """The cost of all calls, replies and summaries. None if the cost of one is unknown."""
        if any(each.unknown_costs for each in self.usage):
            return None
        return sum(each.cost for each in self.usage)

    @property
    def bill_without(self) -> float | None:
        """The estimated bill without compressions. None if a price is unknown."""
        bill, saved = self.bill, self.net_dollars
        return None if bill is None or saved is None else bill + saved

    @property
    def helped(self) -> int:
        """The number of compressions that saved more than they cost."""
        return len(self.with_verdict("helped"))

    @property
    def unknown_costs(self) -> int:
        """Number of calls for summaries without a known cost."""
        return sum(each.unknown_costs for each in self._used("summary"))

    def with_verdict(self, *verdicts: Verdict) -> list[Saving]:
        """Return the compressions with one of the verdicts, newest first."""
        found = [each for each in self.savings if each.verdict in verdicts]
        return sorted(found, key=lambda each: -each.created_at)

    def by_day(self) -> Mapping[date, Total]:
        """The savings of each day that has any."""
        return _totals(self.savings, lambda saving: saving.day)

    @property
    def days(self) -> tuple[DayActivity, ...]:
        """The days with activity, oldest first."""
        saved, failed, cached = self.by_day(), self.failures_by_day(), self.cached_by_day()
        return tuple(
            DayActivity.of(saved.get(day, Total()), day, failed.get(day, 0), cached.get(day))
            for day in sorted({*saved, *failed, *cached})
        )

    @property
    def by_strategy(self) -> Mapping[str, Total]:
        """The savings of each strategy, the largest first."""
        return _most_first(_totals(self.savings, lambda saving: saving.strategy))

    @property
    def by_model(self) -> Mapping[str, Total]:
        """The savings of each model's tokens, the largest first."""
        return _most_first(_totals(self.savings, lambda saving: saving.model))

    @property
    def by_client(self) -> Mapping[str, Total]:
        """The savings in the sessions of each client, the largest first; "" has no client."""
        return _most_first(_totals(self.savings, lambda saving: saving.client or ""))

    def failures_by_day(self) -> Mapping[date, int]:
        """Number of failures on each day that had some."""
        found: dict[date, int] = {}
        for each in self.failures:
            day = day_of(each.day)
            found[day] = found.get(day, 0) + each.failures
        return found

    def cached_by_day(self) -> Mapping[date, float]:
        """The share of the input that came from the provider's cache, on days with replies."""
        read: dict[date, int] = {}
        cached: dict[date, int] = {}
        for each in self._used("reply"):
            day = day_of(each.day)
            read[day] = read.get(day, 0) + each.input_tokens
            cached[day] = cached.get(day, 0) + each.cached_tokens
        return {day: cached[day] / tokens for day, tokens in read.items() if tokens}

    def _used(self, kind: str) -> Iterable[DailyUsage]:
        return (each for each in self.usage if each.kind == kind)


@dataclass(frozen=True, slots=True)
class PromptFigures:
    """The summaries that one prompt made while another one was on trial."""

    summaries: int = 0
    """Number of summaries written."""
    tokens_before: int = 0
    """The tokens of the contexts before."""
    tokens_after: int = 0
    """The tokens of the contexts after."""
    summary_tokens: int = 0
    """The tokens of the summaries."""
    invented: int = 0
    """Items in the summaries that their inputs do not have."""
    warnings: int = 0
    """Warnings of the compressions."""


async def read_prompt_trial(
    engine: Engine, namespace: str = "", *, since: int = 0
) -> Mapping[str, PromptFigures]:
    """Return the figures of the prompt on trial and of the usual one, by `trial` and `usual`."""
    found = {"trial": PromptFigures(), "usual": PromptFigures()}
    for row in await engine.store.read(catalog.trial_snapshots, namespace, since=since):
        content = loads(row["content_json"])
        one = found[content[VARIANT]]
        receipt = content.get("receipt") or {}
        found[content[VARIANT]] = PromptFigures(
            one.summaries + 1,
            one.tokens_before + content["originalTokenCount"],
            one.tokens_after + content["newTokenCount"],
            one.summary_tokens + row["token_count"],
            one.invented + len(receipt.get("invented", ())),
            one.warnings + len(content.get("warnings", ())),
        )
    return found


@dataclass(frozen=True, slots=True)
class MeasuredSummaries:
    """The calls for summaries that a model really answered, and their cost."""

    calls: int = 0
    """The number of calls with a known cost."""
    cost: float = 0.0
    """Their cost in US dollars."""

    @property
    def cost_per_call(self) -> float | None:
        """In US dollars. None if no call has a known cost."""
        return self.cost / self.calls if self.calls else None


@dataclass(frozen=True, slots=True)
class ProfileCost:
    """The cost of one compression with a profile: by prices, and as it was measured."""

    profile: str
    """The profile's name; its provider's cheap model has a line of its own."""
    model: str
    """The model, as provider:model."""
    cost: float | None
    """In US dollars, by prices. Null is unknown."""
    saved: float | None
    """US dollars less than with the profile in use, else than with the most expensive one."""
    saved_share: float | None
    """`saved` as a share of that cost."""
    is_cheapest: bool
    """True for the recommended profile, which has the lowest known cost."""
    is_current: bool
    """True for the profile that writes summaries now."""
    reason: str | None
    """Of the recommended profile: why, with the measured effect if both wrote summaries."""
    measured_calls: int
    """The number of calls for summaries that its model answered, with a known cost."""
    measured_cost_per_call: float | None
    """The average cost of those calls in US dollars. Null if there is none."""


def measure_summaries(usage: Iterable[DailyUsage]) -> Mapping[str, MeasuredSummaries]:
    """Return the calls for summaries by model, the unknown costs left out."""
    found: dict[str, MeasuredSummaries] = {}
    for each in usage:
        priced = each.calls - each.unknown_costs
        if each.kind == "summary" and each.model and priced:
            before = found.get(each.model, MeasuredSummaries())
            found[each.model] = MeasuredSummaries(before.calls + priced, before.cost + each.cost)
    return found


def measured_effect(
    measured: Mapping[str, MeasuredSummaries], model: str, other: str
) -> str | None:
    """Return a comparison of the costs of summaries by two models. None: one wrote none."""
    one, two = (measured.get(name, MeasuredSummaries()) for name in (model, other))
    mine, theirs = one.cost_per_call, two.cost_per_call
    if mine is None or not theirs or model == other:
        return None
    return (
        f"measured: {dollars(mine)} a call over {number(one.calls, 'call')} of {model}, "
        f"{dollars(theirs)} over {number(two.calls, 'call')} of {other} ({mine / theirs - 1:+.0%})"
    )


async def compare_costs(
    engine: Engine, namespace: str, input_tokens: int, output_tokens: int
) -> tuple[ProfileCost, ...]:
    """Return the cost of a compression with each profile, cheapest first; no model is called."""
    listed = [each.profile for each in await engine.profiles.all() if each.profile is not None]
    candidates, models = cost_candidates(listed)
    if not candidates:
        return ()
    author = (await engine.settings()).summarizer
    current = author if author in models else None
    run = Figures(input_tokens, output_tokens)
    offers, best = compare(run, candidates, current), recommend(run, candidates, current)
    measured = measure_summaries((await read_activity(engine, namespace)).usage)
    other = models[current or offers[-1].name]

    def reason(name: str) -> str | None:
        if best is None or name != best.name:
            return None
        effect = measured_effect(measured, models[name], other)
        return f"{best.reason}; {effect}" if effect else best.reason

    return tuple(
        ProfileCost(
            each.name,
            models[each.name],
            each.cost.total,
            each.saved,
            each.share,
            best is not None and each.name == best.name,
            each.name == current,
            reason(each.name),
            (found := measured.get(models[each.name], MeasuredSummaries())).calls,
            found.cost_per_call,
        )
        for each in offers
    )


def day_of(days: int) -> date:
    """The date of a day that is counted from 1970."""
    return datetime.fromtimestamp(days * _DAY, tz=UTC).date()


async def read_activity(engine: Engine, namespace: str = "", *, since: int = 0) -> Activity:
    """Return the activity of a namespace since a moment, in milliseconds since 1970."""
    settings = await engine.settings()

    def read(db: Database) -> Activity:
        models = {row.name: row.fields for row in catalog.profiles(db)}
        price_of: dict[str, Prices | None] = {}
        recalls: list[KeptText] = []
        for row in catalog.latest_since(db, "recalls", namespace, since=since, limit=LATEST):
            text = shorten_title(row["question"])
            recalls.append(KeptText(row["session"], row["title"], text, row["created_at"]))
        pins: list[KeptText] = []
        for row in catalog.latest_since(db, "pins", namespace, since=since, limit=LATEST):
            found = tree.get(db, SessionKey(row["key"]), row["message"])
            text = shorten_title(text_of(message_of(found).parts))
            at = row["created_at"]
            pins.append(KeptText(row["session"], row["title"], text, at, found.depth))
        return Activity(
            tuple(
                _saving(each, models, settings.model, price_of)
                for each in catalog.compressions(db, namespace, since=since)
            ),
            tuple(catalog.usage_by_day(db, namespace, since=since)),
            tuple(catalog.failures_by_day(db, namespace, since=since)),
            catalog.count_since(db, "recalls", namespace, since=since),
            catalog.count_since(db, "pins", namespace, since=since),
            tuple(recalls),
            tuple(pins),
        )

    return await engine.store.read(read)


async def saved_in(engine: Engine, session: Session) -> float | None:
    """Return the money that a session's compressions saved, less the cost of its summaries.

    None if a price is unknown.
    """
    since = (await session.record()).created_at
    activity = await read_activity(engine, session.namespace, since=since)
    total = 0.0
    for each in activity.savings:
        if each.session == session.id:
            if each.net is None:
                return None
            total += each.net
    return total


def _saving(
    row: CompressionRow,
    profiles: Mapping[str, Mapping[str, Any]],
    usual: str,
    price_of: dict[str, Prices | None],
) -> Saving:
    fields = profiles.get(row.profile or "", {})
    model = row.model or model_in(fields) or usual
    if model not in price_of:
        provider, _, name = model.partition(":")
        price_of[model] = prices(provider, name, fields.get("prices"))
    freed = max(0, row.tokens_before - row.tokens_after)
    spared = freed * row.replies
    return Saving(
        day_of(row.created_at // 1000 // _DAY),
        row.strategy,
        model,
        freed,
        spared,
        _dollars(price_of[model], row, spared),
        row.cost,
        row.replies,
        row.session,
        row.title,
        row.client,
        row.snapshot,
        row.created_at,
    )


def _dollars(found: Prices | None, row: CompressionRow, spared: int) -> float | None:
    """Return the price of the spared tokens, at the measured share of cached ones.

    The new view was read once at the full price where the old one would have been cached.
    """
    if found is None or found.input is None:
        return None
    cached = found.input if found.cache_reads is None else found.cache_reads
    share = min(1.0, row.cached_tokens / row.input_tokens) if row.input_tokens else 0.0
    price = share * cached + (1 - share) * found.input
    discarded = row.tokens_after * share * (found.input - cached)
    return (spared * price - discarded) / _A_MILLION


def _totals(savings: Iterable[Saving], key: Callable[[Saving], Any]) -> dict[Any, Total]:
    found: dict[Any, list[Saving]] = {}
    for saving in savings:
        found.setdefault(key(saving), []).append(saving)
    return {name: Total.sum(some) for name, some in found.items()}


def _most_first(totals: Mapping[str, Total]) -> dict[str, Total]:
    return dict(sorted(totals.items(), key=lambda item: (-item[1].tokens, item[0])))
