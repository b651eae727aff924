"""Wiring: create the engine and strategies from settings. No other module does."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from enfold import settings as config
from enfold.engine import Engine
from enfold.engine.engine import compress_queued
from enfold.engine.profiles import LOCAL, Profiles
from enfold.engine.relay import Relay
from enfold.engine.state import check_strategies, message_of
from enfold.errors import ConfigError
from enfold.events import CompressionFinished, Event
from enfold.flush import Flush, MemoryWriter, Sink
from enfold.llm.calls import Gateway
from enfold.llm.costs import current
from enfold.llm.gateway import ModelGateway
from enfold.llm.keys import Keys
from enfold.modelconfig import SHIPPED
from enfold.queue import Queue
from enfold.queue.shared import WorkHandler
from enfold.settings import Settings
from enfold.store import catalog, open_store, outbox
from enfold.strategies import contract
from enfold.strategies.contract import Prices as PriceOf
from enfold.strategies.contract import Strategy, Summarizers
from enfold.strategies.fallback import WithFallback
from enfold.summaries import Summarizer
from enfold.summaries.local import LocalSummarizer

CALL = "call"

NATIVE = "native"
"""The default strategy, which also replaces one that fails."""

_log = logging.getLogger("enfold")


@asynccontextmanager
async def open_engine(
    url: str | None = None,
    *,
    sink: Sink | None = None,
    summarizers: Mapping[str, Summarizer] | None = None,
    gateway: Gateway | None = None,
) -> AsyncIterator[Engine]:
    """Open the engine over a database: the one at `url`, else that of the settings.

    `sink` receives summarized messages instead of the built-in memory; `summarizers` are further
    summarizers by name; `gateway` calls models instead of the real gateway.
    """
    static_settings = (
        ("config file", config.from_file()),
        ("environment", config.from_environment()),
    )
    ignored: list[str] = []
    settings = config.resolve(static_settings, ignored)
    for note in (*ignored, *_faults(settings)):
        _log.warning("%s", note)
    by_name = {LOCAL: LocalSummarizer(), **(summarizers or {})}
    address = url or config.database_url()
    async with (
        await open_store(address) as store,
        ModelGateway() as real_models,
    ):
        if not await store.read(catalog.has_model_configs):
            await store.write(catalog.add_model_configs, (*SHIPPED, *current()))
        queue = Queue(store, address)
        engine = Engine(
            store,
            profiles=Profiles(
                store,
                keys=Keys(config.variable, config.key_folder),
                gateway=gateway or real_models,
                summarizers=by_name,
                asks_limits=gateway is None,
                local_servers=config.local_servers(),
            ),
            queue=queue,
            strategy=make_strategy,
            static_settings=static_settings,
        )
        relay = Relay(store, engine.events)
        relay.start()

        def wake_queue(event: Event) -> None:
            if isinstance(event, CompressionFinished):
                queue.wake()

        stop_listening = engine.events.subscribe(wake_queue)
        flush = Flush(store, sink or MemoryWriter(store, by_name[LOCAL], message_of))
        compressing = WorkHandler(
            partial(compress_queued, engine), batch=1, seconds=300, at_once=4, before_closing=False
        )
        queue.start({outbox.MEMORY: WorkHandler(flush), outbox.COMPRESSION: compressing})
        try:
            yield engine
        finally:
            stop_listening()
            await queue.stop()
            await relay.stop()


def _faults(settings: Settings) -> Iterator[str]:
    """Yield what is wrong with valid values, and what applies instead."""
    configs = {"strategy_config": settings.strategy_config}
    thresholds = settings.profile_thresholds
    checks: Sequence[tuple[Callable[[Mapping[str, Any]], None], Mapping[str, Any], str]] = (
        (check_strategies, {"strategy": settings.strategy}, f"{NATIVE} is used instead"),
        (check_strategies, configs, "the defaults of this strategy apply"),
        (config.check_thresholds, thresholds, "the general threshold applies"),
    )
    for check, given, instead in checks:
        try:
            check(given)
        except ConfigError as error:
            yield f"{error}; {instead}"


def local_summarizer() -> Summarizer:
    """Return the built-in summarizer, which needs no model, key or network."""
    return LocalSummarizer()


def make_strategy(
    settings: Settings,
    summarizer: Summarizer,
    by_profile: Callable[[str], Summarizer] | None = None,
    notes: tuple[str, ...] = (),
) -> Strategy:
    """Return the strategy of the settings, with native as its fallback.

    A wrong value of a call is an error. A stored value that can no longer be used is replaced by
    the default, with a note in the report.
    """
    means = Summarizers(summarizer, parallel=settings.parallel_summaries)
    if by_profile is not None:
        means = replace(means, by_profile=by_profile)
    warnings = list(notes)
    name = settings.strategy
    try:
        contract.get(name)
    except ConfigError as error:
        if settings.sources.get("strategy", CALL) == CALL:
            raise
        warnings.append(f"{error}; {NATIVE} is used instead")
        name = NATIVE
    first = _make_strategy(name, settings, means, warnings)
    if name == NATIVE:
        return WithFallback(first, None, tuple(warnings)) if warnings else first
    second = _make_strategy(NATIVE, settings, means, warnings)
    return WithFallback(first, second, tuple(warnings))


@asynccontextmanager
async def open_strategy(
    settings: Settings, profile: str | None = None, *, gateway: Gateway | None = None
) -> AsyncIterator[Strategy]:
    """Open the strategy of the settings, for conversations that are not stored.

    With a profile of the database its models write the summaries, as in a session with this
    profile; without one the built-in summarizer does.
    """
    async with open_priced_strategy(settings, profile, gateway=gateway) as (strategy, _):
        yield strategy


@asynccontextmanager
async def open_priced_strategy(
    settings: Settings, profile: str | None = None, *, gateway: Gateway | None = None
) -> AsyncIterator[tuple[Strategy, PriceOf]]:
    """Open a strategy as `open_strategy` does, with the prices of its summarizers."""
    if profile is None:
        # The built-in summarizer calls no model.
        yield make_strategy(settings, local_summarizer()), lambda *_: 0.0
        return
    async with open_engine(gateway=gateway) as engine:
        roster = await engine.profiles.roster()
        general = await engine.settings(profile)
        sources = {**settings.sources, "style": general.sources["style"]}
        prompted = settings.model_copy(
            update={"style": general.style, "prompt": general.prompt, "sources": sources}
        )
        strategy = make_strategy(
            prompted,
            roster.summarizer(general, profile),
            partial(roster.named, settings=general, profile=profile),
        )
        yield strategy, roster.price


def _make_strategy(
    name: str, settings: Settings, means: Summarizers, warnings: list[str]
) -> Strategy:
    """Return the strategy with its config; with the defaults and a warning if that is broken."""
    kind = contract.get(name)
    general: dict[str, Any] = {}
    if name == NATIVE:
        general["prompt"] = settings.prompt
        # A style that is not set is chosen by the messages.
        usual = CALL if "style" in settings.model_fields_set else "default"
        if settings.sources.get("style", usual) != "default":
            general["style"] = settings.style
    values = {**general, **settings.strategy_config.get(name, {})}
    try:
        return kind.make_from(values, means)
    except ConfigError as error:
        sources = {settings.sources.get(each, CALL) for each in ("strategy_config", *general)}
        if CALL in sources and name == settings.strategy:
            raise ConfigError(f"config of {name}: {error}") from None
        warnings.append(f"the config of {name} cannot be used, its defaults apply: {error}")
        return kind.make_from(None, means)
