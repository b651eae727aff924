"""Paths that many lines begin with."""

import pytest

from enfold.encodings import decode_paths, encode_paths


def test_hits_of_a_search_stand_below_their_file() -> None:
    text = "src/a.py:1:import os\nsrc/a.py:9:os.exit()\nsrc/b.py:4:import os\n"
    found = encode_paths(text)
    assert found is not None
    assert found[0] == "src/a.py\n1:import os\n9:os.exit()\nsrc/b.py:4:import os\n"
    assert decode_paths(*found) == text


def test_lines_around_a_hit_keep_their_sign() -> None:
    text = "src/my-file.py-8-before\nsrc/my-file.py:9:hit\nsrc/my-file.py-10-after\n--"
    found = encode_paths(text)
    assert found is not None
    assert found[0] == "src/my-file.py\n8-before\n9:hit\n10-after\n--"
    assert decode_paths(*found) == text


def test_lines_around_hits_are_known_by_their_numbers_where_no_hit_is_shown() -> None:
    text = "lib/v-2-x/a.py-8-on it\nlib/v-2-x/a.py-9-\nlib/v-2-x/a.py-10-and on"
    found = encode_paths(text)
    assert found is not None
    assert found[0] == "lib/v-2-x/a.py\n8-on it\n9-\n10-and on"
    assert decode_paths(*found) == text


def test_files_of_several_folders_stand_below_their_own() -> None:
    text = "docs/a/b/one.md\ndocs/a/b/two.md\nsrc/c/d/three.py\nsrc/c/d/four.py\ntop/five.py"
    found = encode_paths(text)
    assert found is not None
    assert found[0] == "docs/a/b/\n one.md\n two.md\nsrc/c/d/\n three.py\n four.py\ntop/five.py"
    assert decode_paths(*found) == text


def test_dates_in_names_are_no_line_numbers() -> None:
    text = "todo/2026-01-22-first.md\ntodo/2026-01-23-second.md\ntodo/2026-01-24-third.md"
    found = encode_paths(text)
    assert found is not None
    assert found[0] == "todo/\n 2026-01-22-first.md\n 2026-01-23-second.md\n 2026-01-24-third.md"


def test_a_list_of_paths_stands_below_its_folder() -> None:
    text = "Found:\n/home/me/app/x.py\n/home/me/app/y/z.py\n/home/me/app/w.py\nDone."
    found = encode_paths(text)
    assert found is not None
    assert found[0] == "Found:\n/home/me/app/\n x.py\n y/z.py\n w.py\nDone."
    assert decode_paths(*found) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no path at all",
        "a/b.py:1:one hit only",
        "/home/a\n/usr/b",
        "/x\n/y\n/z",
        "     1→src/a.py:1:x\n     2→src/a.py:2:y",
        "2026-02-21T16:25:09 GET /a\n2026-02-21T16:25:10 GET /b",
        "work/ent-108-add/a.go is new\nwork/ent-108-add/b.go is new",
        "at 10:20:30 /a\nat 10:20:30 /b",
    ],
    ids=repr,
)
def test_what_shares_no_path_is_left_alone(text: str) -> None:
    assert encode_paths(text) is None


def test_equal_paths_are_told_apart_from_their_folder() -> None:
    text = "/home/me/a\n/home/me/a\n/home/me/a/"
    found = encode_paths(text)
    assert found is None or decode_paths(*found) == text
