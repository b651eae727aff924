"""Wiring: settings become objects here, and nowhere else. The one table of names."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

from enfold import settings as known_settings
from enfold.condensation import Strategy
from enfold.engine import Engine
from enfold.engine.models import to_row
from enfold.engine.viewing import message_of
from enfold.errors import ConfigError, SummaryError
from enfold.events import CompressionFinished, Event
from enfold.flush import Flush, Memory, Sink
from enfold.llm.models import current
from enfold.modelconfig import SHIPPED
from enfold.settings import Settings
from enfold.store import Store, catalog, open_store
from enfold.strategies.native import Native
from enfold.summaries import Summarizer
from enfold.summaries.local import LocalSummarizer

LOCAL = "local"

STRATEGIES: Mapping[str, Callable[[Settings, Summarizer], Strategy]] = {
    "native": lambda settings, summarizer: Native(summarizer, settings.style, settings.prompt),
}


@asynccontextmanager
async def open_engine(
    url: str | None = None,
    *,
    sink: Sink | None = None,
    summarizers: Mapping[str, Summarizer] | None = None,
) -> AsyncIterator[Engine]:
    """The engine over the database at that address, or over the one the settings name.

    `sink` takes summarized messages in place of the built-in memory; `summarizers` are further ones
    by name, beside `local`.
    """
    outside = (
        ("config file", known_settings.from_file()),
        ("environment", known_settings.from_environment()),
    )
    known_settings.resolve(outside)
    known = {LOCAL: LocalSummarizer(), **(summarizers or {})}
    async with await open_store(url or known_settings.database_url()) as store:
        await _seed(store)
        flush = Flush(store, sink or Memory(store, known[LOCAL], message_of))
        engine = Engine(
            store,
            summarizer=lambda settings, profile: _summarizer(known, settings, profile),
            strategy=make_strategy,
            outside=outside,
        )
        stop_listening = engine.events.subscribe(lambda event: _wake(flush, event))
        flush.start()
        try:
            yield engine
        finally:
            stop_listening()
            await flush.stop()


def local_summarizer() -> Summarizer:
    """The summarizer that needs no model, no key and no network."""
    return LocalSummarizer()


async def _seed(store: Store) -> None:
    """Fill the table of models on the first run."""
    if not await store.read(catalog.model_configs):
        rows = [to_row(config) for config in (*SHIPPED, *current())]
        await store.write(catalog.add_model_configs, rows)


def _wake(flush: Flush, event: Event) -> None:
    if isinstance(event, CompressionFinished):
        flush.wake()


def _summarizer(
    known: Mapping[str, Summarizer], settings: Settings, profile: str | None
) -> Summarizer:
    """The one that is named, else the profile's, else the local one; never another in its place."""
    name = settings.summarizer or profile or LOCAL
    if name not in known:
        raise SummaryError(
            f"no summarizer {name!r}; there are {', '.join(known)}, or name a profile"
        )
    return known[name]


def make_strategy(settings: Settings, summarizer: Summarizer) -> Strategy:
    """The strategy that the settings name."""
    if settings.strategy not in STRATEGIES:
        raise ConfigError(f"no strategy {settings.strategy!r}; there are {', '.join(STRATEGIES)}")
    return STRATEGIES[settings.strategy](settings, summarizer)
