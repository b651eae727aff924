"""Choosing who answers: a profile that is named, the session's own, or the only one there is."""

from __future__ import annotations

from enfold.engine import Engine, Session
from enfold.engine.roster import Roster
from enfold.engine.turns import Answerer
from enfold.errors import ConfigError, NotFoundError
from enfold.llm.prices import prices
from enfold.llm.profiles import Profile
from enfold.store import sessions
from enfold.talk.talk import NOBODY, Choose


def chooser(engine: Engine, session: Session) -> Choose:
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
        raise ConfigError(NOBODY)
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
