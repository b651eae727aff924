"""Described models: names, defaults, errors that name the field, and the JSON schema."""

from __future__ import annotations

from typing import Literal

import pytest
from pydantic import Field, model_validator

from enfold import fields
from enfold.errors import ConfigError
from enfold.fields import CamelModel, ContradictionError, Fault, describe


class Colour(CamelModel):
    """A colour."""

    name: Literal["red", "blue"] = Field(description="Name")
    strength: float = Field(default=1.0, description="Strength", ge=0, le=1)


class Paint(CamelModel):
    """The config of paint."""

    layer_count: int = Field(default=1, description="Layers", ge=1)
    colours: tuple[Colour, ...] = Field(default=(), description="In this order", strict=False)
    note: str | None = Field(default=None, description="A note")
    is_wet: bool = Field(default=False, description="Wet or not")
    drops: tuple[int, ...] | None = Field(default=None, description="Drops", strict=False)

    @model_validator(mode="after")
    def _note_has_colour(self) -> Paint:
        if self.note is not None and not self.colours:
            raise ContradictionError(Fault("note", "needs a colour"))
        return self


class House(CamelModel):
    """A model inside another."""

    paint: Paint | None = Field(default=None, description="Paint")


def test_names_of_the_wire_and_of_python_are_read() -> None:
    assert fields.read(Paint, {"layerCount": 2}) == Paint(layer_count=2)
    assert fields.read(Paint, {"layer_count": 2.0, "isWet": True}) == Paint(
        layer_count=2, is_wet=True
    )
    assert fields.read(Paint, None) == fields.read(Paint, {}) == Paint()


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (
            {"layers": 2},
            "layers: unknown field; did you mean layerCount? available: layerCount, ",
        ),
        ({"layerCount": 0}, "layerCount: expected a whole number, 1 or more, found 0"),
        ({"layerCount": True}, "layerCount: expected a whole number, 1 or more, found True"),
        ({"layerCount": 1.5}, "layerCount: expected a whole number, 1 or more, found 1.5"),
        ({"layerCount": 1, "layer_count": 1}, "layer_count: given twice"),
        ({"isWet": 1}, "isWet: expected true or false, found 1"),
        ({"note": 7}, "note: expected a text, found 7"),
        ({"colours": "red"}, "colours: expected an array, found 'red'"),
        ({"layerCount": "1"}, "layerCount: expected a whole number, 1 or more, found '1'"),
        ({"colours": ["red"]}, "colours[0]: expected an object, found 'red'"),
        (
            {"colours": [{"name": "red"}, {"name": "green"}]},
            "colours[1].name: expected one of red, blue, found 'green'",
        ),
        ({"drops": [1, "2"]}, "drops[1]: expected a whole number, found '2'"),
        ({"colours": [{"strength": 2}]}, "colours[0].strength: expected 0 to 1, found 2"),
        ({"colours": [{"strength": 1}]}, "colours[0].name: is missing"),
        ({"note": "n"}, "note: needs a colour"),
        ([], "expected an object, found []"),
    ],
    ids=str,
)
def test_errors_name_the_path_of_the_wrong_field(value: object, words: str) -> None:
    assert any(words in str(fault) for fault in fields.faults(Paint, value))
    with pytest.raises(ConfigError) as caught:
        fields.read(Paint, value)
    assert words in str(caught.value)


def test_all_faults_are_found_at_once() -> None:
    found = fields.faults(Paint, {"layerCount": 0, "isWet": "no", "what": 1})
    assert [fault.path for fault in found] == ["layerCount", "isWet", "what"]


def test_values_are_written_with_their_wire_names() -> None:
    paint = Paint(layer_count=2, colours=(Colour(name="red", strength=0.5),), note="n")
    assert fields.write(paint) == {
        "layerCount": 2,
        "colours": [{"name": "red", "strength": 0.5}],
        "note": "n",
        "isWet": False,
    }
    assert fields.read(Paint, fields.write(paint)) == paint


def test_the_schema_says_what_a_form_needs() -> None:
    schema = fields.schema(Paint)
    assert schema["additionalProperties"] is False
    properties = schema["properties"]
    assert properties["layerCount"] == {
        "type": "integer",
        "title": "Layer count",
        "description": "Layers",
        "default": 1,
        "minimum": 1,
    }
    assert properties["note"]["anyOf"] == [{"type": "string"}, {"type": "null"}]
    whole = properties["colours"]["items"]
    assert whole["required"] == ["name"]
    assert whole["properties"]["strength"]["maximum"] == 1


def test_a_fault_inside_another_model_has_the_whole_path() -> None:
    assert [str(each) for each in fields.faults(House, {"paint": {"note": "n"}})] == [
        "paint.note: needs a colour"
    ]
    assert fields.faults(House, {"paint": {"isWet": None}})[0].path == "paint.isWet"


def test_a_description_has_what_a_form_needs() -> None:
    layers, colours, note, *_ = describe(Paint).values()
    assert (layers.alias, layers.kind, layers.default, layers.least) == (
        "layerCount",
        "integer",
        1,
        1,
    )
    assert (colours.kind, note.kind, note.default) == ("list", "text", None)
    assert describe(Colour)["name"].choices == {"red": "red", "blue": "blue"}
    assert describe(Colour)["strength"].allowed == "0 to 1"
