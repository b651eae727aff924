"""Catalog: the tables of model configs, profiles, settings, usage and failures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Literal

from enfold.errors import NotFoundError
from enfold.jsontext import dump_text, loads_or_text
from enfold.modelconfig import OWN_VALUES, ModelConfig
from enfold.records import (
    KEY_NAMESPACE,
    KEY_NAMESPACES_END,
    CompressionRow,
    DailyFailures,
    DailyUsage,
    ProfileRow,
    SessionKey,
    UsageEvent,
    UsageTotal,
)
from enfold.store.database import Database, Row
from enfold.text.words import storable

_OF_USAGE = tuple(field.name for field in fields(UsageEvent))


def model_configs(db: Database) -> tuple[ModelConfig, ...]:
    """Return all model configs by id."""
    return tuple(map(_model_config, db.rows("model_configs")))


def has_model_configs(db: Database) -> bool:
    """Return True if there is a model config."""
    return bool(db.rows("model_configs"))


def model_config(db: Database, id: str) -> ModelConfig | None:
    """Return the config of a model, `provider:model`, or None."""
    row = db.row("model_config", id=id)
    return _model_config(row) if row else None


def put_model_config(db: Database, config: ModelConfig) -> None:
    """Write a model config, in place of the one with its id."""
    db.change("put_model_config", **_model_params(db, config))


def add_model_configs(db: Database, configs: Iterable[ModelConfig]) -> None:
    """Write the model configs whose ids are new; existing ones stay as they are."""
    db.change_many("add_model_config", [_model_params(db, config) for config in configs])


def delete_model_config(db: Database, id: str) -> None:
    """Delete a model config."""
    if not db.change("delete_model_config", id=id):
        raise NotFoundError(f"there is no model config {id!r}")


def profiles(db: Database) -> tuple[ProfileRow, ...]:
    """Return all profiles by name."""
    return tuple(_profile(row) for row in db.rows("profiles"))


def profile(db: Database, name: str) -> ProfileRow | None:
    """Return the profile of that name, or None."""
    row = db.row("profile", name=name)
    return _profile(row) if row else None


def put_profile(db: Database, name: str, fields: Mapping[str, Any]) -> None:
    """Write a profile, in place of the one with its name."""
    db.change("put_profile", name=name, fields=dump_text(dict(fields)), now=db.now())


def delete_profile(db: Database, name: str) -> None:
    """Delete a profile."""
    if not db.change("delete_profile", name=name):
        raise NotFoundError(f"there is no profile {name!r}")


def settings(db: Database, scope: str) -> dict[str, Any]:
    """Return the settings of a scope."""
    # A value that is not JSON stays a text, which is refused where the setting is checked.
    return {row["key"]: loads_or_text(row["value"]) for row in db.rows("settings", scope=scope)}


def put_setting(db: Database, scope: str, key: str, value: Any) -> None:
    """Write a setting. The next read in any process returns it."""
    db.change("put_setting", scope=scope, key=key, value=dump_text(value), now=db.now())


def delete_setting(db: Database, scope: str, key: str) -> None:
    """Delete a setting, so that it is inherited again; no error if it was not set."""
    db.change("delete_setting", scope=scope, key=key)


def add_usage(db: Database, events: Iterable[UsageEvent]) -> None:
    """Write the usage of model calls, also with the message that is the reply, if it is stored."""
    rows = [{name: getattr(event, name) for name in _OF_USAGE} for event in events]
    if not rows:
        return
    now = db.now()
    for row in rows:
        row["created_at"] = now if row["created_at"] is None else row["created_at"]
    db.change_many("insert_usage", rows)
    for row in rows:
        if row["message_id"] is not None and row["session"] is not None:
            usage = {name: row[name] for name in ("input_tokens", "output_tokens")}
            db.change("set_reported_usage", session=row["session"], id=row["message_id"], **usage)


def usage_of_session(db: Database, session: SessionKey, *, since: int = 0) -> list[UsageTotal]:
    """Return the usage of a session by purpose, profile and model."""
    rows = db.rows("usage_of_session", session=session, since=since)
    return [UsageTotal(**row) for row in rows]


def last_input_of_session(db: Database, session: SessionKey) -> tuple[int | None, int]:
    """Return the tokens that the last turn of a session sent, and its time; None is unknown."""
    row = db.row("last_input_of_session", session=session)
    return (None, 0) if row is None else (row["input_tokens"], row["created_at"])


def usage_of_namespace(db: Database, namespace: str, *, since: int = 0) -> list[UsageTotal]:
    """Return the usage of all sessions of a namespace by purpose, profile and model."""
    rows = db.rows("usage_of_namespace", since=since, **_listing(namespace))
    return [UsageTotal(**row) for row in rows]


def _model_config(row: Row) -> ModelConfig:
    names = row["own"].split()
    own = tuple(name for name in OWN_VALUES if name in names)
    return ModelConfig(**{**dict(row), "own": own})


def _model_params(db: Database, config: ModelConfig) -> dict[str, Any]:
    values = {field.name: getattr(config, field.name) for field in fields(ModelConfig)}
    named = {"provider": config.provider, "model": config.model}
    return {**values, **named, "own": " ".join(config.own), "now": db.now()}


def _profile(row: Row) -> ProfileRow:
    """Return a profile; if its fields cannot be read it has none, and says what is missing."""
    fields = loads_or_text(row["fields"])
    return ProfileRow(**{**dict(row), "fields": fields if isinstance(fields, dict) else {}})


def compressions(db: Database, namespace: str, *, since: int = 0) -> list[CompressionRow]:
    """Return the compressions of a namespace, oldest first, without undone and reworded ones."""
    rows = db.rows("compressions_since", namespace=namespace, since=since)
    return [CompressionRow(**row) for row in rows if row["tokens_before"] is not None]


def trial_snapshots(db: Database, namespace: str, *, since: int = 0) -> Sequence[Row]:
    """Return the content of summaries that were written while a prompt was on trial."""
    return db.rows("trial_snapshots", namespace=namespace, since=since)


_COUNTS_SINCE = {"pins": "count_pins_since", "recalls": "count_recalls_since"}
_LATEST_SINCE = {"pins": "pins_since", "recalls": "recalls_since"}


def add_recall(db: Database, session: SessionKey, question: str) -> None:
    """Record a question to the full history, or the reference of a message."""
    db.change("insert_recall", session=session, question=storable(question), now=db.now())


def count_since(
    db: Database, table: Literal["pins", "recalls"], namespace: str, *, since: int
) -> int:
    """Return the number of pins, or of recalls, of a namespace since a time."""
    row = db.row(_COUNTS_SINCE[table], namespace=namespace, since=since)
    return 0 if row is None else row["amount"]


def latest_since(
    db: Database, table: Literal["pins", "recalls"], namespace: str, *, since: int, limit: int
) -> Sequence[Row]:
    """Return the latest pins, or recalls, of a namespace since a time."""
    return db.rows(_LATEST_SINCE[table], namespace=namespace, since=since, limit=limit)


def usage_by_day(db: Database, namespace: str, *, since: int = 0) -> list[DailyUsage]:
    """Return the usage of all sessions of a namespace by day."""
    rows = db.rows("usage_by_day", since=since, **_listing(namespace))
    return [DailyUsage(**row) for row in rows]


def _listing(namespace: str) -> dict[str, str]:
    """Return the namespace, and the first and the end of the namespaces that it lists."""
    listed = {"prefix": KEY_NAMESPACE, "end": KEY_NAMESPACES_END}
    return {"namespace": namespace, **(dict.fromkeys(listed, "") if namespace else listed)}


def add_failure(db: Database, session: SessionKey, code: str, *, automatic: bool) -> None:
    """Record a failed compression."""
    db.change("insert_failure", session=session, code=code, automatic=int(automatic), now=db.now())


def failures_by_day(db: Database, namespace: str, *, since: int = 0) -> list[DailyFailures]:
    """Return the number of failed compressions of a namespace by day."""
    return [
        DailyFailures(**row) for row in db.rows("failures_by_day", namespace=namespace, since=since)
    ]
