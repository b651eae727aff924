"""Model configs, profiles, settings and usage: the small tables beside the sessions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from typing import Any

from enfold.errors import NotFoundError
from enfold.jsontext import dump_text, loads
from enfold.records import (
    CompressionRow,
    DailyFailures,
    DailyUsage,
    ModelConfigRow,
    ProfileRow,
    SessionKey,
    UsageEvent,
    UsageTotal,
)
from enfold.store.database import Database, Row

_OF_USAGE = tuple(field.name for field in fields(UsageEvent))


def model_configs(db: Database) -> tuple[ModelConfigRow, ...]:
    """Every model config, by id."""
    return tuple(ModelConfigRow(**row) for row in db.rows("model_configs"))


def model_config(db: Database, id: str) -> ModelConfigRow | None:
    """The config of a model, `provider:model`, if there is one."""
    row = db.row("model_config", id=id)
    return ModelConfigRow(**row) if row else None


def put_model_config(db: Database, config: ModelConfigRow) -> None:
    """Write a model config, in place of the one that has its id."""
    db.change("put_model_config", **_model_params(db, config))


def add_model_configs(db: Database, configs: Iterable[ModelConfigRow]) -> None:
    """Write those model configs whose ids are new, and leave what is there as it is."""
    db.change_many("add_model_config", [_model_params(db, config) for config in configs])


def delete_model_config(db: Database, id: str) -> None:
    """Forget a model config."""
    if not db.change("delete_model_config", id=id):
        raise NotFoundError(f"there is no model config {id!r}")


def profiles(db: Database) -> tuple[ProfileRow, ...]:
    """Every profile, by name."""
    return tuple(_profile(row) for row in db.rows("profiles"))


def profile(db: Database, name: str) -> ProfileRow | None:
    """The profile of that name, if there is one."""
    row = db.row("profile", name=name)
    return _profile(row) if row else None


def put_profile(db: Database, name: str, fields: Mapping[str, Any]) -> None:
    """Write a profile, in place of the one that has its name."""
    db.change("put_profile", name=name, fields=dump_text(dict(fields)), now=db.now())


def delete_profile(db: Database, name: str) -> None:
    """Forget a profile."""
    if not db.change("delete_profile", name=name):
        raise NotFoundError(f"there is no profile {name!r}")


def settings(db: Database, scope: str) -> dict[str, Any]:
    """The settings of a scope."""
    return {row["key"]: loads(row["value"]) for row in db.rows("settings", scope=scope)}


def put_setting(db: Database, scope: str, key: str, value: Any) -> None:
    """Write a setting; in effect for whoever reads it next, in any process."""
    db.change("put_setting", scope=scope, key=key, value=dump_text(value), now=db.now())


def delete_setting(db: Database, scope: str, key: str) -> None:
    """Forget a setting, so that it is inherited again. One that was not set is no error."""
    db.change("delete_setting", scope=scope, key=key)


def add_usage(db: Database, events: Iterable[UsageEvent]) -> None:
    """Write what calls of models used."""
    rows = [{name: getattr(event, name) for name in _OF_USAGE} for event in events]
    if not rows:
        return
    now = db.now()
    for row in rows:
        row["created_at"] = now if row["created_at"] is None else row["created_at"]
    db.change_many("insert_usage", rows)


def usage_of_session(db: Database, session: SessionKey, *, since: int = 0) -> list[UsageTotal]:
    """What a session's calls used, by purpose, profile and model."""
    rows = db.rows("usage_of_session", session=session, since=since)
    return [UsageTotal(**row) for row in rows]


def usage_of_namespace(db: Database, namespace: str, *, since: int = 0) -> list[UsageTotal]:
    """What the calls of all sessions of a namespace used."""
    rows = db.rows("usage_of_namespace", namespace=namespace, since=since)
    return [UsageTotal(**row) for row in rows]


def _model_params(db: Database, config: ModelConfigRow) -> dict[str, Any]:
    provider, _, model = config.id.partition(":")
    values = asdict(config)
    del values["created_at"], values["last_updated"]
    return {**values, "provider": provider, "model": model, "now": db.now()}


def _profile(row: Row) -> ProfileRow:
    return ProfileRow(**{**dict(row), "fields": loads(row["fields"])})


def compressions(db: Database, namespace: str, *, since: int = 0) -> list[CompressionRow]:
    """Those of a namespace, oldest first; what was undone, or only worded anew, is left out."""
    rows = db.rows("compressions_since", namespace=namespace, since=since)
    return [CompressionRow(**row) for row in rows if row["tokens_before"] is not None]


def usage_by_day(db: Database, namespace: str, *, since: int = 0) -> list[DailyUsage]:
    """What the calls of all sessions of a namespace used, day by day."""
    return [DailyUsage(**row) for row in db.rows("usage_by_day", namespace=namespace, since=since)]


def add_failure(db: Database, session: SessionKey, code: str, *, automatic: bool) -> None:
    """Write that a compression failed."""
    db.change("insert_failure", session=session, code=code, automatic=int(automatic), now=db.now())


def failures_by_day(db: Database, namespace: str, *, since: int = 0) -> list[DailyFailures]:
    """How many compressions failed in a namespace, day by day."""
    return [
        DailyFailures(**row) for row in db.rows("failures_by_day", namespace=namespace, since=since)
    ]
