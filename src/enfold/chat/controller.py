"""The chat controller: runs turns in one session and finds the model that answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from enfold.budget import DEFAULT_THRESHOLD
from enfold.chat.meter import Meter
from enfold.engine import Engine, Outcome, Session, Status, turns
from enfold.engine.profiles import Roster
from enfold.engine.turns import Answer, Answerer, Listener
from enfold.errors import ConfigError, NotFoundError
from enfold.llm.prices import prices
from enfold.llm.profiles import Profile

ChooseAnswerer: TypeAlias = Callable[[str | None, str | None], Awaitable[Answerer]]
"""Finds the answerer by profile name and model name; raises `ConfigError` if there is none."""

NO_MODEL = (
    "No model is set up. Add one with `enfold profiles add NAME --provider … --model …`. Until "
    "then /history, /search, /context and /summarize work."
)

_RETAINED_SHARE = 4
"""With a window set for this chat, the newest quarter of it stays verbatim."""


class ChatController:
    """Turns, compression and status of one session, for a terminal or the web UI."""

    def __init__(
        self,
        engine: Engine,
        session: Session,
        choose: ChooseAnswerer,
        *,
        answerer: Answerer | None = None,
        no_answerer_reason: str = NO_MODEL,
        window: int | None = None,
    ) -> None:
        self.engine = engine
        self.session = session
        self.answerer = answerer
        """None while no model is set up: the session can still be read, searched and compressed."""
        self.no_answerer_reason = no_answerer_reason
        """Shown when a question cannot be answered: the cause and what to do."""
        self.window = window
        self._choose = choose

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
        """Send a user message and return the answer."""
        return await turns.ask(
            self.session, text, self._required_answerer(), listen, **self.settings
        )

    async def answer(self, listen: Listener) -> Answer:
        """Have the model answer the last user message."""
        return await turns.answer(self.session, self._required_answerer(), listen, **self.settings)

    async def compress(self) -> Outcome:
        """Compress the session now."""
        return await self.session.compress(**self.settings)

    async def retry(self) -> Outcome:
        """Repeat the compression that failed and blocked the session."""
        return await (self.session.retry() if self.window is None else self.compress())

    async def status(self) -> Status:
        """Return the figures of the session's context."""
        system = self.answerer.system if self.answerer is not None else ""
        return await self.session.status(system=system, **self.settings)

    async def meter(self) -> Meter:
        """Return the same figures for a bar."""
        return Meter.of(await self.status(), self.window)

    async def begin(self, profile: str | None, model: str | None) -> None:
        """Find the answerer. Without one, raise only if a profile or model was named."""
        try:
            await self._switch_to(await self._choose(profile, model))
        except (ConfigError, NotFoundError) as error:
            if profile is not None or model is not None:
                raise
            self.no_answerer_reason = str(error)

    async def use(self, name: str) -> None:
        """Switch to another model: `provider:model`, or the name of a profile."""
        is_model = ":" in name
        await self._switch_to(
            await self._choose(None if is_model else name, name if is_model else None)
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
        record = await session.record()
        named = profile or (None if model else record.profile)
        found = _by_model(roster, model, named) if model else _by_name(roster, named)
        return _answerer(roster, found, model.partition(":")[2] if model else None)

    return choose


def _usable(roster: Roster) -> list[Profile]:
    return [each for each in roster.stored.profiles.values() if isinstance(each, Profile)]


def _by_name(roster: Roster, name: str | None) -> Profile:
    """Return the profile of that name; without a name, the only profile."""
    stored = roster.stored.profiles
    if name is not None:
        found = stored.get(name)
        if isinstance(found, Profile):
            return found
        if found is not None:
            raise ConfigError(f"profile {name!r}: {found}")
        raise NotFoundError(f"no profile {name!r}; there are: {', '.join(stored) or 'none'}")
    usable = _usable(roster)
    if not usable:
        raise ConfigError(NO_MODEL)
    if len(usable) > 1:
        names = ", ".join(each.name for each in usable)
        raise ConfigError(f"several profiles: {names}. Choose one with /model NAME or --profile")
    return usable[0]


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
