"""Writing: a file is written whole, or as it was."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from enfold.cli.files import save
from enfold.errors import ConfigError, InputError


def test_files_are_written(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    two.write_bytes(b"before, and longer")
    save((one, b"1"), (two, b"2"))
    assert (one.read_bytes(), two.read_bytes()) == (b"1", b"2")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "two"]


def test_if_one_cannot_be_written_none_is(tmp_path: Path) -> None:
    fine, folder = tmp_path / "fine", tmp_path / "folder"
    fine.write_bytes(b"before")
    folder.mkdir()
    with pytest.raises(InputError, match="folder: cannot be written: Is a directory"):
        save((fine, b"after"), (folder, b"x"))
    with pytest.raises(InputError, match="cannot be written: No such file or directory"):
        save((fine, b"after"), (tmp_path / "missing" / "file", b"x"))
    assert fine.read_bytes() == b"before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fine", "folder"]


def test_two_results_do_not_go_into_one_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="two results"):
        save((tmp_path / "a", b"1"), (tmp_path / "b" / ".." / "a", b"2"))
    with pytest.raises(ConfigError, match="two results"):
        save((tmp_path / "a", b"1"), (tmp_path / "a", b"2"))
    assert list(tmp_path.iterdir()) == []


def test_rights_and_links_stay(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"before")
    target.chmod(0o640)
    link.symlink_to(target)
    save((link, b"after"))
    assert link.is_symlink()
    assert target.read_bytes() == b"after"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_a_new_file_has_the_usual_rights(tmp_path: Path) -> None:
    usual = tmp_path / "usual"
    usual.touch()
    save((tmp_path / "new", b"x"))
    assert (tmp_path / "new").stat().st_mode == usual.stat().st_mode


def test_a_device_is_written_to_not_replaced() -> None:
    before = Path(os.devnull).stat().st_ino
    save((Path(os.devnull), b"x"))
    assert Path(os.devnull).stat().st_ino == before


def test_a_name_of_the_greatest_length_works(tmp_path: Path) -> None:
    file = tmp_path / ("n" * 255)
    save((file, b"x"))
    assert file.read_bytes() == b"x"
