"""The small tables: model configs, profiles, settings, usage."""

from __future__ import annotations

from dataclasses import replace

import pytest

from enfold.errors import NotFoundError
from enfold.modelconfig import ModelConfig
from enfold.records import SessionRecord, UsageEvent
from enfold.store import Store, catalog, sessions

GPT = ModelConfig("openai:gpt-5", 272_000, 128_000, 0.95, 2_000, "o200k_base", 1.0, "default")
ODD = ModelConfig("local:a:b/c", 1, 0, 0.05, 0, "o200k_base", 1.18, "manual", ("threshold",))


async def test_model_configs(store: Store) -> None:
    await store.write(catalog.add_model_configs, [GPT, ODD])
    assert await store.read(catalog.model_config, "openai:gpt-5") == GPT
    assert await store.read(catalog.model_config, "local:a:b/c") == ODD
    query = "SELECT created_at, last_updated FROM model_configs WHERE id = 'openai:gpt-5'"
    row = await store.read(lambda db: db._cursor().execute(query).fetchone())
    assert row["created_at"] == row["last_updated"] > 0
    edited = replace(GPT, max_input=100_000, source="manual")
    await store.write(catalog.put_model_config, edited)
    await store.write(catalog.add_model_configs, [GPT])
    assert [
        (each.id, each.max_input, each.source) for each in await store.read(catalog.model_configs)
    ] == [("local:a:b/c", 1, "manual"), ("openai:gpt-5", 100_000, "manual")]
    await store.write(catalog.delete_model_config, "local:a:b/c")
    assert await store.read(catalog.model_config, "local:a:b/c") is None
    with pytest.raises(NotFoundError, match="local:a:b/c"):
        await store.write(catalog.delete_model_config, "local:a:b/c")


async def test_profiles(store: Store) -> None:
    fields = {"provider": "openai", "key": {"env": "OPENAI_API_KEY"}, "prices": None, "x": "\x00"}
    await store.write(catalog.put_profile, "work", fields)
    await store.write(catalog.put_profile, "home", {})
    stored = await store.read(catalog.profile, "work")
    assert stored is not None
    assert stored.fields == fields
    await store.write(catalog.put_profile, "work", {"provider": "anthropic"})
    assert [(each.name, each.fields) for each in await store.read(catalog.profiles)] == [
        ("home", {}),
        ("work", {"provider": "anthropic"}),
    ]
    await store.write(catalog.delete_profile, "home")
    assert await store.read(catalog.profile, "home") is None
    with pytest.raises(NotFoundError, match="home"):
        await store.write(catalog.delete_profile, "home")


async def test_settings(store: Store) -> None:
    assert await store.read(catalog.settings, "global") == {}
    await store.write(catalog.put_setting, "global", "threshold", 0.9)
    await store.write(catalog.put_setting, "global", "threshold", 0.8)
    await store.write(catalog.put_setting, "global", "note", {"a": [None, "\x00"]})
    await store.write(catalog.put_setting, "other", "threshold", 1)
    assert await store.read(catalog.settings, "global") == {
        "note": {"a": [None, "\x00"]},
        "threshold": 0.8,
    }
    await store.write(catalog.delete_setting, "global", "threshold")
    await store.write(catalog.delete_setting, "global", "never set")
    assert list(await store.read(catalog.settings, "global")) == ["note"]


async def test_usage_is_summed_and_unknown_is_not_zero(
    store: Store, session: SessionRecord
) -> None:
    other = await store.write(sessions.get_or_create, "ours", "other")
    theirs = await store.write(sessions.get_or_create, "theirs", "other")
    call = UsageEvent("reply", "work", "openai:gpt-5", 100, 40, 10, 0.5, session=session.key)
    events = [
        call,
        replace(call, cost=None, output_tokens=None),
        replace(call, cost=0.25, created_at=1_000),
        replace(call, kind="summary"),
        replace(call, session=other.key),
        replace(call, session=theirs.key),
        replace(call, session=None),
    ]
    await store.write(catalog.add_usage, events)
    reply, summary = await store.read(catalog.usage_of_session, session.key)
    assert (reply.kind, reply.profile, reply.model) == ("reply", "work", "openai:gpt-5")
    assert (reply.calls, reply.input_tokens, reply.cached_tokens, reply.output_tokens) == (
        3, 300, 120, 20,
    )  # fmt: skip
    assert (reply.cost, reply.unknown_costs) == (0.75, 1)
    assert (summary.kind, summary.calls, summary.unknown_costs) == ("summary", 1, 0)
    ours, _ = await store.read(catalog.usage_of_namespace, "ours")
    assert (ours.calls, ours.cost) == (4, 1.25)
    recent, _ = await store.read(catalog.usage_of_session, session.key, since=2_000)
    assert recent.calls == 2


async def test_usage_of_no_session_is_its_namespaces(store: Store, session: SessionRecord) -> None:
    of_a_session = UsageEvent("reply", model="m", cost=1.0, session=session.key, created_at=2_000)
    of_none = UsageEvent("reply", model="m", cost=0.5, namespace="ours", created_at=1_000)
    await store.write(catalog.add_usage, [of_a_session, of_none, replace(of_none, namespace="x")])
    (total,) = await store.read(catalog.usage_of_namespace, "ours")
    assert (total.calls, total.cost) == (2, 1.5)
    (recent,) = await store.read(catalog.usage_of_namespace, "ours", since=1_500)
    assert (recent.calls, recent.cost) == (1, 1.0)


async def test_no_usage_is_nothing(store: Store, session: SessionRecord) -> None:
    await store.write(catalog.add_usage, [])
    assert await store.read(catalog.usage_of_session, session.key) == []
