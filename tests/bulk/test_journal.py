"""The journal: it finds finished files and no others."""

from __future__ import annotations

from pathlib import Path

import pytest

from enfold.bulk.files import NAME, digest, open_journal
from enfold.errors import ConfigError, InputError


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """A result that was noted."""
    path = tmp_path / "small.json"
    path.write_bytes(b"[]")
    with open_journal(tmp_path) as journal:
        journal.finish(path, "key", [(path, digest(path) or "")], {"noted": 1})
    return path


def test_the_next_run_finds_finished_files(target: Path) -> None:
    with open_journal(target.parent) as journal:
        assert journal.finished([target], "key") == {"noted": 1}
        assert journal.finished([target], "another key") is None
        assert journal.finished([target.with_name("other")], "key") is None
        assert journal.finished([target, target.with_name("ledger")], "key") is None


def test_a_result_that_was_changed_or_lost_is_not_finished(target: Path) -> None:
    target.write_bytes(b"[1]")
    with open_journal(target.parent) as journal:
        assert journal.finished([target], "key") is None
    target.unlink()
    with open_journal(target.parent) as journal:
        assert journal.finished([target], "key") is None


@pytest.mark.parametrize("rest", [b'{"target":"cut o', b"\xff\n", b"[]\n", b"{}\n", b"\n"])
def test_a_broken_line_says_nothing_and_spoils_nothing(target: Path, rest: bytes) -> None:
    with (target.parent / NAME).open("ab") as stream:
        stream.write(rest)
    for _ in range(2):
        with open_journal(target.parent) as journal:
            assert journal.finished([target], "key") is not None
            journal.finish(target, "new", [(target, digest(target) or "")], {})
            assert journal.finished([target], "new") == {}
            journal.finish(target, "key", [(target, digest(target) or "")], {})


def test_only_one_run_writes_into_a_folder(tmp_path: Path) -> None:
    with (
        open_journal(tmp_path),
        pytest.raises(ConfigError, match="another run writes into this"),
        open_journal(tmp_path),
    ):
        pass
    with open_journal(tmp_path):
        pass


def test_a_folder_that_cannot_be_made_is_named(target: Path) -> None:
    with (
        pytest.raises(InputError, match=r"small\.json/out: cannot be written"),
        open_journal(target / "out"),
    ):
        pass
