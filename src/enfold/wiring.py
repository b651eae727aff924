"""Wiring: settings become objects here, and nowhere else. The one table of names."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial

from enfold import settings as known_settings
from enfold.engine import Engine
from enfold.engine.background import compress_queued
from enfold.engine.profiles import LOCAL, Profiles
from enfold.engine.relay import Relay
from enfold.engine.state import message_of
from enfold.errors import ConfigError
from enfold.events import CompressionFinished, Event
from enfold.flush import Flush, MemoryWriter, Sink
from enfold.llm.calls import Gateway
from enfold.llm.gateway import ModelGateway
from enfold.llm.keys import Keys
from enfold.llm.prices import current
from enfold.modelconfig import SHIPPED, to_row
from enfold.queue import Queue
from enfold.queue.work import WorkHandler
from enfold.settings import Settings
from enfold.store import Store, catalog, open_store, outbox
from enfold.strategies import contract
from enfold.strategies.contract import Strategy, Summarizers
from enfold.strategies.fallback import WithFallback
from enfold.summaries import Summarizer
from enfold.summaries.local import LocalSummarizer

CALL = "call"

NATIVE = "native"
"""The strategy that is used where none is named, and where another fails."""

STRATEGIES = contract.BUILT_IN
"""The strategies that come with enfold; other packages may bring more."""


@asynccontextmanager
async def open_engine(
    url: str | None = None,
    *,
    sink: Sink | None = None,
    summarizers: Mapping[str, Summarizer] | None = None,
    gateway: Gateway | None = None,
) -> AsyncIterator[Engine]:
    """The engine over the database at that address, or over the one the settings name.

    `sink` takes summarized messages in place of the built-in memory; `summarizers` are further ones
    by name, beside `local`; `gateway` asks models in place of the one that asks real ones.
    """
    static_settings = (
        ("config file", known_settings.from_file()),
        ("environment", known_settings.from_environment()),
    )
    known_settings.resolve(static_settings)
    known = {LOCAL: LocalSummarizer(), **(summarizers or {})}
    address = url or known_settings.database_url()
    async with (
        await open_store(address) as store,
        ModelGateway() as real_models,
    ):
        await _seed(store)
        queue = Queue(store, address)
        engine = Engine(
            store,
            profiles=Profiles(
                store,
                keys=Keys(known_settings.variable),
                gateway=gateway or real_models,
                summarizers=known,
            ),
            queue=queue,
            strategy=make_strategy,
            static_settings=static_settings,
        )
        relay = Relay(store, engine.events)
        relay.start()
        stop_listening = engine.events.subscribe(lambda event: _wake(queue, event))
        flush = Flush(store, sink or MemoryWriter(store, known[LOCAL], message_of))
        queue.start(_duties(engine, flush))
        try:
            yield engine
        finally:
            stop_listening()
            await queue.stop()
            await relay.stop()


def local_summarizer() -> Summarizer:
    """The summarizer that needs no model, no key and no network."""
    return LocalSummarizer()


async def _seed(store: Store) -> None:
    """Fill the table of models on the first run."""
    if not await store.read(catalog.model_configs):
        rows = [to_row(config) for config in (*SHIPPED, *current())]
        await store.write(catalog.add_model_configs, rows)


def _duties(engine: Engine, flush: Flush) -> Mapping[str, WorkHandler]:
    """Who does which work while nobody waits."""
    ahead = WorkHandler(
        partial(compress_queued, engine), batch=1, seconds=300, at_once=2, before_closing=False
    )
    return {
        outbox.MEMORY: WorkHandler(flush),
        outbox.COMPRESSION: ahead,
        outbox.COMPRESSION_WITH_RECALL: ahead,
    }


def _wake(queue: Queue, event: Event) -> None:
    if isinstance(event, CompressionFinished):
        queue.wake()


def make_strategy(
    settings: Settings,
    summarizer: Summarizer,
    by_profile: Callable[[str], Summarizer] | None = None,
    notes: tuple[str, ...] = (),
) -> Strategy:
    """The strategy that the settings name, with native in reserve.

    What a call asks for must be right. What was stored and can no longer be used is replaced by
    the default, and the report says so.
    """
    means = Summarizers(summarizer, parallel=settings.parallel_summaries)
    if by_profile is not None:
        means = replace(means, by_profile=by_profile)
    said = list(notes)
    first = _first(settings, means, said)
    second = None if first.id == NATIVE else _configured(NATIVE, settings, means, said)
    return first if second is None and not said else WithFallback(first, second, tuple(said))


@asynccontextmanager
async def open_strategy(
    settings: Settings, profile: str | None = None, *, gateway: Gateway | None = None
) -> AsyncIterator[Strategy]:
    """The strategy that the settings name, for conversations that are not stored.

    Its summaries are written for a profile of the database, as in a session that has it; without
    one by the local summarizer.
    """
    if profile is None:
        yield make_strategy(settings, local_summarizer())
        return
    async with open_engine(gateway=gateway) as engine:
        roster = await engine.profiles.roster()
        general = await engine.settings(profile)
        told = settings.model_copy(update={"style": general.style, "prompt": general.prompt})
        yield make_strategy(
            told,
            roster.summarizer(general, profile),
            lambda name: roster.summarizer(general.model_copy(update={"summarizer": name}), None),
        )


def _first(settings: Settings, means: Summarizers, said: list[str]) -> Strategy:
    """The strategy that is named; native, and a note, where a stored name means nothing."""
    try:
        contract.get(settings.strategy)
    except ConfigError as error:
        if settings.sources.get("strategy", CALL) == CALL:
            raise
        said.append(f"{error}; {NATIVE} is used instead")
        return _configured(NATIVE, settings, means, said)
    return _configured(settings.strategy, settings, means, said)


def _configured(name: str, settings: Settings, means: Summarizers, said: list[str]) -> Strategy:
    """The strategy with its config; with the defaults, and a note, where that is broken."""
    kind = contract.get(name)
    general = {"style": settings.style, "prompt": settings.prompt} if name == NATIVE else {}
    config = {**general, **settings.strategy_config.get(name, {})}
    try:
        return kind.make_from(config, means)
    except ConfigError as error:
        sources = {settings.sources.get(each, CALL) for each in ("strategy_config", *general)}
        if CALL in sources and name == settings.strategy:
            raise ConfigError(f"config of {name}: {error}") from None
        said.append(f"the config of {name} cannot be used, its defaults are: {error}")
        return kind.make_from(None, means)
