"""The state of a session at one moment: all that a decision needs, read in one transaction."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
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
from enfold.errors import InputError
from enfold.modelconfig import ModelConfig
from enfold.retention import Measure, Retention
from enfold.settings import Settings, resolve, retention_policy
from enfold.store import catalog, sessions, snapshots, views
from enfold.store.database import Database
from enfold.store.records import Session, SessionKey, Undo, ViewRows
from enfold.view import View

Level: TypeAlias = tuple[str, Mapping[str, Any]]
Keep: TypeAlias = tuple[Measure, float]
"""How much of the newest part stays in one run."""


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
    own_prices: Mapping[str, Any] | None = None
    """Those that the profile states itself."""
    notes: tuple[str, ...] = ()
    """What there is to say of the settings, such as that a preset is gone."""


def read_state(
    db: Database,
    key: SessionKey,
    call: Mapping[str, Any],
    outside: Sequence[Level],
    *,
    tip: str | None = None,
    without: Collection[str] = (),
) -> State:
    """The state of the session; `outside` are the levels that are not in the database.

    `tip` is where the branch ends, the current one if it is None; `without` names snapshots
    to leave out of account.
    """
    settings, fields, model_id, notes = in_force(db, sessions.get(db, key), call, outside)
    model = model_of(db, model_id)
    return State(
        rows=views.view(
            db, key, tip, share_across_branches=settings.share_across_branches, without=without
        ),
        settings=settings,
        model_id=model_id,
        model=model,
        threshold=threshold_of(fields, model, settings),
        undo=snapshots.last_undo(db, key, tip),
        own_prices=fields.get("prices"),
        notes=notes,
    )


def read_model(
    db: Database, key: SessionKey, outside: Sequence[Level]
) -> tuple[str, ModelConfig | None]:
    """The session's model and its config, without the cost of the view."""
    _, _, model_id, _ = in_force(db, sessions.get(db, key), {}, outside)
    return model_id, model_of(db, model_id)


def read_settings(db: Database, outside: Sequence[Level], profile: str | None = None) -> Settings:
    """The settings that hold where a session or a call says nothing else; a profile's, if named."""
    row = catalog.profile(db, profile) if profile is not None else None
    own = _said_by_profile(row.fields) if row is not None else {}
    given = (("profile", own), ("database", catalog.settings(db, "global")), *outside)
    return resolve(expand(db, given)[0])


def _said_by_profile(fields: Mapping[str, Any]) -> dict[str, Any]:
    """A profile's settings, its prompt among them."""
    return {"prompt": fields.get("prompt"), **fields.get("settings", {})}


def read_session_settings(db: Database, key: SessionKey, outside: Sequence[Level]) -> Settings:
    """The settings in force in a session."""
    settings, _, _, _ = in_force(db, sessions.get(db, key), {}, outside)
    return settings


def in_force(
    db: Database, session: Session | None, call: Mapping[str, Any], outside: Sequence[Level]
) -> tuple[Settings, Mapping[str, Any], str, tuple[str, ...]]:
    """The settings, what the profile says, the model, and what there is to say of the settings.

    None is a session that is not there yet.
    """
    profile = catalog.profile(db, session.profile) if session and session.profile else None
    fields = profile.fields if profile is not None else {}
    levels, notes = expand(
        db,
        (
            ("call", call),
            ("session", session.settings if session else {}),
            ("profile", _said_by_profile(fields)),
            ("database", catalog.settings(db, "global")),
            *outside,
        ),
    )
    settings = resolve(levels)
    named = session.model if session else None
    if settings.sources["model"] == "call":
        named = settings.model
    return settings, fields, named or _model_in(fields) or settings.model, notes


def _model_in(fields: Mapping[str, Any]) -> str | None:
    """The model that a profile asks, as model configs are called."""
    if "provider" in fields and "model" in fields:
        return f"{fields['provider']}:{fields['model']}"
    return None


def model_of(db: Database, id: str) -> ModelConfig | None:
    """The model's config. None while nobody has configured it."""
    row = catalog.model_config(db, id)
    return from_row(row) if row is not None else None


def decide_on(state: State, model: ModelConfig, request: Request) -> tuple[View, Decision]:
    """The view, and whether it must be compressed before it is sent."""
    view = view_of(state.rows, model.tokenizer)
    load = request.load(view.tokens, view.estimate, model.tokenizer)
    policy = policy_of(state.settings, state.threshold, suspended=_is_suspended(state))
    return view, decide(load, model.limits, policy, max_output=request.max_output)


def keeping(tokens: int | None, messages: int | None) -> Keep | None:
    """What stays in one run; None as always."""
    if tokens is not None and messages is not None:
        raise InputError("keep_tokens and keep_messages exclude each other; give one of them")
    if messages is not None:
        return ("messages", messages)
    return None if tokens is None else ("tokens", tokens)


def is_done_since(state: State, request: Request) -> bool:
    """Whether nobody waits for it, and the view was compressed since it was asked for."""
    snapshot = state.rows.snapshot
    if request.asked_at is None or snapshot is None:
        return False
    return snapshot.created_at >= request.asked_at


def retention_of(state: State, model: ModelConfig, keep: Keep | None = None) -> Retention:
    """What stays verbatim, in this run or always."""
    if keep is not None:
        return Retention(*keep, state.settings.keep_first)
    return retention_policy(state.settings, model.retention_tokens)


def threshold_of(
    profile: Mapping[str, Any], model: ModelConfig | None, settings: Settings
) -> Threshold:
    """The levels in the order call, session, profile, model, everything that holds for all models.

    A model with the default's value has none of its own.
    """
    share, source = settings.threshold, settings.sources["threshold"]
    own = model is not None and model.threshold != DEFAULT_THRESHOLD
    found = resolve_threshold(
        call=share if source == "call" else None,
        session=share if source == "session" else None,
        profile=profile.get("threshold"),
        model=model.threshold if model is not None and own else None,
        default=share or DEFAULT_THRESHOLD,
    )
    # What the budget calls the default is whatever holds for all models; settings know whose it is.
    return replace(found, source=source) if found.source == "default" else found


def policy_of(settings: Settings, threshold: Threshold, *, suspended: bool = False) -> Policy:
    """How it is decided; `suspended` while nothing is to be folded unasked."""
    automatic = settings.auto_compress and not suspended
    if settings.trigger_ratio is not None:
        threshold = Threshold(settings.trigger_ratio, settings.sources["trigger_ratio"])
        return Policy(threshold, margin=0.0, automatic=automatic, early_mark=settings.early_mark)
    return Policy(
        threshold,
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
