"""Thresholds: the one in force, in tokens of the model in use, and where it comes from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from enfold.budget import Load, decide
from enfold.engine.state import Level, in_force, model_of, policy_of, threshold_of
from enfold.llm.models import detect
from enfold.settings import Settings
from enfold.store import sessions
from enfold.store.database import Database
from enfold.store.records import SessionKey


@dataclass(frozen=True, slots=True)
class EffectiveThreshold:
    """When a compression is due, before anything is sent beside the history."""

    model: str
    tokens: int
    """More than so many tokens of history."""
    limit: int
    """What a history may take at all: the largest input without the safety margin."""
    max_input: int
    share: float | None
    """Of the limit. None where an absolute number of tokens is set."""
    setting: str
    """What sets it: `threshold`, `trigger_ratio` or `max_tokens`."""
    source: str
    """Who: session, profile, model, database, config file, environment or default."""
    is_automatic: bool
    """False: it is not acted on, only the hard limit is."""
    note: str = ""
    """What was passed over on the way to it, and why."""


def read_effective(
    db: Database, outside: Sequence[Level], session: SessionKey | None = None
) -> EffectiveThreshold:
    """The threshold in force, in a session or where no session says otherwise."""
    record = None if session is None else sessions.get(db, session)
    settings, profile, model_id, _ = in_force(db, record, {}, outside)
    model = model_of(db, model_id) or detect(model_id)
    threshold = threshold_of(profile, model, settings)
    decision = decide(Load(0), model.limits, policy_of(settings, threshold))
    setting = _setting(settings)
    source = threshold.source if setting == "threshold" else settings.sources[setting]
    return EffectiveThreshold(
        model=model.id,
        tokens=decision.threshold_tokens,
        limit=decision.limit,
        max_input=model.max_input,
        share=None if setting == "max_tokens" else decision.threshold.share,
        setting=setting,
        source=source,
        is_automatic=settings.auto_compress,
        note=threshold.note,
    )


def _setting(settings: Settings) -> str:
    """The setting that decides."""
    if settings.trigger_ratio is not None:
        return "trigger_ratio"
    return "threshold" if settings.max_tokens is None else "max_tokens"
