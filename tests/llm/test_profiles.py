"""Profiles: read from what is stored, written back, and wrong fields named."""

from __future__ import annotations

from typing import Any

import pytest

from enfold.errors import ConfigError
from enfold.fields import describe
from enfold.jsontext import dumps
from enfold.llm.calls import Secret
from enfold.llm.costs import Prices
from enfold.llm.profiles import Profile, ProfilePrices, read, summarizer_candidates

PLAIN = {"provider": "openai", "model": "gpt-4o"}
FULL = {
    "provider": "azure",
    "model": "my-deployment",
    "base_url": "https://here.example/openai",
    "options": {"api_version": "2024-10-21"},
    "key": "env:MY_KEY",
    "prices": {"input": 2.5, "cache_reads": 0.5},
    "threshold": 80,
    "prompt": "Only decisions: {conversation_history}",
    "condensing_profile": "cheap",
    "settings": {"keep_first": 2},
}


@pytest.mark.parametrize("fields", [PLAIN, FULL], ids=["plain", "full"])
def test_a_written_profile_is_read_again(fields: dict[str, Any]) -> None:
    profile = read("work", fields)
    assert profile.name == "work"
    assert profile.as_json() == fields
    assert read("work", profile.as_json()) == profile


def test_fields_that_are_not_set_have_their_defaults() -> None:
    profile = read("work", {**PLAIN, "key": None, "threshold": None})
    assert profile == Profile(name="work", provider="openai", model="gpt-4o")
    assert profile.id == "openai:gpt-4o"


def test_names_of_other_systems_are_understood() -> None:
    profile = read(
        "work",
        {
            **PLAIN,
            "autoCondenseContextPercent": 70,
            "condensingApiConfigId": "cheap",
            "customCondensingPrompt": "Short.",
            "prices": {"inputPrice": 3, "outputPrice": 15},
        },
    )
    assert (profile.threshold, profile.condensing_profile, profile.prompt) == (
        70,
        "cheap",
        "Short.",
    )
    assert profile.own_prices == Prices(3, 15)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"provider": "acme"}, "provider: no provider 'acme'"),
        ({"provider": None}, "provider: is missing"),
        ({"model": " "}, "model: expected a text"),
        ({"base_url": "here"}, "base_url: expected an address"),
        ({"base_url": "http://[::1"}, "base_url: expected an address"),
        ({"base_url": "http://host:port"}, "base_url: expected an address"),
        ({"base_url": "https://me:hush@host/v1"}, "base_url: leave out user, password"),
        ({"base_url": "https://host/v1?key=hush"}, "base_url: leave out user, password"),
        ({"options": {"region": "x"}}, "options: no 'region' for openai; available: none"),
        ({"provider": "bedrock"}, "options: bedrock needs a region"),
        ({"options": ["region"]}, "options: expected texts by name"),
        ({"key": "sk-hush"}, "key: expected env:NAME, file:PATH, stored or memory"),
        ({"key": 7}, "key: expected env:NAME"),
        ({"prices": {"coffee": 1}}, "prices.coffee: unknown field; available: input, output"),
        ({"prices": {"input": -1}}, "prices.input: expected 0 or more, found -1"),
        ({"prices": {"input": float("inf")}}, "prices.input: expected 0 or more, found inf"),
        ({"prices": 3}, "prices: expected an object, found 3"),
        ({"threshold": "high"}, "threshold: expected 5 to 100, or -1 to inherit, found 'high'"),
        ({"threshold": True}, "threshold: expected 5 to 100, or -1 to inherit, found True"),
        ({"prompt": ""}, "prompt: the custom prompt is empty"),
        ({"prompt": "{nonsense}"}, "prompt: the custom prompt has unknown placeholders"),
        ({"settings": []}, "settings: expected an object"),
        ({"colour": "red"}, "colour: unknown field; available: name, provider"),
        ({"provider": "compatible"}, "base_url: compatible needs the server's address"),
    ],
    ids=str,
)
def test_a_wrong_field_is_named_and_no_key_repeated(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read("work", {**PLAIN, **change})
    assert words in str(caught.value)
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize("name", ["", " x", "a\nb", "x" * 101, "-x"])
def test_a_name_is_a_word_or_a_few(name: str) -> None:
    with pytest.raises(ConfigError, match="name: "):
        read(name, PLAIN)


@pytest.mark.parametrize(
    ("given", "percent"),
    [(None, None), (-1, -1), (5, 5), (62.5, 62.5), (100, 100), (0.05, 5), (0.55, 55), (1, 100)],
)
def test_a_threshold_is_a_percentage_also_if_a_share_is_given(
    given: float | None, percent: float | None
) -> None:
    profile = read("work", {**PLAIN, "threshold": given})
    assert profile.threshold == percent
    assert profile.as_json().get("threshold") == percent


@pytest.mark.parametrize("percent", [-2, 0, 1.01, 3, 4.9, 101])
def test_other_thresholds_are_refused_but_a_stored_profile_can_be_used(percent: float) -> None:
    fields = {**PLAIN, "threshold": percent}
    with pytest.raises(ConfigError) as caught:
        read("work", fields)
    assert str(caught.value) == (
        f"threshold: {percent:g} is neither a share, 0.05 to 1, nor a percentage, 5 to 100, "
        "nor -1 to inherit"
    )
    assert read("work", fields, is_stored=True).threshold == percent


def test_all_faults_are_named_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        read("work", {"provider": "acme", "threshold": 3, "colour": "red"})
    for start in ("provider: no provider", "model: is missing", "threshold: 3", "colour: unknown"):
        assert start in str(caught.value)


def test_a_name_is_not_a_field() -> None:
    with pytest.raises(ConfigError, match="name: a profile's name is not one of its fields"):
        read("work", {**PLAIN, "name": "other"})


def test_numbers_are_written_as_they_were_given() -> None:
    fields = {**PLAIN, "threshold": 80, "prices": {"input": 3, "output": 7.5}}
    assert dumps(read("work", fields).as_json()) == dumps(
        {**PLAIN, "prices": {"input": 3, "output": 7.5}, "threshold": 80}
    )


def test_every_field_is_described() -> None:
    for model in (Profile, ProfilePrices):
        for field in describe(model).values():
            assert field.title
            assert field.help.endswith(".")
    assert describe(Profile)["prices"].model is ProfilePrices
    assert describe(Profile)["provider"].choices


def test_prices_are_the_librarys_under_the_profiles_own() -> None:
    prices = read("work", {**PLAIN, "prices": {"input": 1}}).known_prices()
    assert prices is not None
    assert (prices.input, prices.output) == (1, 10)
    server = {"provider": "compatible", "model": "mine", "base_url": "http://127.0.0.1:1/v1"}
    assert read("home", server).known_prices() is None


def test_a_connection_shows_no_key() -> None:
    connection = read("work", FULL).connection(Secret("sk-hush"), "other")
    assert (connection.name, connection.base_url) == ("azure:other", FULL["base_url"])
    assert "hush" not in repr(connection)


def test_an_own_server_is_asked_for_its_own_model_only() -> None:
    public = read("public", {"provider": "openai", "model": "gpt-5"})
    private = read(
        "own", {"provider": "openai", "model": "my-llama", "base_url": "http://127.0.0.1:9/v1"}
    )
    fields = {
        each.name: [
            candidate.model
            for candidate in summarizer_candidates({each.name: each}, conversation=each.name)
        ]
        for each in (public, private)
    }
    assert fields == {"public": ["gpt-4o-mini", "gpt-5"], "own": ["my-llama"]}
