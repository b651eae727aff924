"""Profiles in the engine: kept, given keys, tried out, and condensing sessions."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import enfold
from enfold.engine import Engine, Session
from enfold.engine.transfer import export_archive
from enfold.errors import (
    AuthenticationError,
    BlockedError,
    ConfigError,
    GatewayError,
    NotFoundError,
    SummaryError,
    UnavailableError,
)
from enfold.llm.calls import Call, Connection, ModelReply, Secret
from enfold.llm.costs import Prices
from enfold.store import catalog
from enfold.testing import Answer, ScriptedGateway, reply
from tests.databases import opened_before
from tests.engine.conftest import WINDOW, talk
from tests.llm.servers.loopback import Loopback, ScriptedAnswer

KEY = "sk-very-secret-7f3a"
WORK = {"provider": "openai", "model": "gpt-4o", "key": "env:WORK_KEY"}
CHEAP = {"provider": "anthropic", "model": "claude-haiku-4-5", "key": "env:CHEAP_KEY"}
SMALL = "openai:gpt-4o-mini"
SUMMARY = "They agreed on the plan."


@pytest.fixture
def gateway() -> ScriptedGateway:
    return ScriptedGateway(SUMMARY)


@pytest.fixture
async def engine(
    tmp_path: Path, gateway: ScriptedGateway, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Engine]:
    monkeypatch.setenv("WORK_KEY", KEY)
    monkeypatch.setenv("CHEAP_KEY", f"{KEY}-cheap")
    url = opened_before(tmp_path / "chats.db")
    async with enfold.open(url, gateway=gateway) as engine:
        for id in ("openai:gpt-4o", "compatible:tiny"):
            await engine.models.edit(id, max_input=WINDOW, max_output=20_000, retention_tokens=300)
        yield engine


async def full(engine: Engine, profile: str | None = "work") -> Session:
    """A session with more than its model takes."""
    session = await engine.session("chat", profile=profile)
    await talk(session, 40)
    return session


def called_connections(gateway: ScriptedGateway) -> list[str]:
    return [connection.name for connection in gateway.connections]


async def test_profiles_are_kept_and_listed(engine: Engine, tmp_path: Path) -> None:
    await engine.profiles.save("work", WORK)
    await engine.profiles.save("home", {**CHEAP, "threshold": 70})
    async with enfold.open(f"sqlite:///{tmp_path / 'chats.db'}") as again:
        assert [each.name for each in await again.profiles.all()] == ["home", "work"]
        assert (await again.profiles.get("home")).threshold == 70


async def test_an_existing_profile_is_replaced_only_on_request(engine: Engine) -> None:
    await engine.profiles.save("work", WORK)
    with pytest.raises(ConfigError, match="there is a profile 'work' already"):
        await engine.profiles.save("work", CHEAP)
    await engine.profiles.save("work", CHEAP, replace=True)
    assert (await engine.profiles.get("work")).provider == "anthropic"


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("local", {}, "'local' is the name of a summarizer"),
        ("cheapest", {}, "'cheapest' is the name of a summarizer"),
        ("x", {"threshold": 3}, "threshold: 3 is neither a share"),
        ("x", {"condensing_profile": "gone"}, "condensing_profile: there is no profile 'gone'"),
        ("x", {"settings": {"colour": 1}}, "settings: no setting 'colour'"),
        ("x", {"settings": {"strategy": "magic"}}, "settings: no strategy 'magic'"),
        ("x", {"key": KEY}, "key: expected env:NAME"),
    ],
)
async def test_an_invalid_profile_is_not_stored(
    engine: Engine, name: str, change: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        await engine.profiles.save(name, {**WORK, **change})
    assert KEY not in str(caught.value)
    assert await engine.profiles.all() == ()


async def test_the_error_of_an_unknown_profile_lists_the_known_ones(engine: Engine) -> None:
    with pytest.raises(NotFoundError, match=r"no profile 'x'; .* `enfold profiles add`"):
        await engine.profiles.get("x")
    await engine.profiles.save("work", WORK)
    with pytest.raises(NotFoundError, match="no profile 'x'; available: work"):
        await engine.session("chat", profile="x")


async def test_a_condensing_profile_is_removed_only_by_force(engine: Engine) -> None:
    await engine.profiles.save("cheap", {**CHEAP, "condensing_profile": "cheap"})
    await engine.profiles.save("work", {**WORK, "condensing_profile": "cheap"})
    with pytest.raises(ConfigError, match="'cheap' condenses for work"):
        await engine.profiles.remove("cheap")
    await engine.profiles.remove("cheap", force=True)
    await engine.profiles.remove("work")
    assert await engine.profiles.all() == ()
    with pytest.raises(NotFoundError):
        await engine.profiles.remove("work")


async def test_a_profile_that_was_stored_broken_is_listed_with_its_fault(engine: Engine) -> None:
    await engine.store.write(catalog.put_profile, "odd", {"provider": "acme"})
    (listed,) = await engine.profiles.all()
    assert listed.profile is None
    assert "no provider 'acme'" in listed.fault
    with pytest.raises(ConfigError, match="profile 'odd': it cannot be used"):
        await engine.profiles.get("odd")


async def test_a_profile_is_tried_with_one_small_call(
    engine: Engine, gateway: ScriptedGateway
) -> None:
    await engine.profiles.save("work", WORK)
    tried = await engine.profiles.test("work")
    assert tried.model == "gpt-4o"
    assert tried.seconds >= 0
    assert tried.cost is not None
    assert 0 < tried.cost < 0.001
    (call,) = gateway.calls
    assert (call.max_tokens or 0) < 1_000
    (connection,) = gateway.connections
    assert connection.key is not None
    assert connection.key.reveal() == KEY
    gateway.script(AuthenticationError("not that key"))
    with pytest.raises(AuthenticationError):
        await engine.profiles.test("work")


async def test_the_error_of_a_missing_key_names_the_profile(engine: Engine) -> None:
    await engine.profiles.save("work", {**WORK, "key": "env:NOT_SET"})
    with pytest.raises(ConfigError, match="profile 'work': the environment variable NOT_SET"):
        await engine.profiles.test("work")


async def test_limits_are_those_that_the_provider_says(engine: Engine) -> None:
    answer = ScriptedAnswer.of({"data": [{"id": "llama", "meta": {"n_ctx": 8_192}}]})
    async with Loopback(answer) as server:
        where = {"provider": "compatible", "model": "llama", "base_url": server.url}
        await engine.profiles.save("mine", where)
        config = await engine.profiles.discover("mine")
    assert (config.max_input + config.max_output, config.source) == (8_192, "api")
    session = await engine.session("chat", profile="mine")
    assert (await session.status()).context_limit < 8_192


async def test_limits_that_it_does_not_say_are_those_that_are_known(engine: Engine) -> None:
    async with Loopback(ScriptedAnswer.of({"data": []})) as server:
        where = {"provider": "compatible", "model": "llama", "base_url": server.url}
        await engine.profiles.save("mine", where)
        config = await engine.profiles.discover("mine")
    assert (config.max_input, config.max_output, config.source) == (128_000, 4_096, "default")
    await engine.profiles.save("big", {"provider": "vertex", "model": "gemini-2.5-flash"})
    assert (await engine.profiles.discover("big")).source == "library"


# A session with a profile


async def test_a_session_has_its_profiles_model_and_threshold(engine: Engine) -> None:
    await engine.profiles.save("work", {**WORK, "threshold": 60, "settings": {"keep_first": 1}})
    session = await engine.session("chat", profile="work")
    status = await session.status()
    assert (status.model, status.context_limit) == ("openai:gpt-4o", 3_800)
    assert status.threshold_token_count == 2_280
    assert status.threshold_source == "profile"
    other = await engine.session("other", profile="work", model="openai:gpt-4-turbo")
    assert (await other.status()).model == "openai:gpt-4-turbo"


async def test_a_threshold_of_minus_one_is_inherited(engine: Engine) -> None:
    await engine.profiles.save("work", {**WORK, "threshold": -1})
    session = await engine.session("chat", profile="work")
    assert (await session.status()).threshold_source != "profile"


async def test_a_preview_says_what_the_summary_is_expected_to_cost(
    engine: Engine, gateway: ScriptedGateway
) -> None:
    await engine.profiles.save("cheap", CHEAP)
    await engine.profiles.save("work", {**WORK, "condensing_profile": "cheap"})
    session = await full(engine)
    expected = (await session.preview()).cost
    assert gateway.calls == []
    done = await session.compress()
    assert expected is not None
    assert done.cost is not None
    assert done.cost / 3 < expected < done.cost * 3
    where = {"provider": "compatible", "model": "tiny", "base_url": "http://127.0.0.1:9"}
    await engine.profiles.save("tiny", where)
    assert (await session.preview(summarizer="tiny", keep_tokens=0)).cost is None


async def test_a_session_is_condensed_by_its_condensing_profile(
    engine: Engine, gateway: ScriptedGateway
) -> None:
    await engine.profiles.save("cheap", CHEAP)
    await engine.profiles.save("work", {**WORK, "condensing_profile": "cheap"})
    session = await full(engine)
    prepared = await session.prepare("What now?")
    assert prepared.compression is not None
    assert prepared.compression.author == "cheap (anthropic:claude-haiku-4-5)"
    assert prepared.compression.cost is not None
    assert prepared.compression.cost > 0
    assert SUMMARY in prepared.messages[0].parts[0].text  # type: ignore[union-attr]  # a text
    assert called_connections(gateway) == ["anthropic:claude-haiku-4-5"]
    assert gateway.calls[0].temperature == 0.3
    (snapshot,) = await session.summaries()
    assert snapshot.author == "cheap (anthropic:claude-haiku-4-5)"


async def test_without_one_the_providers_cheap_model_condenses(
    engine: Engine, gateway: ScriptedGateway
) -> None:
    await engine.profiles.save("work", WORK)
    done = await (await full(engine)).compress()
    assert done.author == "work (openai:gpt-4o-mini)"
    assert called_connections(gateway) == ["openai:gpt-4o-mini"]
    assert gateway.connections[0].key is not None


async def test_the_report_names_skipped_profiles(
    engine: Engine, gateway: ScriptedGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CHEAP_KEY")
    await engine.profiles.save("cheap", CHEAP)
    await engine.profiles.save("work", {**WORK, "condensing_profile": "cheap"})
    gateway.script(GatewayError("there is no such model"), SUMMARY)
    done = await (await full(engine)).compress()
    assert done.author == "work (openai:gpt-4o)"
    first, *others = called_connections(gateway)
    assert first == "openai:gpt-4o-mini"
    assert set(others) == {"openai:gpt-4o"}  # in pieces: its window is small
    warnings = "\n".join(done.report.warnings)
    assert "condensing profile 'cheap': the environment variable CHEAP_KEY is not set" in warnings
    assert "cheap model of openai, 'gpt-4o-mini': there is no such model" in warnings


async def test_no_model_is_called_without_a_profile(
    engine: Engine, gateway: ScriptedGateway
) -> None:
    done = await (await full(engine, None)).compress()
    assert done.author == "local"
    assert gateway.calls == []


async def test_a_setting_names_the_summarizer(engine: Engine, gateway: ScriptedGateway) -> None:
    await engine.profiles.save("cheap", CHEAP)
    session = await full(engine, None)
    assert (await session.compress(summarizer="cheap")).author.startswith("cheap (")  # type: ignore[union-attr]  # compressed
    assert called_connections(gateway) == ["anthropic:claude-haiku-4-5"]
    await engine.profiles.save("work", WORK)
    other = await engine.session("other", profile="work")
    await talk(other, 40)
    assert (await other.compress(summarizer="local")).author == "local"
    assert len(gateway.calls) == 1


async def test_a_profiles_prompt_is_used_and_a_sessions_wins(
    engine: Engine, gateway: ScriptedGateway
) -> None:
    await engine.set("prompt", "Of all: {conversation_history}")
    await engine.profiles.save("work", {**WORK, "prompt": "Only decisions, please."})
    session = await full(engine)
    await session.compress()
    await session.configure(prompt="Only names.")
    await session.regenerate()
    first, second = ["".join(p.text for p in c.messages[0].parts) for c in gateway.calls]  # type: ignore[union-attr]  # texts
    assert first.startswith("Only decisions, please.")
    assert second.startswith("Only names.")


async def test_passes_of_the_smart_strategy_ask_the_profile_they_name(
    engine: Engine, gateway: ScriptedGateway
) -> None:
    await engine.profiles.save("cheap", CHEAP)
    config = {
        "passes": [
            {
                "id": "fold",
                "name": "Fold",
                "selection": {"type": "preserve_recent", "keepRecentCount": 4},
                "mode": "batch",
                "batchConfig": {
                    "operation": "summarize",
                    "summarizationConfig": {"apiProfile": "cheap"},
                },
                "execution": {"type": "always"},
            }
        ]
    }
    session = await full(engine, None)
    done = await session.compress(strategy="smart", strategy_config={"smart": config})
    assert called_connections(gateway) == ["anthropic:claude-haiku-4-5"], done.warnings
    assert done.author == "cheap (anthropic:claude-haiku-4-5)"


@pytest.mark.parametrize(
    ("condensing", "author"),
    [
        (None, "work (openai:gpt-4o-mini)"),
        ("dear", "work (openai:gpt-4o-mini)"),
        ("nano", "nano (openai:gpt-5-nano)"),
    ],
)
async def test_the_preset_cost_asks_the_cheapest_model_of_the_profile(
    engine: Engine, gateway: ScriptedGateway, condensing: str | None, author: str
) -> None:
    await engine.profiles.save("dear", {**WORK, "model": "gpt-4-turbo"})
    await engine.profiles.save("nano", {**WORK, "model": "gpt-5-nano"})
    chosen = {} if condensing is None else {"condensing_profile": condensing}
    await engine.profiles.save("work", {**WORK, **chosen})
    session = await full(engine)
    await session.configure(preset="cost")
    done = await session.compress()
    assert done.author == author, done.warnings
    assert len(set(called_connections(gateway))) == 1
    await session.undo()
    calls = len(gateway.calls)
    assert (await session.compress(summarizer="local")).author == "local"
    assert len(gateway.calls) == calls


async def test_usage_of_summaries_is_recorded_even_if_they_fail(
    engine: Engine, gateway: ScriptedGateway
) -> None:
    await engine.profiles.save("small", {**WORK, "model": "gpt-4o-mini"})
    session = await full(engine, "small")
    gateway.script("")
    with pytest.raises(SummaryError):
        await session.compress()
    (in_vain,) = await session.usage()
    assert (in_vain.kind, in_vain.profile, in_vain.model) == ("summary", "small", SMALL)
    assert (in_vain.calls, in_vain.output_tokens) == (1, 0)
    assert in_vain.input_tokens > 1_000
    gateway.script(SUMMARY)
    done = await session.compress()
    (total,) = await session.usage()
    assert (total.calls, total.unknown_costs) == (2, 0)
    assert done.cost is not None
    assert total.cost == pytest.approx(in_vain.cost + done.cost)


async def _cut_off(connection: Connection, call: Call) -> ModelReply:
    return reply("They agreed on", connection, call, ending="length")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("", "the answer was empty"),
        (" \n ", "the answer was empty"),
        (_cut_off, "cut off"),
        (UnavailableError("the provider is failing"), "the provider is failing"),
    ],
    ids=["empty", "blank", "cut off", "failing"],
)
async def test_a_bad_answer_changes_nothing_and_blocks_with_one_clear_message(
    engine: Engine, gateway: ScriptedGateway, answer: Answer, words: str
) -> None:
    await engine.profiles.save("work", WORK)
    gateway.script(answer)
    session = await full(engine)
    before = await session.messages()
    with pytest.raises(BlockedError) as caught:
        await session.prepare("What now?")
    message = str(caught.value)
    assert words in message
    assert "retry the compression, or acknowledge" in message
    assert KEY not in message
    assert await session.summaries() == ()
    assert await session.messages() == before
    calls = len(gateway.calls)
    with pytest.raises(BlockedError):
        await session.prepare("What now?")
    assert len(gateway.calls) == calls  # it waits, and calls no model
    gateway.script(SUMMARY)
    assert (await session.retry()).compressed
    assert (await session.prepare("What now?")).decision.action == "keep"


async def test_the_error_names_every_candidate_if_none_can_write(
    engine: Engine, gateway: ScriptedGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CHEAP_KEY")
    await engine.profiles.save("cheap", CHEAP)
    await engine.profiles.save("work", {**WORK, "condensing_profile": "cheap"})
    gateway.script(AuthenticationError("it does not accept the key"))
    with pytest.raises(SummaryError) as caught:
        await (await full(engine)).compress()
    message = str(caught.value)
    assert message.startswith("No valid API handler available: condensing profile 'cheap': ")
    assert "cheap model of openai, 'gpt-4o-mini': it does not accept the key" in message
    assert "conversation profile 'work': it does not accept the key" in message
    monkeypatch.delenv("WORK_KEY")
    with pytest.raises(SummaryError, match="No valid API handler available"):
        await (await engine.session("chat")).compress()


# Keys


@pytest.fixture
def master(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENFOLD_SECRET_KEY", "correct horse battery staple")


def _written(folder: Path) -> bytes:
    """All that is in the database's files."""
    files = sorted(folder.glob("chats.db*"))
    assert files
    return b"".join(file.read_bytes() for file in files)


