"""Configs from JSON: both spellings, defaults, and errors that name the field."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import pytest

from enfold.errors import ConfigError
from enfold.strategies import configs
from enfold.strategies.configs import Checked, Fault, Option


@dataclass(frozen=True, slots=True)
class Colour(Checked):
    """A colour."""

    SHORTHAND: ClassVar[str] = "name"

    name: Annotated[Literal["red", "blue"], Option("Which")]
    strength: Annotated[float, Option("How much", least=0, most=1)] = 1.0


@dataclass(frozen=True, slots=True)
class Paint(Checked):
    """What can be set of paint."""

    layer_count: Annotated[int, Option("Layers", least=1)] = 1
    colours: Annotated[tuple[Colour, ...], Option("In this order")] = ()
    note: Annotated[str | None, Option("A note")] = None
    is_wet: Annotated[bool, Option("Wet or not")] = False

    def contradictions(self) -> Iterator[Fault]:
        """A note on nothing."""
        if self.note is not None and not self.colours:
            yield Fault("note", "needs a colour")


def test_names_of_the_wire_and_of_python_are_read() -> None:
    assert configs.read(Paint, {"layerCount": 2}) == Paint(2)
    assert configs.read(Paint, {"layer_count": 2.0, "isWet": True}) == Paint(2, is_wet=True)
    assert configs.read(Paint, None) == configs.read(Paint, {}) == Paint()


def test_a_bare_text_stands_for_its_object() -> None:
    read = configs.read(Paint, {"colours": ["red", {"name": "blue", "strength": 0}]})
    assert read.colours == (Colour("red"), Colour("blue", 0.0))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"layers": 2}, "layers: unknown field; there are layerCount, colours, note, isWet"),
        ({"layerCount": 0}, "layerCount: expected 1 or more, found 0"),
        ({"layerCount": True}, "layerCount: expected a whole number, found True"),
        ({"layerCount": 1.5}, "layerCount: expected a whole number, found 1.5"),
        ({"layerCount": 1, "layer_count": 1}, "layer_count: given twice"),
        ({"isWet": 1}, "isWet: expected true or false, found 1"),
        ({"note": 7}, "note: expected a text, found 7"),
        ({"colours": "red"}, "colours: expected an array, found 'red'"),
        ({"colours": ["red", "green"]}, "colours[1].name: 'green' is not one of red, blue"),
        ({"colours": [{"strength": 2}]}, "colours[0].strength: expected 0 to 1, found 2"),
        ({"colours": [{"strength": 1}]}, "colours[0].name: is missing"),
        ({"note": "n"}, "note: needs a colour"),
        ([], "expected an object, found []"),
    ],
    ids=str,
)
def test_what_is_wrong_is_named_with_its_path(value: object, words: str) -> None:
    assert words in [str(fault) for fault in configs.faults(Paint, value)]
    with pytest.raises(ConfigError) as caught:
        configs.read(Paint, value)
    assert words in str(caught.value)


def test_all_faults_are_found_at_once() -> None:
    found = configs.faults(Paint, {"layerCount": 0, "isWet": "no", "what": 1})
    assert [fault.path for fault in found] == ["layerCount", "isWet", "what"]


def test_what_was_read_is_written_with_the_names_of_the_wire() -> None:
    paint = Paint(2, (Colour("red", 0.5),), "n")
    assert configs.write(paint) == {
        "layerCount": 2,
        "colours": [{"name": "red", "strength": 0.5}],
        "note": "n",
        "isWet": False,
    }
    assert configs.read(Paint, configs.write(paint)) == paint


def test_the_schema_says_what_a_form_needs() -> None:
    schema = configs.schema(Paint)
    assert schema["additionalProperties"] is False
    properties = schema["properties"]
    assert properties["layerCount"] == {
        "type": "integer",
        "description": "Layers",
        "default": 1,
        "minimum": 1,
    }
    assert properties["note"]["anyOf"] == [{"type": "string"}, {"type": "null"}]
    short, whole = properties["colours"]["items"]["anyOf"]
    assert short == {"type": "string", "enum": ["red", "blue"]}
    assert whole["required"] == ["name"]
    assert whole["properties"]["strength"]["maximum"] == 1
