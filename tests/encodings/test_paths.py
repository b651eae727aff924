"""Paths that many lines begin with."""

import pytest

from enfold.encodings import (
    decode_details,
    decode_frames,
    decode_paths,
    decode_trees,
    encode_details,
    encode_frames,
    encode_paths,
    encode_trees,
)


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


def test_hits_without_numbers_stand_below_their_file_and_a_colon() -> None:
    text = "./src/a.py:import os\n./src/a.py:    os.exit()\n./src/b.py:import os"
    found = encode_paths(text)
    assert found is not None
    assert found[0] == "./src/a.py:\nimport os\n    os.exit()\n./src/b.py:import os"
    assert decode_paths(*found) == text


def test_files_of_several_folders_stand_below_their_own() -> None:
    text = "docs/a/b/one.md\ndocs/a/b/two.md\nsrc/c/d/three.py\nsrc/c/d/four.py\ntop/five.py"
    found = encode_trees(text)
    assert found is not None
    shown = "docs/a/b/\n one.md\n two.md\nsrc/c/d/\n three.py\n four.py\ntop/five.py"
    assert found[0] == shown
    assert decode_trees(*found) == text
    assert decode_paths(shown, [[0, 2, False], [3, 2, False]]) == text  # as 0.1 wrote it


def test_folders_that_are_listed_with_their_names_are_a_tree() -> None:
    text = ".:\nsrc\n\n./src:\na\nb.py\n\n./src/a:\n\n./src/a/deep/down:\nc.py\n\n./docs:\nd.md"
    found = encode_trees(f"ls -R\n{text}\n\nThe end.")
    assert found is not None
    shown = ".: src\n src: a b.py\n  a:\n   deep/down: c.py\n docs: d.md"
    assert found[0] == f"ls -R\n{shown}\n\nThe end."
    assert decode_trees(*found) == f"ls -R\n{text}\n\nThe end."


def test_a_folder_stands_above_what_is_in_it() -> None:
    text = "/a/b/one\n/a/b/one/x.py\n/a/b/one/y.py\n/a/b/two:\n/a/b"
    found = encode_trees(text)
    assert found is not None
    assert found[0] == "/a/b/one\n x.py\n y.py\n/a/b/two:\n/a/b"
    assert decode_trees(*found) == text


def test_columns_shared_by_most_files_are_written_once() -> None:
    text = (
        "total 12\n"
        "drwxr-xr-x  2 root  root  4096 Oct 24  2024 src\n"
        "-rw-r--r--  1 root  root   120 Oct 24  2024 setup.cfg\n"
        "-rw-r--r--  1 root  root    17 Oct 24  2024 two words.md\n"
        "-rw-r--r-- 10 agent staff    3 Nov  2 10:05 new.py\n"
    )
    found = encode_details(text)
    assert found is not None
    assert found[0] == (
        "total 12\n"
        "-rw-r--r-- 1 root root Oct 24  2024:\n"
        "drwxr-xr-x 2 4096 src\n"
        "120 setup.cfg\n"
        "17 two words.md\n"
        "-rw-r--r-- 10 agent staff 3 Nov  2 10:05 new.py\n"
    )
    assert decode_details(*found) == text


def test_frames_of_a_traceback_are_short_and_name_a_folder_once() -> None:
    lines = [
        "Traceback (most recent call last):",
        '  File "/app/db/base.py", line 5, in <module>',
        "    connect()",
        '  File "/app/db/base.py", line 9, in connect',
        '  File "/lib/base.py", line 2, in open',
        '  File "/app/db/base.py", line 11, in retry',
        "ValueError: no",
    ]
    found = encode_frames("\n".join(lines))
    assert found is not None
    assert found[0].split("\n") == [
        "Traceback (most recent call last):",
        "  /app/db/base.py:5 <module>",
        "    connect()",
        "  …/base.py:9 connect",
        "  /lib/base.py:2 open",
        "  /app/db/base.py:11 retry",
        "ValueError: no",
    ]
    assert decode_frames(*found) == "\n".join(lines)


def test_dates_in_names_are_no_line_numbers() -> None:
    text = "todo/2026-01-22-first.md\ntodo/2026-01-23-second.md\ntodo/2026-01-24-third.md"
    assert encode_paths(text) is None
    found = encode_trees(text)
    assert found is not None
    assert found[0] == "todo/\n 2026-01-22-first.md\n 2026-01-23-second.md\n 2026-01-24-third.md"


def test_a_list_of_paths_stands_below_its_folder() -> None:
    text = "Found:\n/home/me/app/x.py\n/home/me/app/y/z.py\n/home/me/app/w.py\nDone."
    found = encode_trees(text)
    assert found is not None
    assert found[0] == "Found:\n/home/me/app/\n x.py\n y/z.py\n w.py\nDone."
    assert decode_trees(*found) == text


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
def test_lines_without_a_shared_path_stay_unchanged(text: str) -> None:
    assert encode_paths(text) is None
    assert encode_trees(text) is None


def test_equal_paths_are_distinguished_by_their_folder() -> None:
    text = "/home/me/a\n/home/me/a\n/home/me/a/\n/home/me/a"
    found = encode_trees(text)
    assert found is None or decode_trees(*found) == text


def test_very_deep_paths_are_left_alone() -> None:
    assert encode_trees("\n".join("a/" * depth + "b" for depth in range(1, 2_000))) is None