@pytest.mark.usefixtures("master")
async def test_a_stored_key_is_used_and_found_nowhere_else(
    engine: Engine,
    gateway: ScriptedGateway,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    await engine.profiles.save("cheap", {**CHEAP, "key": None})
    profile = await engine.profiles.set_key("cheap", Secret(KEY))
    assert profile.key == "stored"
    await engine.profiles.save(
        "work", {**WORK, "key": "env:NOT_SET", "condensing_profile": "cheap"}
    )
    gateway.script(UnavailableError("down"), SUMMARY)
    session = await full(engine)
    with pytest.raises(SummaryError) as caught:
        await session.compress()
    done = await session.compress()
    assert gateway.connections[-1].key is not None
    assert gateway.connections[-1].key.reveal() == KEY
    everything = [
        repr(caught.value),
        repr(done),
        repr(done.report.as_json()),
        repr(await engine.profiles.all()),
        repr(await engine.profiles.roster()),
        repr(gateway.connections),
        repr(await session.summaries()),
        (await export_archive(engine, session)).decode(),
        caplog.text,
    ]
    assert not [text for text in everything if KEY in text]
    assert KEY.encode() not in _written(tmp_path)


@pytest.mark.usefixtures("master")
async def test_a_key_goes_with_its_profile(engine: Engine) -> None:
    await engine.profiles.save("work", WORK)
    await engine.profiles.set_key("work", Secret(KEY))
    await engine.profiles.remove("work")
    await engine.profiles.save("work", {**WORK, "key": "stored"})
    with pytest.raises(ConfigError, match="no key is stored"):
        await engine.profiles.connection("work")


@pytest.mark.usefixtures("master")
async def test_a_changed_secret_is_reported_and_the_chain_continues(
    engine: Engine, gateway: ScriptedGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    await engine.profiles.save("cheap", CHEAP)
    await engine.profiles.set_key("cheap", Secret(KEY))
    monkeypatch.setenv("ENFOLD_SECRET_KEY", "another secret altogether")
    with pytest.raises(ConfigError, match="profile 'cheap': the stored key cannot be opened"):
        await engine.profiles.connection("cheap")
    await engine.profiles.save("work", {**WORK, "condensing_profile": "cheap"})
    done = await (await full(engine)).compress()
    assert "the stored key cannot be opened" in "\n".join(done.warnings)
    assert called_connections(gateway) == ["openai:gpt-4o-mini"]


async def test_without_a_secret_no_key_is_stored(engine: Engine) -> None:
    await engine.profiles.save("work", WORK)
    with pytest.raises(ConfigError, match="ENFOLD_SECRET_KEY"):
        await engine.profiles.set_key("work", Secret(KEY))
    assert (await engine.profiles.get("work")).key == "env:WORK_KEY"


NO_SUMMARY = "no " * 60


@pytest.mark.parametrize("on_failure", ["block", "pass", "truncate"])
async def test_an_answer_that_is_no_summary_never_blocks(
    engine: Engine, gateway: ScriptedGateway, on_failure: str
) -> None:
    gateway.script(NO_SUMMARY)
    await engine.profiles.save("cheap", CHEAP)
    await engine.profiles.save("work", {**WORK, "condensing_profile": "cheap"})
    session = await full(engine)
    await session.configure(on_failure=on_failure)
    prepared = await session.prepare("And now?")
    done = prepared.compression
    assert done is not None
    assert (done.author, done.is_truncated) == ("local", False)
    assert set(called_connections(gateway)) == {
        "anthropic:claude-haiku-4-5",
        SMALL,
        "openai:gpt-4o",
    }
    (note,) = [each for each in done.warnings if "was no summary" in each]
    assert "the answer by cheap (anthropic:claude-haiku-4-5) was no summary (the answer" in note
    assert note.endswith("; the built-in summarizer wrote it")
    assert (await session.status()).blocked is None


async def test_the_next_model_writes_where_the_first_answer_is_no_summary(
    engine: Engine, gateway: ScriptedGateway
) -> None:
    gateway.script(NO_SUMMARY, SUMMARY)
    await engine.profiles.save("cheap", CHEAP)
    await engine.profiles.save("work", {**WORK, "condensing_profile": "cheap"})
    done = await (await full(engine)).compress()
    assert done.author == f"work ({SMALL})"
    assert any("was no summary" in each and "wrote instead" in each for each in done.warnings)


async def test_a_profile_in_the_names_of_another_system(tmp_path: Path) -> None:
    fields = {
        "id": "fast",
        "name": "fast",
        "provider": "openai",
        "model": "other-model",
        "contextWindow": 100_000,
        "maxOutputTokens": 8_000,
        "supportsPromptCache": False,
        "inputPrice": 1,
        "outputPrice": 2,
        "cacheReadsPrice": 0.5,
        "autoCondenseContext": False,
        "profileThresholds": {"fast": 70, "slow": 40},
        "customCondensingPrompt": "Be brief.",
    }
    async with enfold.open(f"sqlite:///{tmp_path / 'a.db'}") as engine:
        profile = await engine.profiles.save("fast", fields)
        assert profile.own_prices == Prices(1, 2)
        assert (profile.threshold, profile.settings) == (70, {"auto_compress": False})
        assert profile.prompt == "Be brief."
        model = await engine.models.get("openai:other-model")
        assert (model.max_input, model.max_output) == (92_000, 8_000)
        wrong = {**fields, "name": "wide", "contextWindow": "wide"}
        with pytest.raises(ConfigError, match="contextWindow = 'wide'"):
            await engine.profiles.save("wide", wrong)
        for field, value in (("supportsPromptCache", "maybe"), ("maxOutputTokens", 100_000)):
            with pytest.raises(ConfigError, match=f"{field} = "):
                await engine.profiles.save("wide", {**fields, "name": "wide", field: value})
        named = {**fields, "profileId": "p-1", "profileName": "Mine", "name": "mine"}
        mine = await engine.profiles.save("mine", {**named, "profileThresholds": {"p-1": 65}})
        assert (mine.name, mine.threshold) == ("mine", 65)
        both = {**named, "profileThresholds": {"p-1": 65}, "autoCondenseContextPercent": 80}
        assert (await engine.profiles.save("mine", both, replace=True)).threshold == 65
        inherits = {**both, "profileThresholds": {"p-1": -1}}
        assert (await engine.profiles.save("mine", inherits, replace=True)).threshold == 80
        for percent in (300, "abc", True):
            with pytest.raises(ConfigError, match="autoCondenseContextPercent: expected 5"):
                await engine.profiles.save("mine", {**both, "autoCondenseContextPercent": percent})
        assert (await engine.profiles.set_threshold("fast", 55)).threshold == 55
        assert (await engine.profiles.get("fast")).own_prices == Prices(1, 2)


async def test_a_profile_with_impossible_limits_or_prices_is_not_stored(engine: Engine) -> None:
    tiny = {"provider": "compatible", "model": "tiny", "base_url": "http://127.0.0.1:9"}
    for change, words in (
        ({"contextWindow": 10**30}, "max_input"),
        ({"maxOutputTokens": 10**9}, "longest reply"),
        ({"inputPrice": 1e300}, "prices.input: expected 1,000,000 or less"),
        ({"profileThresholds": {"other": 500}}, "profileThresholds.other: expected 5"),
        ({"profileThresholds": 5}, "profileThresholds: expected percentages by profile"),
        ({"settings": {"preset": "gone"}}, "settings: no preset 'gone'"),
    ):
        with pytest.raises(ConfigError, match=words):
            await engine.profiles.save("tiny", {**tiny, **change})
    assert await engine.profiles.all() == ()
    await engine.profiles.save("tiny", {**tiny, "contextWindow": 6_000.0})
    config = await engine.models.get("compatible:tiny")
    assert config.max_input + config.max_output == 6_000
