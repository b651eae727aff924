"""Presets: the built-in ones can be used; a file with a wrong field is refused by its name."""

from __future__ import annotations

from typing import Any

import pytest

import enfold
from enfold import fields
from enfold.errors import ConfigError, NotFoundError
from enfold.jsontext import dumps, loads
from enfold.strategies import presets
from enfold.strategies.presets import BUILT_IN, Preset
from enfold.strategies.smart.config import SmartConfig
from enfold.testing import ScriptedSummarizer, assistant, call, result, user

OUTPUT = "\n".join(f"line {n} of the output" for n in range(80))


def agent(rounds: int) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    for n in range(rounds):
        function = {"name": "read", "arguments": f'{{"path": "{n}.py"}}'}
        messages += [
            {"role": "user", "content": f"Look at {n}."},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": f"c{n}", "type": "function", "function": function}],
            },
            {"role": "tool", "tool_call_id": f"c{n}", "content": f"{n}\n{OUTPUT}"},
            {"role": "assistant", "content": f"There is {n}."},
        ]
    return [*messages, {"role": "user", "content": "And now?"}]


@pytest.mark.parametrize("name", BUILT_IN)
async def test_a_built_in_preset_can_be_used_and_says_what_it_does(name: str) -> None:
    preset = presets.get(name)
    assert preset.name == name
    assert preset.is_built_in
    assert len(preset.description) > 40
    presets.check(preset)
    wire = agent(12)
    done = await enfold.condense(wire, preset=name, summarizer=ScriptedSummarizer("In short."))
    assert done.report.strategy == preset.strategy
    assert done.report.reduction > 0.3
    assert done.report.warnings == ()
    assert enfold.restore(done.messages, done.ledger) == wire


async def test_speed_asks_no_model_and_quality_does() -> None:
    writer = ScriptedSummarizer("In short.")
    for name in ("speed", "cost"):
        await enfold.condense(agent(12), preset=name, summarizer=writer)
        assert writer.requests == []
    await enfold.condense(agent(12), preset="quality", summarizer=writer)
    assert len(writer.requests) > 1


@pytest.mark.parametrize("name", ["speed", "cost"])
async def test_a_target_is_met_without_a_model_where_text_takes_most(name: str) -> None:
    texts = [
        f"Harbour {n} has {n + 3} cranes, and its tide is at {n % 12} o'clock." for n in range(90)
    ]
    chat = [{"role": role, "content": text} for text in texts for role in ("user", "assistant")]
    writer = ScriptedSummarizer("In short.")
    done = await enfold.condense(chat, preset=name, target=1_000, summarizer=writer)
    assert done.report.tokens_after <= 1_000
    assert writer.requests == []


async def test_quality_keeps_more_of_peoples_words_than_cost() -> None:
    texts = [
        f"Harbour {n} has {n + 3} cranes, and its tide is at {n % 12} o'clock." for n in range(90)
    ]
    chat = [
        {"role": role, "content": text}
        for each in texts
        for role, text in (("user", each), ("assistant", "I see, thank you. " * 3))
    ]
    kept: dict[str, int] = {}
    for name in ("quality", "cost"):
        done = await enfold.condense(chat, preset=name, target=1_200)
        kept[name] = sum({"role": "user", "content": each} in done.messages for each in texts)
        assert done.report.tokens_after <= 1_200
    assert kept["quality"] > kept["cost"]


def test_balanced_is_what_smart_does_by_itself() -> None:
    assert fields.read(SmartConfig, presets.get("balanced").config) == SmartConfig()


def test_a_preset_goes_out_and_comes_in_again() -> None:
    mine = Preset("mine", "For me.", "truncation", {"preserveRecentCount": 3})
    assert presets.read(loads(dumps(mine.as_json()))) == mine
    assert mine.as_json()["version"] == 1


FILE = Preset("mine", "For me.", "smart", presets.get("balanced").config).as_json()


def broken(path: str, value: Any) -> Any:
    copy = loads(dumps(FILE))
    *way, last = path.split(".")
    at = copy
    for key in way:
        at = at[int(key)] if key.isdigit() else at[key]
    at[last] = value
    return copy


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (broken("passes", []), "passes: unknown field; available: version, name"),
        (broken("version", 2), "version: expected 1, found 2"),
        (broken("name", ""), "name: "),
        (broken("name", "a/b"), "name: 'a/b' is not"),
        (broken("name", 7), "name: expected a text"),
        (broken("strategy", "magic"), "strategy: no strategy 'magic'"),
        (broken("config", []), "config: expected an object"),
        (
            broken("config.passes.1.selection.type", "x"),
            "config.passes[1].selection.type: expected one of",
        ),
        (broken("config.passes.0.when", "x"), "config.passes[0].when: unknown field"),
        ([], "a preset is an object"),
    ],
    ids=range(10),
)
def test_the_error_of_an_unusable_file_says_why(value: Any, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        presets.read(value)
    assert words in str(caught.value)


def test_a_preset_in_the_names_of_another_system_is_read() -> None:
    config = {"preserveRecentCount": 7}
    theirs = {"provider": "truncation", "truncationConfig": config, "smartConfig": {"passes": []}}
    preset = presets.read({**theirs, "name": "theirs"})
    assert (preset.name, preset.strategy, preset.config) == ("theirs", "truncation", config)
    assert presets.read(preset.as_json()) == preset
    with pytest.raises(ConfigError, match="preserveRecentCount"):
        presets.read({**theirs, "truncationConfig": {"preserveRecentCount": "x"}})


def test_an_unknown_name_is_refused_with_a_list_of_known_ones() -> None:
    with pytest.raises(NotFoundError, match="speed, quality, cost, balanced, agent"):
        presets.get("fast")


def test_explicit_values_win_over_a_preset() -> None:
    assert presets.choose(None) == ("native", {})
    assert presets.choose(None, "smart", {"passes": []}) == ("smart", {"passes": []})
    short = Preset("short", "", "truncation", {"maxToolResultLines": 10}).as_json()
    strategy, config = presets.choose(short, None, {"preserve_recent_count": 2})
    assert strategy == "truncation"
    assert (config["preserveRecentCount"], config["maxToolResultLines"]) == (2, 10)
    assert presets.choose(FILE)[0] == "smart"
    with pytest.raises(ConfigError, match="for the strategy smart, not native"):
        presets.choose("speed", "native")


async def test_a_config_of_your_own_must_be_right() -> None:
    with pytest.raises(ConfigError, match="config of truncation: lines: unknown field"):
        await enfold.condense(agent(2), "truncation", config={"lines": 3})
    with pytest.raises(NotFoundError):
        await enfold.condense(agent(2), preset="fast")


async def test_agent_takes_its_steps_in_order_for_a_small_threshold_too() -> None:
    """Retention is a fifth of the window, which is more than the threshold allows."""
    async with enfold.open("sqlite:///:memory:") as engine:
        await engine.models.edit("test:model", max_input=100_000, max_output=4_000)
        session = await engine.session("small", model="test:model")
        await session.configure(preset="agent", max_tokens=9_000)
        for n in range(20):
            output = "\n".join(f"{n * 97 + line * 31} boats in harbour {n}" for line in range(80))
            await session.append(
                user(f"Look at {n}."),
                assistant("", call(f"c{n}", "read", {"path": f"{n}.py"})),
                result(f"c{n}", output),
                assistant(f"There is {n}."),
            )
        await session.append(user("And now?"))
        shown = (await session.prepare()).view.shown
        assert any(each.edit for each in shown)
