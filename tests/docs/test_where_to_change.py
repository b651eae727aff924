"""The table "Where to change what" names files and registries that exist."""

from __future__ import annotations

import re

from tests.source import ROOT

SECTION = re.compile(r"## Where to change what\n(.*?)\n## ", re.DOTALL)
CHANGES = 5


def test_files_exist_and_hold_their_tables() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    section = SECTION.search(page)
    assert section is not None
    rows = [line.split("|")[1:-1] for line in section[1].splitlines() if line.startswith("| Add")]
    assert len(rows) == CHANGES
    for change, files, tables in rows:
        paths = [
            ROOT / name for name in re.findall(r"`(src/[\w/.]+)`", files) if "NAME" not in name
        ]
        assert paths, change
        assert all(path.is_file() for path in paths), f"{change}: {files}"
        source = "\n".join(path.read_text(encoding="utf-8") for path in paths)
        for table in re.findall(r"`(\w+)`", tables):
            assert re.search(rf"^(?:class )?{table}\b", source, re.MULTILINE), f"{change}: {table}"
