"""Jobs: a compression to do, how tight it must be, and the task that it sets a strategy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from enfold.budget import Decision
from enfold.condensation import Task
from enfold.engine.originals import without_pointers
from enfold.errors import NotFoundError
from enfold.llm.prices import Prices
from enfold.messages import Message
from enfold.planning import Aim, Plan, plan, plan_for
from enfold.receipt import Means
from enfold.retention import Retention, Split, zones
from enfold.store import records
from enfold.store.store import Store
from enfold.strategies.contract import Prices as PriceOf
from enfold.strategies.contract import Strategy
from enfold.summaries import fence_tokens
from enfold.view import View

NOTHING_SAID: Mapping[int, Message] = {}


@dataclass(frozen=True, slots=True)
class Job:
    """A compression to do."""

    session: records.Session
    view: View
    decision: Decision
    strategy: Strategy
    author: str
    """Who will write the summary."""
    retention: Retention
    summary_tokens: int | None = None
    share_across_branches: bool = False
    automatic: bool = False
    timeout: float = 120.0
    may_truncate: bool = False
    """Whether what is old may go without a summary, if that is due and none can be had."""
    restorable_by: Means | None = "store"
    """How what leaves the view can be had again through this door. None: it cannot."""
    prices: Prices | None = None
    """Of the session's model: what makes savings known. None is unknown."""
    price_of: PriceOf | None = None
    """What those who write summaries take: what makes a preview's cost known."""
    instead_of: records.Snapshot | None = None
    """A summary to write anew, with the same cutoff. The view is that of before it was made."""
    usage: Sequence[records.UsageEvent] = ()
    """What the summaries have used so far; it grows while they are written."""
    pointerless: View | None = None
    """The view without edits that point to other messages. None: not made yet."""

    @property
    def basis(self) -> View:
        """The view to work on."""
        return self.pointerless or self.view

    @property
    def counts(self) -> tuple[int, ...]:
        """The exact counts of the messages to work on."""
        return tuple(shown.tokens for shown in self.basis.shown)

    @property
    def goal(self) -> int:
        """Where the compression should end, in exact counts."""
        return max(1, self.decision.goal - self.view.estimate)


async def without_pointers_in(store: Store, job: Job) -> Job:
    """The job with a view to work on in which no message points to another."""
    view = await store.read(without_pointers, job.session.key, job.view)
    return replace(job, pointerless=view)


def planned(job: Job) -> Plan:
    """How tight the compression must be."""
    view = job.basis
    aim = Aim(
        job.retention,
        job.goal,
        job.summary_tokens,
        view.summary_tokens,
        view.summary_at,
        view.settled,
        fence=fence_tokens(view.tokenizer),
    )
    same = _same_split(job, job.instead_of) if job.instead_of is not None else None
    return plan(view.messages, job.counts, aim) if same is None else plan_for(job.counts, same, aim)


def _same_split(job: Job, snapshot: records.Snapshot) -> Split | None:
    """The division that a snapshot made, in the view of before; None if it folded nothing."""
    if not snapshot.content.get("messagesIncluded"):
        return None
    places = {shown.id: index for index, shown in enumerate(job.basis.shown)}
    last = places.get(snapshot.content["messageRange"]["lastMessageId"])
    if last is None:
        raise NotFoundError("what the summary folds is no longer on this branch")
    at = next(
        i for i, entry in enumerate(snapshot.manifest) if isinstance(entry, records.Summarized)
    )
    head = sum(_length(entry, places) for entry in snapshot.manifest[:at])
    kept = [entry.first for entry in snapshot.manifest[at:] if isinstance(entry, records.Kept)]
    return Split(
        head=head,
        cut=last + 1,
        pinned=next((places[id] for id in kept if places[id] < last), None),
        tail_tokens=sum(job.counts[last + 1 :]),
        overshoot=0,
    )


def _length(entry: records.ManifestEntry, places: Mapping[str, int]) -> int:
    """How many messages an entry shows."""
    if isinstance(entry, records.Kept):
        return places[entry.last] - places[entry.first] + 1
    return 1


def task_of(job: Job, made: Plan, said: Mapping[int, Message] = NOTHING_SAID) -> Task:
    """What a strategy is given; `said` is what edited messages were before."""
    view = job.basis
    divided = replace(made.split, cut=made.split.head) if made.folds_nothing else made.split
    load = job.decision.load
    return Task(
        messages=view.messages,
        counts=job.counts,
        split=divided,
        tokenizer=view.tokenizer,
        previous=view.summary,
        previous_tokens=view.summary_tokens,
        previous_at=view.summary_at,
        summary_tokens=made.summary_tokens,
        show_recent=not job.share_across_branches,
        target=job.goal if job.automatic or view.tokens > job.goal else None,
        is_due=job.automatic,
        zones=zones(job.counts, job.retention),
        beside=load.system + load.tools,
        restorable_by=job.restorable_by,
        originals=said,
    )
