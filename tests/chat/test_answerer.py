"""The choice of the model that answers."""

from __future__ import annotations

import pytest

from enfold.chat.controller import ChooseAnswerer, profile_chooser
from enfold.errors import ConfigError, EnfoldError, NotFoundError
from tests.chat.setup import ChatSetup


async def chooser(chat_setup: ChatSetup) -> ChooseAnswerer:
    return profile_chooser(chat_setup.engine, await chat_setup.engine.session("harbour"))


async def test_without_a_profile_no_model_answers(chat_setup: ChatSetup) -> None:
    with pytest.raises(ConfigError, match="enfold profiles add"):
        await (await chooser(chat_setup))(None, None)


async def test_the_only_profile_answers(chat_setup: ChatSetup) -> None:
    await chat_setup.add("small")
    answerer = await (await chooser(chat_setup))(None, None)
    assert (answerer.profile, answerer.connection.name) == ("small", "compatible:small")
    assert answerer.prices is None


async def test_the_sessions_profile_answers_before_the_default_and_the_first(
    chat_setup: ChatSetup,
) -> None:
    await chat_setup.add("small")
    await chat_setup.add("large")
    choose = await chooser(chat_setup)
    assert (await choose(None, None)).profile == "large"
    await chat_setup.engine.set("default_profile", "small")
    assert (await choose(None, None)).profile == "small"
    await chat_setup.engine.session("harbour", profile="large")
    assert (await choose(None, None)).profile == "large"
    assert (await choose("small", None)).profile == "small"
    await chat_setup.engine.profiles.remove("large")
    assert (await choose(None, None)).profile == "small"


async def test_another_model_is_asked_through_a_profile_of_its_provider(
    chat_setup: ChatSetup,
) -> None:
    await chat_setup.add("small")
    await chat_setup.add("large")
    choose = await chooser(chat_setup)
    assert (await choose(None, "compatible:large")).profile == "large"
    other = await choose(None, "compatible:mistral:7b")
    assert other.connection.name == "compatible:mistral:7b"
    assert other.connection.base_url == "http://127.0.0.1:9/v1"
    assert (await choose("large", "compatible:small")).profile == "large"


@pytest.mark.parametrize(
    ("profile", "model", "kind", "words"),
    [
        ("missing", None, NotFoundError, "no profile 'missing'; available: small"),
        (None, "small", ConfigError, "expected provider:model"),
        (None, "openai:gpt-4o", ConfigError, "enfold profiles add NAME --provider openai"),
        ("small", "openai:gpt-4o", ConfigError, "uses compatible, not openai"),
        ("keyless", None, ConfigError, "profile 'keyless': the environment variable NO_SUCH"),
    ],
)
async def test_a_wrong_choice_is_an_error(
    profile: str | None,
    model: str | None,
    kind: type[EnfoldError],
    words: str,
    chat_setup: ChatSetup,
) -> None:
    await chat_setup.add("small")
    if profile == "keyless":
        await chat_setup.add("keyless", key="env:NO_SUCH")
    with pytest.raises(kind) as caught:
        await (await chooser(chat_setup))(profile, model)
    assert words in str(caught.value)


async def test_prices_of_a_known_model_are_known(
    chat_setup: ChatSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "made-up")
    await chat_setup.engine.profiles.save("o", {"provider": "openai", "model": "gpt-4o"})
    answerer = await (await chooser(chat_setup))("o", None)
    assert answerer.prices is not None
    assert "made-up" not in repr(answerer)
