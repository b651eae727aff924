"""A talk: a session, who answers in it, and what holds while it lasts. No screen is known here."""

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
from enfold.store import sessions

ChooseAnswerer: TypeAlias = Callable[[str | None, str | None], Awaitable[Answerer]]
"""Who answers, by the name of a profile and of a model; `ConfigError` says why nobody can."""

NO_MODEL = (
    "no model can answer yet: `enfold profiles add NAME --provider … --model …` adds one; until "
    "then /history, /search, /context and /summarize work"
)

_KEPT = 4
"""A window given for one talk keeps this part of it verbatim: a quarter."""


class ChatController:
    """What a person at a screen does with a session."""

    def __init__(
        self,
        engine: Engine,
        session: Session,
        choose: ChooseAnswerer,
        *,
        answerer: Answerer | None = None,
        why_nobody: str = NO_MODEL,
        window: int | None = None,
    ) -> None:
        self.engine = engine
        self.session = session
        self.answerer = answerer
        """None while nobody can answer: then the session is for looking, searching and folding."""
        self.why_nobody = why_nobody
        """What is to be done so that somebody can."""
        self.window = window
        self._choose = choose

    @property
    def settings(self) -> Mapping[str, Any]:
        """What holds for this talk alone."""
        if self.window is None:
            return {}
        return {
            "max_tokens": int(self.window * DEFAULT_THRESHOLD),
            "retention_tokens": self.window // _KEPT,
        }

    async def ask(self, text: str, listen: Listener) -> Answer:
        """Say something, and be answered."""
        return await turns.ask(self.session, text, self._who(), listen, **self.settings)

    async def answer(self, listen: Listener) -> Answer:
        """Be answered to what was said last."""
        return await turns.answer(self.session, self._who(), listen, **self.settings)

    async def compress(self) -> Outcome:
        """Fold what is old, now."""
        return await self.session.compress(**self.settings)

    async def retry(self) -> Outcome:
        """Try again the compression whose failure blocked the session."""
        return await (self.session.retry() if self.window is None else self.compress())

    async def status(self) -> Status:
        """How full the context is."""
        system = self.answerer.system if self.answerer is not None else ""
        return await self.session.status(system=system, **self.settings)

    async def meter(self) -> Meter:
        """The same as a bar shows it."""
        return Meter.of(await self.status(), self.window)

    async def begin(self, profile: str | None, model: str | None) -> None:
        """Find who answers. Nobody is an error only if somebody was named."""
        try:
            await self._take(await self._choose(profile, model))
        except (ConfigError, NotFoundError) as error:
            if profile is not None or model is not None:
                raise
            self.why_nobody = str(error)

    async def use(self, name: str) -> None:
        """Let another model answer from now on: `provider:model`, or the name of a profile."""
        is_model = ":" in name
        await self._take(await self._choose(None if is_model else name, name if is_model else None))

    async def _take(self, answerer: Answerer) -> None:
        """The session is counted and kept for this model from now on."""
        self.session = await self.engine.session(
            self.session.id,
            namespace=self.session.namespace,
            profile=answerer.profile,
            model=answerer.connection.name,
        )
        self.answerer = answerer

    def _who(self) -> Answerer:
        if self.answerer is None:
            raise ConfigError(self.why_nobody)
        return self.answerer


def profile_chooser(engine: Engine, session: Session) -> ChooseAnswerer:
    """Chooses among the engine's profiles, for this session."""

    async def choose(profile: str | None, model: str | None) -> Answerer:
        roster = await engine.profiles.roster()
        record = await engine.store.read(sessions.get, session.key)
        named = profile or (None if model else record.profile)
        found = _by_model(roster, model, named) if model else _by_name(roster, named)
        return _answerer(roster, found, model.partition(":")[2] if model else None)

    return choose


def _usable(roster: Roster) -> list[Profile]:
    return [each for each in roster.stored.profiles.values() if isinstance(each, Profile)]


def _by_name(roster: Roster, name: str | None) -> Profile:
    """The profile of that name; without a name, the only one."""
    stored = roster.stored.profiles
    if name is not None:
        found = stored.get(name)
        if isinstance(found, Profile):
            return found
        if found is not None:
            raise ConfigError(f"profile {name!r}: {found}")
        raise NotFoundError(f"no profile {name!r}; there are: {', '.join(stored) or 'none yet'}")
    usable = _usable(roster)
    if not usable:
        raise ConfigError(NO_MODEL)
    if len(usable) > 1:
        names = ", ".join(each.name for each in usable)
        raise ConfigError(f"several profiles could answer: {names}. Say /model NAME, or --profile")
    return usable[0]


def _by_model(roster: Roster, model: str, name: str | None) -> Profile:
    """A profile through which the model can be asked: the one named, else one of its provider."""
    provider, colon, rest = model.partition(":")
    if not (provider and colon and rest):
        raise ConfigError(f"model {model!r}: expected provider:model")
    if name is not None:
        found = _by_name(roster, name)
        if found.provider != provider:
            raise ConfigError(f"profile {name!r} is of {found.provider}, not of {provider}")
        return found
    same = [each for each in _usable(roster) if each.provider == provider]
    exact = [each for each in same if each.model == rest]
    if not same:
        raise ConfigError(
            f"model {model!r}: no profile of {provider}; `enfold profiles add NAME "
            f"--provider {provider} --model {rest}` adds one"
        )
    return (exact or same)[0]


def _answerer(roster: Roster, profile: Profile, model: str | None) -> Answerer:
    """The profile's model, or another of the same provider."""
    try:
        connection = roster.connection(profile, model)
    except ConfigError as error:
        raise ConfigError(f"profile {profile.name!r}: {error}") from None
    own = profile.prices if connection.model == profile.model else None
    known = prices(connection.provider, connection.model, own)
    return Answerer(roster.gateway, connection, profile.name, known)
