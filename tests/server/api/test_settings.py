"""Settings over HTTP: the values in force and their levels."""

from __future__ import annotations

import json
from typing import Any

from tests.server.conftest import Client


def _value(value: float, level: str) -> dict[str, object]:
    return {"value": value, "level": level, "source": level, "note": ""}


def _body(**value: object) -> dict[str, Any]:
    """Return a JSON body whose half surrogate pairs are escaped."""
    return {"content": json.dumps(value), "headers": {"content-type": "application/json"}}


async def test_the_stronger_level_wins_and_is_named(client: Client) -> None:
    await client.post("/api/sessions", json={"id": "chat"})
    changed = await client.patch("/api/settings", json={"settings": {"threshold": 0.5}})
    assert changed.json()["threshold"] == _value(0.5, "database")
    of_session = await client.patch(
        "/api/sessions/chat/settings", json={"settings": {"threshold": 0.7}}
    )
    assert of_session.json()["threshold"] == _value(0.7, "session")
    assert of_session.json()["keep_first"] == _value(0, "default")
    unset = await client.patch(
        "/api/sessions/chat/settings", json={"settings": {"threshold": None}}
    )
    assert unset.json()["threshold"] == _value(0.5, "database")


async def test_nothing_is_changed_if_anything_is_wrong(client: Client) -> None:
    wrong = {"settings": {"keep_first": 3, "threshold": 3}}
    answer = await client.patch("/api/settings", json=wrong)
    assert answer.status_code == 400
    assert "0.95" in answer.json()["error"]["message"]
    assert (await client.get("/api/settings")).json()["keep_first"]["value"] == 0
    assert (await client.patch("/api/settings", json={"settings": {}})).status_code == 400


async def test_strategies_are_listed_with_their_schemas(client: Client) -> None:
    found = {each["id"]: each for each in (await client.get("/api/strategies")).json()}
    assert list(found)[:4] == ["native", "lossless", "truncation", "smart"]
    truncation = found["truncation"]
    assert "preserveRecentCount" in truncation["config_schema"]["properties"]
    assert truncation["capabilities"]["individual"] is True
    assert truncation["version"]


async def test_names_of_another_system_are_answered_with_what_became_of_them(
    client: Client,
) -> None:
    named = {"autoCondenseContextPercent": 80, "nativeConfig": {}, "smartConfig": {"passes": []}}
    found = (await client.patch("/api/settings", json={"settings": named})).json()
    assert (found["threshold"]["value"], found["threshold"]["note"]) == (
        0.8,
        "autoCondenseContextPercent became threshold, as a share",
    )
    assert "config of native" in found["strategy_config"]["note"]
    assert "config of smart" in found["strategy_config"]["note"]
    assert found["keep_first"]["note"] == ""
    fields = {"provider": "openai", "model": "m", "inputPrice": 1, "contextWindow": 100_000}
    saved = await client.put("/api/profiles/fast", json={"fields": fields})
    assert saved.json()["notes"] == [
        "inputPrice became prices.input",
        "contextWindow became max_input of the model, without its output",
    ]
    wrong = {"fields": {**fields, "profileThresholds": 60}}
    refused = await client.put("/api/profiles/fast", json=wrong)
    assert (refused.status_code, "profileThresholds" in refused.text) == (400, True)
    preset = {"provider": "truncation", "truncationConfig": {}, "smartConfig": {"passes": []}}
    assert (await client.put("/api/presets/mine", json=preset)).json()["notes"] == [
        "provider became strategy",
        "truncationConfig became config",
        "smartConfig became nothing: the strategy is truncation",
    ]


async def test_the_config_of_one_strategy_leaves_those_of_others(client: Client) -> None:
    await client.post("/api/sessions", json={"id": "chat"})
    truncation, native = {"preserveRecentCount": 4}, {"style": "code"}
    for path in ("/api/settings", "/api/sessions/chat/settings"):
        await client.patch(path, json={"settings": {"truncationConfig": truncation}})
        changed = await client.patch(path, json={"settings": {"nativeConfig": native}})
        configs = {"truncation": truncation, "native": native}
        assert changed.json()["strategy_config"]["value"] == configs
        await client.patch(path, json={"settings": {"strategy_config": None}})
        both = {"truncationConfig": truncation, "nativeConfig": native}
        changed = await client.patch(path, json={"settings": both})
        assert changed.json()["strategy_config"]["value"] == configs
        await client.patch(path, json={"settings": {"nativeConfig": None}})
        left = (await client.get(path)).json()["strategy_config"]["value"]
        assert left == {"truncation": truncation}
        await client.patch(path, json={"settings": {"strategy_config": None}})


async def test_nothing_is_changed_if_a_later_setting_is_wrong(client: Client) -> None:
    wrong = {"settings": {"keep_first": 3, "strategy": "magic"}}
    assert (await client.patch("/api/settings", json=wrong)).status_code == 400
    assert (await client.get("/api/settings")).json()["keep_first"]["value"] == 0


async def test_a_text_that_cannot_be_stored_does_not_stop_sessions(client: Client) -> None:
    for path in ("/api/settings", "/api/sessions/chat/settings"):
        await client.post("/api/sessions", json={"id": "chat"})
        for name, value in (("model", "openai:\ud800"), ("prompt", "Be\0brief.")):
            answer = await client.patch(path, **_body(settings={name: value}))
            assert (answer.status_code, name in answer.text) == (400, True)
        assert (await client.get("/api/sessions/chat/status")).status_code == 200
    fields = {"provider": "openai", "model": "m\ud800"}
    refused = await client.put("/api/profiles/odd", **_body(fields=fields))
    assert (refused.status_code, "model: U+0000" in refused.text) == (400, True)


async def test_a_threshold_out_of_bounds_is_refused_with_its_profile(client: Client) -> None:
    for percent in (500, -5, 3, True):
        named = {"settings": {"profileThresholds": {"fast": 60, "slow": percent}}}
        answer = await client.patch("/api/settings", json=named)
        assert (answer.status_code, "slow" in answer.text) == (400, True), percent
    named = {"settings": {"profileThresholds": {"fast": 60, "slow": -1}}}
    assert (await client.patch("/api/settings", json=named)).status_code == 200
