"""Results appear whole or not at all, and a part that was left is gone on with."""

from __future__ import annotations

from pathlib import Path

import pytest

from enfold.bulk.files import BulkFile, digest
from enfold.bulk.run import PartialResult
from enfold.bulk.tasks import ItemResult, Totals
from enfold.errors import InputError


@pytest.fixture
def place(tmp_path: Path) -> BulkFile:
    """Where results go."""
    out = tmp_path / "deep" / "out.json"
    return BulkFile(tmp_path / "in.json", out, tmp_path / "ledgers" / "out.json.ledger")


def piece(number: int) -> ItemResult:
    """The result of a conversation."""
    return ItemResult(b'{"n":%d}' % number, b'{"ledger":%d}' % number, Totals(1, 10, number))


def hidden(place: BulkFile) -> list[Path]:
    """Return the other paths in the target's folder."""
    return [path for path in place.target.parent.iterdir() if path != place.target]


def test_nothing_is_seen_before_the_end(place: BulkFile) -> None:
    part = PartialResult(place, "key")
    part.add(piece(1))
    assert not place.target.exists()
    assert not place.ledger.exists()
    part.add(piece(2))
    written = part.finish(is_array=False, with_ledger=True)
    assert place.target.read_bytes() == b'{"n":1}\n{"n":2}\n'
    assert place.ledger.read_bytes() == b'{"ledger":1}\n{"ledger":2}\n'
    assert dict(written) == {path: digest(path) for path in (place.target, place.ledger)}
    assert hidden(place) == []


@pytest.mark.parametrize(("count", "text"), [(0, b"[]\n"), (2, b'[{"n":0},{"n":1}]\n')])
def test_an_array_stays_one(place: BulkFile, count: int, text: bytes) -> None:
    part = PartialResult(place, "key")
    for number in range(count):
        part.add(piece(number))
    part.finish(is_array=True, with_ledger=False)
    assert place.target.read_bytes() == text
    assert not place.ledger.exists()


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_a_part_is_gone_on_with_wherever_it_was_cut(place: BulkFile, cut: int) -> None:
    first = PartialResult(place, "key")
    first.add(piece(1))
    first.add(piece(2))
    (path,) = hidden(place)
    path.write_bytes(path.read_bytes()[:-cut])
    again = PartialResult(place, "key")
    assert again.tally == Totals(1, 10, 1)
    again.add(piece(3))
    again.finish(is_array=False, with_ledger=True)
    assert place.target.read_bytes() == b'{"n":1}\n{"n":3}\n'


@pytest.mark.parametrize("header", [b"", b"ke", b"other\n{}\n"])
def test_a_part_of_something_else_is_not(place: BulkFile, header: bytes) -> None:
    first = PartialResult(place, "key")
    first.add(piece(1))
    (path,) = hidden(place)
    path.write_bytes(header)
    again = PartialResult(place, "key")
    assert again.tally == Totals()
    again.add(piece(2))
    again.finish(is_array=False, with_ledger=False)
    assert place.target.read_bytes() == b'{"n":2}\n'


def test_a_part_can_be_thrown_away(place: BulkFile) -> None:
    part = PartialResult(place, "key")
    part.add(piece(1))
    part.discard()
    assert hidden(place) == []


def test_a_target_that_cannot_be_written_is_named(place: BulkFile) -> None:
    place.target.mkdir(parents=True)
    with pytest.raises(InputError, match=r"out\.json: cannot be written: Is a directory"):
        PartialResult(place, "key")
