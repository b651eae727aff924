"""The chat controller: runs turns in one session and finds the model that answers."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from enfold.budget import DEFAULT_THRESHOLD
from enfold.engine import Engine, Outcome, Session, Status, turns
from enfold.engine.profiles import Roster
from enfold.engine.turns import Answer, Answerer, Listener
from enfold.errors import ConfigError, GatewayError, NotFoundError
from enfold.llm.costs import prices
from enfold.llm.profiles import Profile
from enfold.text.sentences import shorten_title

_log = logging.getLogger("enfold.chat")

ChooseAnswerer: TypeAlias = Callable[[str | None, str | None], Awaitable[Answerer]]
"""Finds the answerer by profile name and model name; raises `ConfigError` if there is none."""

NO_MODEL = (
    "No model is set up. Add one with `enfold profiles add NAME --provider … --model …`. Until "
    "then /history, /search, /context and /summarize work."
)

_RETAINED_SHARE = 4
"""With a window set for this chat, the newest quarter of it stays verbatim."""


@dataclass(eq=False)
class ChatController:
    """Turns, compression and status of one session, for a terminal or the web UI."""

    engine: Engine
    session: Session
    window: int | None = None
    """A smaller window for this chat, in tokens."""
    answerer: Answerer | None = None
    """None while no model is set up: the session can still be read, searched and compressed."""
    no_answerer_reason: str = NO_MODEL
    """Shown when a question cannot be answered: the cause and what to do."""
    choose: ChooseAnswerer = field(init=False)
    """Chooses among the engine's profiles for this session."""

    def __post_init__(self) -> None:
        self.choose = profile_chooser(self.engine, self.session)

    @property
    def settings(self) -> Mapping[str, Any]:
        """Settings that apply to this chat only."""
        if self.window is None:
            return {}
        return {
            "max_tokens": int(self.window * DEFAULT_THRESHOLD),
            "retention_tokens": self.window // _RETAINED_SHARE,
        }

    async def ask(self, text: str, listen: Listener) -> Answer:
        """Store a user message and return the model's answer.

        The message is stored even if no model can answer it.
        """
        await turns.store_question(self.session, text, listen)
        record = await self.session.record()
        if record.depth == 1 and not record.title:
            await self.session.configure(title=shorten_title(text))
        return await self.answer(listen)

    async def answer(self, listen: Listener) -> Answer:
        """Have the model answer the last user message."""
        return await turns.answer(self.session, self._required_answerer(), listen, **self.settings)

    async def write_title(self) -> str | None:
        """Have the model name the conversation after its first answer; return the new title.

        None if the title stays, also if the call fails: the first words are a title too.
        """
        try:
            return await turns.write_title(self.session, self._required_answerer())
        except (GatewayError, ConfigError) as error:
            _log.info("session %s keeps its title: %s", self.session.id, error)
            return None

    async def compress(self) -> Outcome:
        """Compress the session now."""
        return await self.session.compress(**self.settings)

    async def retry(self, summarizer: str | None = None) -> Outcome:
        """Repeat the compression that failed, with another summarizer if one is named."""
        settings = dict(self.settings)
        if summarizer is not None:
            settings["summarizer"] = summarizer
        if self.window is None:
            return await self.session.retry(**settings)
        return await self.session.compress(**settings)

    async def status(self) -> Status:
        """Return the figures of the session's context."""
        system = self.answerer.system if self.answerer is not None else ""
        return await self.session.status(system=system, **self.settings)

    async def begin(self, profile: str | None, model: str | None) -> None:
        """Find the answerer. Without one, raise only if a profile or model was named."""
        try:
            await self._switch_to(await self.choose(profile, model))
        except (ConfigError, NotFoundError) as error:
            if profile is not None or model is not None:
                raise
            self.no_answerer_reason = str(error)

    async def use(self, name: str) -> None:
        """Switch to another model: `provider:model`, or the name of a profile."""
        is_model = ":" in name
        await self._switch_to(
            await self.choose(None if is_model else name, name if is_model else None)
        )

    async def _switch_to(self, answerer: Answerer) -> None:
        """Store the profile and model in the session, so that counts and limits are theirs."""
        self.session = await self.engine.session(
            self.session.id,
            namespace=self.session.namespace,
            profile=answerer.profile,
            model=answerer.connection.name,
        )
        self.answerer = answerer

    def _required_answerer(self) -> Answerer:
        if self.answerer is None:
            raise ConfigError(self.no_answerer_reason)
        return self.answerer


def profile_chooser(engine: Engine, session: Session) -> ChooseAnswerer:
    """Return a function that chooses among the engine's profiles for this session."""

    async def choose(profile: str | None, model: str | None) -> Answerer:
        roster = await engine.profiles.roster()
        if profile is None and model is None:
            found = await _for_session(engine, session, roster)
        else:
            found = _by_model(roster, model, profile) if model else _by_name(roster, profile)
        return _answerer(roster, found, model.partition(":")[2] if model else None)

    return choose


def _usable(roster: Roster) -> list[Profile]:
    return [each for each in roster.stored.profiles.values() if isinstance(each, Profile)]


async def _for_session(engine: Engine, session: Session, roster: Roster) -> Profile:
    """Return the session's profile, else the default profile, else the first.

    A profile that was removed is passed over.
    """
    wanted = ((await session.record()).profile, (await engine.settings()).default_profile)
    for name in wanted:
        if name is not None and name in roster.stored.profiles:
            return _by_name(roster, name)
    usable = _usable(roster)
    if not usable:
        raise ConfigError(NO_MODEL)
    return usable[0]


def _by_name(roster: Roster, name: str | None) -> Profile:
    """Return the profile of that name."""
    stored = roster.stored.profiles
    found = stored.get(name or "")
    if isinstance(found, Profile):
        return found
    if found is not None:
        raise ConfigError(f"profile {name!r}: {found}")
    raise NotFoundError(f"no profile {name!r}; available: {', '.join(stored) or 'none'}")


def _by_model(roster: Roster, model: str, name: str | None) -> Profile:
    """Return the named profile, else one of the model's provider; the same model first."""
    provider, colon, rest = model.partition(":")
    if not (provider and colon and rest):
        raise ConfigError(f"model {model!r}: expected provider:model")
    if name is not None:
        found = _by_name(roster, name)
        if found.provider != provider:
            raise ConfigError(f"profile {name!r} uses {found.provider}, not {provider}")
        return found
    same = [each for each in _usable(roster) if each.provider == provider]
    exact = [each for each in same if each.model == rest]
    if not same:
        raise ConfigError(
            f"model {model!r}: no profile uses {provider}; add one with `enfold profiles add NAME "
            f"--provider {provider} --model {rest}`"
        )
    return (exact or same)[0]


def _answerer(roster: Roster, profile: Profile, model: str | None) -> Answerer:
    """Return the answerer for the profile's model, or for another model of its provider."""
    try:
        connection = roster.connection(profile, model)
    except ConfigError as error:
        raise ConfigError(f"profile {profile.name!r}: {error}") from None
    # Prices that the profile sets are for its own model only.
    override = profile.own_prices if connection.model == profile.model else None
    model_prices = prices(connection.provider, connection.model, override)
    return Answerer(roster.gateway, connection, profile.name, model_prices)
