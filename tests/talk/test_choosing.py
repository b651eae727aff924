"""Who answers: what is named counts, and what cannot be chosen is said with a way on."""

from __future__ import annotations

import pytest

from enfold.chat.controller import ChooseAnswerer, profile_chooser
from enfold.errors import ConfigError, EnfoldError, NotFoundError
from tests.talk.desk import Desk


async def choosing(desk: Desk) -> ChooseAnswerer:
    return profile_chooser(desk.engine, await desk.engine.session("harbour"))


async def test_without_a_profile_nobody_answers(desk: Desk) -> None:
    with pytest.raises(ConfigError, match="enfold profiles add"):
        await (await choosing(desk))(None, None)


async def test_the_only_profile_answers(desk: Desk) -> None:
    await desk.add("small")
    answerer = await (await choosing(desk))(None, None)
    assert (answerer.profile, answerer.connection.name) == ("small", "compatible:small")
    assert answerer.prices is None


async def test_of_several_the_sessions_own_answers(desk: Desk) -> None:
    await desk.add("small")
    await desk.add("large")
    choose = await choosing(desk)
    with pytest.raises(ConfigError, match=r"small.*/model NAME|large.*/model NAME"):
        await choose(None, None)
    await desk.engine.session("harbour", profile="large")
    assert (await choose(None, None)).profile == "large"
    assert (await choose("small", None)).profile == "small"


async def test_another_model_is_asked_through_a_profile_of_its_provider(desk: Desk) -> None:
    await desk.add("small")
    await desk.add("large")
    choose = await choosing(desk)
    assert (await choose(None, "compatible:large")).profile == "large"
    other = await choose(None, "compatible:mistral:7b")
    assert other.connection.name == "compatible:mistral:7b"
    assert other.connection.base_url == "http://127.0.0.1:9/v1"
    assert (await choose("large", "compatible:small")).profile == "large"


@pytest.mark.parametrize(
    ("profile", "model", "kind", "words"),
    [
        ("nobody", None, NotFoundError, "no profile 'nobody'; there are: small"),
        (None, "small", ConfigError, "expected provider:model"),
        (None, "openai:gpt-4o", ConfigError, "enfold profiles add NAME --provider openai"),
        ("small", "openai:gpt-4o", ConfigError, "is of compatible, not of openai"),
        ("keyless", None, ConfigError, "profile 'keyless': the environment variable NO_SUCH"),
    ],
)
async def test_what_cannot_be_chosen(
    profile: str | None, model: str | None, kind: type[EnfoldError], words: str, desk: Desk
) -> None:
    await desk.add("small")
    if profile == "keyless":
        await desk.add("keyless", key="env:NO_SUCH")
    with pytest.raises(kind) as caught:
        await (await choosing(desk))(profile, model)
    assert words in str(caught.value)


async def test_prices_of_a_known_model_are_known(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "made-up")
    await desk.engine.profiles.save("o", {"provider": "openai", "model": "gpt-4o"})
    answerer = await (await choosing(desk))("o", None)
    assert answerer.prices is not None
    assert "made-up" not in repr(answerer)
