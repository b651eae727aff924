"""Results appear whole or not at all, and a part that was left is gone on with."""

from __future__ import annotations

from pathlib import Path

import pytest

from enfold.bulk.files import Place, digest
from enfold.bulk.run import Part
from enfold.bulk.work import Piece, Tally
from enfold.errors import InputError


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """Where results go."""
    out = tmp_path / "deep" / "out.json"
    return Place(tmp_path / "in.json", out, tmp_path / "ledgers" / "out.json.ledger")


def piece(number: int) -> Piece:
    """The result of a conversation."""
    return Piece(b'{"n":%d}' % number, b'{"ledger":%d}' % number, Tally(1, 10, number))


def hidden(place: Place) -> list[Path]:
    """What lies beside the target."""
    return [path for path in place.target.parent.iterdir() if path != place.target]


def test_nothing_is_seen_before_the_end(place: Place) -> None:
    part = Part(place, "key")
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
def test_an_array_stays_one(place: Place, count: int, text: bytes) -> None:
    part = Part(place, "key")
    for number in range(count):
        part.add(piece(number))
    part.finish(is_array=True, with_ledger=False)
    assert place.target.read_bytes() == text
    assert not place.ledger.exists()


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_a_part_is_gone_on_with_wherever_it_was_cut(place: Place, cut: int) -> None:
    first = Part(place, "key")
    first.add(piece(1))
    first.add(piece(2))
    (path,) = hidden(place)
    path.write_bytes(path.read_bytes()[:-cut])
    again = Part(place, "key")
    assert again.tally == Tally(1, 10, 1)
    again.add(piece(3))
    again.finish(is_array=False, with_ledger=True)
    assert place.target.read_bytes() == b'{"n":1}\n{"n":3}\n'


@pytest.mark.parametrize("header", [b"", b"ke", b"other\n{}\n"])
def test_a_part_of_something_else_is_not(place: Place, header: bytes) -> None:
    first = Part(place, "key")
    first.add(piece(1))
    (path,) = hidden(place)
    path.write_bytes(header)
    again = Part(place, "key")
    assert again.tally == Tally()
    again.add(piece(2))
    again.finish(is_array=False, with_ledger=False)
    assert place.target.read_bytes() == b'{"n":2}\n'


def test_a_part_can_be_thrown_away(place: Place) -> None:
    part = Part(place, "key")
    part.add(piece(1))
    part.discard()
    assert hidden(place) == []


def test_what_cannot_be_written_is_named(place: Place) -> None:
    place.target.mkdir(parents=True)
    with pytest.raises(InputError, match=r"out\.json: cannot be written: Is a directory"):
        Part(place, "key")
