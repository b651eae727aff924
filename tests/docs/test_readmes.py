"""The READMEs of packages name modules and functions that exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.source import ROOT

SOURCE = ROOT / "src" / "enfold"
READMES = sorted(SOURCE.rglob("README.md"))

_MODULE = re.compile(r"`([\w/]+\.(?:py|toml|css|sql))`")
_STEP = re.compile(r"^\| [^|]+ \| (`[^|]+`) \| (`[^|]+`) \|$", re.MULTILINE)


@pytest.mark.parametrize("page", READMES, ids=lambda page: page.parent.name)
def test_the_files_that_a_readme_names_exist(page: Path) -> None:
    named = _MODULE.findall(page.read_text(encoding="utf-8"))
    assert [name for name in named if _find(page, name) is None] == []


@pytest.mark.parametrize("name", ["engine", "server/proxy"])
def test_the_steps_of_a_request_are_functions_of_the_files_named_with_them(name: str) -> None:
    page = SOURCE / name / "README.md"
    steps = list(_steps(page))
    assert steps
    missing = []
    for function, files in steps:
        source = "\n".join(path.read_text(encoding="utf-8") for path in files)
        if not re.search(rf"^ *(?:async )?(?:def|class) {function}\b", source, re.MULTILINE):
            missing.append(function)
    assert missing == []


def test_the_readme_of_the_engine_lists_every_module() -> None:
    page = SOURCE / "engine" / "README.md"
    listed = re.findall(r"^\| `(\w+\.py)` \|", page.read_text(encoding="utf-8"), re.MULTILINE)
    modules = {path.name for path in page.parent.glob("*.py")} - {"__init__.py"}
    assert sorted(listed) == sorted(modules)


def _steps(page: Path) -> Iterator[tuple[str, list[Path]]]:
    """Yield each function that a table of steps names, with the files of its row."""
    for functions, files in _STEP.findall(page.read_text(encoding="utf-8")):
        paths = [path for name in _MODULE.findall(files) if (path := _find(page, name))]
        for function in re.findall(r"`(?:\w+\.)?(\w+)`", functions):
            yield function, paths


def _find(page: Path, name: str) -> Path | None:
    """Return the file, which is named from the README's folder or from the package."""
    places = (page.parent / name, SOURCE / name, SOURCE.parent / name)
    return next((path for path in places if path.is_file()), None)
