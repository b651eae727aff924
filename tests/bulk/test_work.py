"""The work on one conversation: bytes in, bytes out."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from enfold.bulk.tasks import BulkItem, CondenseTask, RestoreTask, Totals
from enfold.engine.stateless import CondenseOptions
from enfold.errors import InputError, RestoreError
from enfold.jsontext import dumps, loads, to_json
from enfold.settings import Settings
from enfold.transcripts.source import Record
from tests.bulk.chats import TRUNCATION, chat, place_of, write


def units_of(path: Path) -> tuple[bool, list[BulkItem]]:
    """Return the items of a file."""
    with TRUNCATION.units(place_of(path, path.parent / "out")) as (is_array, units):
        return is_array, list(units)


def test_a_unit_does_the_same_in_another_process() -> None:
    record = Record(dumps(chat("a")), "chats.jsonl", "line 1")
    work, unit = pickle.loads(pickle.dumps((TRUNCATION, BulkItem(record, "line 1"))))
    piece = work.do(unit)
    assert piece.result == TRUNCATION.do(BulkItem(record, "line 1")).result
    assert len(piece.result) < len(record.text) * 0.6
    assert piece.tally.tokens_after < piece.tally.tokens_before
    restored = RestoreTask().do(BulkItem(Record(piece.result), "a", ledger=piece.ledger))
    assert loads(restored.result) == chat("a")


SHAPES: dict[str, tuple[list[Any], bool, int]] = {
    "lines of bodies": ([chat("a", 1), chat("b", 1)], False, 2),
    "lines of arrays": ([chat("a", 1)["messages"], chat("b", 1)["messages"]], False, 2),
    "one body": ([chat("a", 1)], False, 1),
    "one array of messages": ([chat("a", 1)["messages"]], False, 1),
    "lines of messages": (chat("a", 1)["messages"], False, 1),
    "an array of bodies": ([[chat("a", 1), chat("b", 1), chat("c", 1)]], True, 3),
    "an array of one": ([[chat("a", 1)]], True, 1),
}


@pytest.mark.parametrize(("values", "is_array", "count"), SHAPES.values(), ids=SHAPES.keys())
def test_every_form_of_a_file_is_divided(
    values: list[Any], is_array: bool, count: int, tmp_path: Path
) -> None:
    found, units = units_of(write(tmp_path / "chats.json", *values))
    assert (found, len(units)) == (is_array, count)


def test_lines_are_read_as_they_are_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path / "chats.jsonl", *(chat(str(n), 30) for n in range(100)))
    with TRUNCATION.units(place_of(path, tmp_path / "out")) as (_, units):
        next(units)
        path.write_bytes(b"")  # what was not read yet is gone
        assert sum(1 for _ in units) < 90


def test_the_same_options_have_the_same_key_and_others_another() -> None:
    same = CondenseTask(Settings(strategy="truncation"), CondenseOptions())
    assert same.key == TRUNCATION.key
    others = (
        CondenseTask(Settings(strategy="native"), CondenseOptions()),
        CondenseTask(
            Settings(strategy="truncation", strategy_config={"truncation": {}}), CondenseOptions()
        ),
        CondenseTask(Settings(strategy="truncation"), CondenseOptions(target=1_000)),
        CondenseTask(Settings(strategy="truncation"), CondenseOptions(), "openai"),
    )
    assert len({TRUNCATION.key, *(other.key for other in others)}) == 5


@pytest.mark.parametrize("text", [b"{", b'{"messages":[{"role":"nobody"}]}', b"5"])
def test_an_error_names_the_place(text: bytes) -> None:
    with pytest.raises(InputError, match=r"^chats\.jsonl line 7"):
        TRUNCATION.do(BulkItem(Record(text, "chats.jsonl", "line 7", 7), "line 7"))


def test_a_ledger_of_another_conversation_is_refused() -> None:
    one, two = (TRUNCATION.do(BulkItem(Record(dumps(chat(name))))) for name in "ab")
    with pytest.raises(RestoreError, match="chats line 2: the ledger belongs"):
        RestoreTask().do(BulkItem(Record(one.result), "chats line 2", ledger=two.ledger))


def test_figures_are_added_up_and_few_warnings_kept() -> None:
    warned = Totals(1, 10, 5, 0.5, ("too long",))
    total = Totals()
    for _ in range(25):
        total = total.plus(warned)
    assert (total.conversations, total.tokens_before, total.reduction) == (25, 250, 0.5)
    assert (len(total.warnings), total.more_warnings) == (20, 5)
    assert Totals.from_json(to_json(total)) == total
