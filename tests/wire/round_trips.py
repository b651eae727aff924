"""JSON for the dialects' tests: any value, objects of a wire, and ways to change one thing."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from hypothesis import strategies as st

from enfold.jsontext import dumps, loads
from enfold.messages import Conversation, Part

Json = Any

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
)
json_values: st.SearchStrategy[Json] = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=6,
)
json_objects = st.dictionaries(st.text(max_size=6), json_values, max_size=3)
texts = st.text(max_size=20)
names = st.from_regex(r"[a-z][a-z_]{0,8}", fullmatch=True)


def objects(
    required: dict[str, st.SearchStrategy[Json]], **optional: st.SearchStrategy[Json]
) -> st.SearchStrategy[dict[str, Json]]:
    """Objects with these fields and one unknown field, in any order."""
    fields = st.fixed_dictionaries(required, optional={**optional, "x_future": json_values})
    return st.builds(_shuffled, fields, st.randoms(use_true_random=False))


def fresh(value: Json) -> Json:
    """The same value with every object in it its own, as it is off a wire."""
    return loads(dumps(value))


def swapped(value: Json, old: Json, new: Json) -> Json:
    """The value with `new` where the very object `old` was."""
    if value is old:
        return new
    if isinstance(value, dict):
        return {key: swapped(inner, old, new) for key, inner in value.items()}
    if isinstance(value, list):
        return [swapped(inner, old, new) for inner in value]
    return value


def parts_of(conversation: Conversation, kind: type) -> list[tuple[int, Any]]:
    """Every part of the kind, with the index of its message."""
    return [
        (index, part)
        for index, message in enumerate(conversation.messages)
        for part in message.parts
        if isinstance(part, kind)
    ]


def edited(conversation: Conversation, index: int, old: Part, *new: Part) -> Conversation:
    """The conversation with one part of one message replaced, or dropped."""
    messages = list(conversation.messages)
    parts = [p for part in messages[index].parts for p in (new if part is old else (part,))]
    messages[index] = replace(messages[index], parts=tuple(parts))
    return replace(conversation, messages=tuple(messages))


@st.composite
def damaged(draw: st.DrawFn, values: st.SearchStrategy[Json]) -> Json:
    """A value of the wire in which something has become something else."""
    value = fresh(draw(values))
    spots = list(_spots(value))
    if not spots:
        return draw(json_values)
    holder, key = draw(st.sampled_from(spots))
    holder[key] = draw(json_values)
    return value


def _spots(value: Json) -> list[tuple[Json, Json]]:
    """Every place inside the value that holds one."""
    items: list[tuple[Json, Json]] = []
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    return [spot for key, inner in items for spot in ((value, key), *_spots(inner))]


def _shuffled(fields: dict[str, Json], random: Random) -> dict[str, Json]:
    keys = list(fields)
    random.shuffle(keys)
    return {key: fields[key] for key in keys}
