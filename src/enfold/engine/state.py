"""The state of a session at one moment: all that a decision needs, read in one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from enfold.budget import (
    DEFAULT_THRESHOLD,
    Decision,
    Policy,
    Threshold,
    decide,
    resolve_threshold,
)
from enfold.engine.models import from_row
from enfold.engine.presets import expand
from enfold.engine.requests import Request
from enfold.engine.viewing import view_of
from enfold.modelconfig import ModelConfig
from enfold.retention import Retention
from enfold.settings import Settings, resolve, retention_policy
from enfold.store import catalog, sessions, snapshots, views
from enfold.store.database import Database
from enfold.store.records import SessionKey, Undo, ViewRows
from enfold.view import View

Level: TypeAlias = tuple[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class State:
    """A session with its settings in force, its model, and its view as rows."""

    rows: ViewRows
    settings: Settings
    model_id: str
    model: ModelConfig | None
    """None while nobody has configured the model."""
    threshold: Threshold
    undo: Undo | None
    """The last undo on the branch."""
    notes: tuple[str, ...] = ()
    """What there is to say of the settings, such as that a preset is gone."""


def read_state(
    db: Database,
    key: SessionKey,
    call: Mapping[str, Any],
    outside: Sequence[Level],
    *,
    without: str | None = None,
) -> State:
    """The state of the session; `outside` are the levels that are not in the database.

    `without` names a snapshot to leave out of account.
    """
    settings, fields, model_id, notes = _in_force(db, key, call, outside)
    model = _model(db, model_id)
    return State(
        rows=views.view(
            db, key, share_across_branches=settings.share_across_branches, without=without
        ),
        settings=settings,
        model_id=model_id,
        model=model,
        threshold=_threshold(fields, model, settings),
        undo=snapshots.last_undo(db, key),
        notes=notes,
    )


def read_model(
    db: Database, key: SessionKey, outside: Sequence[Level]
) -> tuple[str, ModelConfig | None]:
    """The session's model and its config, without the cost of the view."""
    _, _, model_id, _ = _in_force(db, key, {}, outside)
    return model_id, _model(db, model_id)


def read_settings(db: Database, outside: Sequence[Level]) -> Settings:
    """The settings that hold where a session, a profile or a call says nothing else."""
    levels, _ = expand(db, (("database", catalog.settings(db, "global")), *outside))
    return resolve(levels)


def _in_force(
    db: Database, key: SessionKey, call: Mapping[str, Any], outside: Sequence[Level]
) -> tuple[Settings, Mapping[str, Any], str, tuple[str, ...]]:
    """The settings, what the profile says, the model, and what there is to say of the settings."""
    session = sessions.get(db, key)
    profile = catalog.profile(db, session.profile) if session.profile else None
    fields = profile.fields if profile is not None else {}
    levels, notes = expand(
        db,
        (
            ("call", call),
            ("session", session.settings),
            ("profile", fields.get("settings", {})),
            ("database", catalog.settings(db, "global")),
            *outside,
        ),
    )
    settings = resolve(levels)
    return settings, fields, session.model or fields.get("model") or settings.model, notes


def _model(db: Database, id: str) -> ModelConfig | None:
    row = catalog.model_config(db, id)
    return from_row(row) if row is not None else None


def decide_on(state: State, model: ModelConfig, request: Request) -> tuple[View, Decision]:
    """The view, and whether it must be compressed before it is sent."""
    view = view_of(state.rows, model.tokenizer)
    load = request.load(view.tokens, view.estimate, model.tokenizer)
    return view, decide(load, model.limits, _policy(state), max_output=request.max_output)


def retention_of(state: State, model: ModelConfig, keep_tokens: int | None = None) -> Retention:
    """What stays verbatim, in this run or always."""
    if keep_tokens is not None:
        return Retention("tokens", keep_tokens, state.settings.keep_first)
    return retention_policy(state.settings, model.retention_tokens)


def _threshold(
    profile: Mapping[str, Any], model: ModelConfig | None, settings: Settings
) -> Threshold:
    """The levels in the order call, session, profile, model, everything that holds for all models.

    A model with the default's value has none of its own.
    """
    share, source = settings.threshold, settings.sources["threshold"]
    own = model is not None and model.threshold != DEFAULT_THRESHOLD
    return resolve_threshold(
        call=share if source == "call" else None,
        session=share if source == "session" else None,
        profile=profile.get("threshold"),
        model=model.threshold if model is not None and own else None,
        default=share or DEFAULT_THRESHOLD,
    )


def _policy(state: State) -> Policy:
    settings = state.settings
    automatic = settings.auto_compress and not _is_suspended(state)
    if settings.trigger_ratio is not None:
        threshold = Threshold(settings.trigger_ratio, settings.sources["trigger_ratio"])
        return Policy(threshold, margin=0.0, automatic=automatic, early_mark=settings.early_mark)
    return Policy(
        state.threshold,
        max_tokens=settings.max_tokens,
        automatic=automatic,
        early_mark=settings.early_mark,
    )


def _is_suspended(state: State) -> bool:
    """After an undo nothing is folded unasked until the user has said something more."""
    undo = state.undo
    return undo is not None and not any(
        row.role == "user" for row in state.rows.after if row.depth > undo.depth
    )
