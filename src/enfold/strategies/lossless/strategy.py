"""The lossless strategy as others know it: its name, its config, how it is asked."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from enfold.condensation import Condensation, Edited, Kept, Task, unchanged
from enfold.retention import Retention
from enfold.strategies.contract import Capabilities, Estimate, Kind, Means, Prices
from enfold.strategies.lossless.config import LosslessConfig
from enfold.strategies.lossless.texts import texts_of
from enfold.strategies.lossless.work import Work


@dataclass(frozen=True, slots=True)
class Lossless:
    """What a view says twice it says once."""

    config: LosslessConfig
    means: Means

    id = "lossless"

    @property
    def retention(self) -> Retention:
        """The first and the newest messages."""
        config = self.config
        return Retention("messages", config.preserve_recent_count, config.preserve_first_count)

    def touches(self, task: Task) -> tuple[int, ...]:
        """Messages with results of tools that may be shortened."""
        shown = texts_of(task)
        return tuple(dict.fromkeys(each.message for each in shown if each.right))

    async def condense(self, task: Task) -> Condensation:
        """The task with markers for what is in view already."""
        return await asyncio.to_thread(shorten, task, self.config)

    async def estimate(self, task: Task, prices: Prices | None = None) -> Estimate:  # noqa: ARG002
        """Exactly what it will be: it costs nothing to try."""
        return Estimate.by_trying(task, await self.condense(task))


def shorten(task: Task, config: LosslessConfig | None = None) -> Condensation:
    """The task with markers for what is in view already."""
    left_alone: set[int] = set()
    while True:
        work = Work(task, config or LosslessConfig(), left_alone)
        steps = work.run()
        entries = work.entries()
        larger = {
            entry.index
            for entry in entries
            if isinstance(entry, Edited) and entry.tokens >= task.counts[entry.index]
        }
        if not larger:
            break
        left_alone |= larger  # single markers pay, and all together once in a blue moon do not
    if all(isinstance(entry, Kept) for entry in entries):
        return unchanged(task, Lossless.id, "nothing that may be shortened is said twice")
    operations = tuple(f"{step.name}_completed" for step in steps)
    return Condensation(Lossless.id, entries, steps, operations=operations)


KIND = Kind(
    id="lossless",
    name="Lossless",
    description="What is said twice is said once; nothing is lost, and no model is asked",
    capabilities=Capabilities(lossless=True, individual=True, multi_pass=True),
    config=LosslessConfig,
    make=Lossless,
)
