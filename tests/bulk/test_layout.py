"""Which files are meant, and where their results go."""

from __future__ import annotations

from pathlib import Path

import pytest

from enfold.bulk.files import condense_paths, find_files, restore_paths
from enfold.errors import ConfigError
from tests.bulk.chats import write


@pytest.fixture
def chats(tmp_path: Path) -> Path:
    """A folder of files, good and others."""
    folder = tmp_path / "chats"
    for name in ("b.json", "a.jsonl", "deep/er/c.NDJSON", "notes.txt", ".hidden/d.json", ".e.json"):
        write(folder / name, [])
    return folder


def test_a_folder_is_mirrored(chats: Path, tmp_path: Path) -> None:
    found = find_files([chats])
    out = tmp_path / "out"
    places = condense_paths(found, out, None)
    assert [place.target for place in places] == [
        out / "a.jsonl",
        out / "b.json",
        out / "deep/er/c.NDJSON",
    ]
    assert places[2].source == chats / "deep/er/c.NDJSON"
    assert places[2].ledger == out / "deep/er/c.NDJSON.ledger"
    assert found.others == 1


def test_ledgers_can_lie_elsewhere(chats: Path, tmp_path: Path) -> None:
    out, ledgers = tmp_path / "out", tmp_path / "ledgers"
    written = condense_paths(find_files([chats]), out, ledgers)
    assert written[0].ledger == ledgers / "a.jsonl.ledger"
    for place in written:
        write(place.target, [])
    read = restore_paths(find_files([out]), tmp_path / "again", ledgers)
    assert [place.ledger for place in read] == [place.ledger for place in written]
    restored_paths = restore_paths(find_files([out]), tmp_path / "again", None)
    assert restored_paths[0].ledger == out / "a.jsonl.ledger"


def test_several_folders_are_mirrored_under_their_names(chats: Path, tmp_path: Path) -> None:
    other = write(tmp_path / "other/b.json", []).parent
    named = write(tmp_path / "b.log", [])
    places = condense_paths(find_files([chats, other, named]), tmp_path / "out", None)
    below = [str(place.target.relative_to(tmp_path / "out")) for place in places]
    assert below == [
        "chats/a.jsonl",
        "chats/b.json",
        "chats/deep/er/c.NDJSON",
        "other/b.json",
        "b.log",
    ]


def test_ledgers_are_skipped_silently(tmp_path: Path) -> None:
    write(tmp_path / "x.json.ledger", {})
    assert find_files([tmp_path]).others == 0


def test_nothing_is_met_twice(chats: Path) -> None:
    assert len(find_files([chats, chats / "b.json", chats / "deep"]).files) == 3


def test_links_in_a_circle_end(chats: Path) -> None:
    (chats / "deep" / "up").symlink_to(chats)
    (chats / "circle").symlink_to(chats / "circle")
    (chats / "own.json").symlink_to(chats / "own.json")
    assert [source.name for source, _ in find_files([chats]).files] == [
        "a.jsonl",
        "b.json",
        "c.NDJSON",
        "own.json",
    ]


def test_results_inside_the_folder_are_not_read(chats: Path) -> None:
    out = write(chats / "small/z.json", []).parent
    sources = [source.name for source, _ in find_files([chats], without=[out]).files]
    assert "z.json" not in sources
    assert len(sources) == 3


def test_the_folder_itself_cannot_take_its_results(chats: Path) -> None:
    with pytest.raises(ConfigError, match="is an input; name another folder"):
        find_files([chats], without=[chats.parent / "x" / ".." / "chats"])
    with pytest.raises(ConfigError, match=r"b\.json is an input"):
        condense_paths(find_files([chats / "b.json"]), chats, None)


def test_two_files_of_one_name_are_refused(chats: Path, tmp_path: Path) -> None:
    other = write(tmp_path / "other/b.json", [])
    with pytest.raises(ConfigError, match=r"chats/b\.json and .*other/b\.json would both"):
        condense_paths(find_files([chats / "b.json", other]), tmp_path / "out", None)


def test_an_empty_folder_holds_nothing(tmp_path: Path) -> None:
    assert find_files([tmp_path]).files == []
