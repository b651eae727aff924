"""Real conversations: each comes back as it was, and survives every other dialect.

They are read from the folder that `ENFOLD_DATA` names, or from the one beside the repository;
where there is none, these tests are skipped.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from enfold import wire
from enfold.jsontext import dumps, loads
from tests.wire.gist import gist

OTHERS = tuple(name for name in wire.DIALECTS if name != "enfold")


@pytest.fixture(scope="module")
def bodies(data_dir: Path) -> list[Any]:
    """Every conversation of the folder."""
    files = sorted(data_dir.glob("*.jsonl"))
    lines = [line for file in files for line in file.read_bytes().splitlines()]
    found = [loads(line) for line in lines if line.strip()]
    if not found:
        pytest.skip(f"no .jsonl file with conversations in {data_dir}")
    return found


def test_shared_bodies_are_detected(bodies: list[Any]) -> None:
    assert {wire.detect(body) for body in bodies} == {"enfold"}
    assert {wire.detect(body["messages"]) for body in bodies} == {"enfold"}


def test_shared_bodies_come_back_byte_for_byte(bodies: list[Any]) -> None:
    for body in bodies:
        before = dumps(body)
        rendered = wire.render(wire.parse(body))
        assert rendered == body
        assert dumps(rendered) == before, body["id"]
        assert dumps(wire.render(wire.parse(body["messages"]))) == dumps(body["messages"])


@pytest.mark.parametrize("name", OTHERS)
def test_shared_bodies_go_to_another_dialect_and_back(bodies: list[Any], name: str) -> None:
    """A share of them for each dialect, and not the same ones."""
    for body in bodies[OTHERS.index(name) :: len(OTHERS)]:
        conversation = wire.parse(body)
        expected = gist(conversation)
        value = wire.render(conversation, name)
        there = wire.parse(value, name)
        assert dumps(wire.render(there)) == dumps(value), body["id"]
        assert gist(there) == expected, body["id"]
        assert gist(wire.parse(value)) == expected, body["id"]
        back = wire.parse(wire.render(there, "enfold"), "enfold")
        assert gist(back) == expected, body["id"]
