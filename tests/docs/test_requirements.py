"""The map of requirements: it is complete, and names modules and tests that exist."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.docs.pages import DOCS
from tests.source import ROOT

PAGE = (DOCS / "requirements.md").read_text(encoding="utf-8")
SPECIFICATION = ROOT.parent / "shared" / "REQUIREMENTS.md"
STATES = ("done", "partly: ", "not done: ", "background")
HOW_MANY = 354

_ROW = re.compile(r"^\| (?P<id>[A-Z][\w.-]*) \|(?P<rest>.*)\|$", re.MULTILINE)
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def rows() -> list[tuple[str, list[str]]]:
    """Return the id of each row and its other cells: text, state, modules, tests."""
    return [
        (found["id"], [cell.strip() for cell in re.split(r"(?<!\\)\|", found["rest"])])
        for found in _ROW.finditer(PAGE)
    ]


def test_every_requirement_has_one_row() -> None:
    ids = [id for id, _ in rows()]
    assert len(ids) == len(set(ids)) == HOW_MANY


def test_no_requirement_is_left_out() -> None:
    if not SPECIFICATION.is_file():
        pytest.skip("the specification is not beside the project; the number of rows is checked")
    wanted = {found["id"] for found in _ROW.finditer(SPECIFICATION.read_text(encoding="utf-8"))}
    assert {id for id, _ in rows()} == wanted - {"C"}


def test_a_row_that_is_done_names_a_module_and_a_test() -> None:
    wrong = []
    for id, (says, state, modules, tests) in rows():
        is_built = state.startswith(("done", "partly"))
        if not says or not state.startswith(STATES) or is_built != bool(modules and tests):
            wrong.append(id)
    assert wrong == []


def test_every_module_that_is_named_is_there() -> None:
    missing = [
        f"{id}: {module}"
        for id, (_, _, modules, _) in rows()
        for module in re.findall(r"`([\w./]+)`", modules)
        if not _is_there(module)
    ]
    assert missing == []


def test_every_benchmark_that_is_named_is_there() -> None:
    named = set(re.findall(r"`(benchmarks/[\w/]+\.py)`", PAGE))
    assert named
    assert [file for file in named if not (ROOT / file).is_file()] == []


def test_every_test_that_is_named_is_there() -> None:
    missing = [
        f"{id}: {file}::{name}"
        for id, (_, _, _, tests) in rows()
        for file, name in _TEST.findall(tests)
        if name not in _tests_in(ROOT / file)
    ]
    assert missing == []


def test_nothing_but_tests_stands_in_their_column() -> None:
    odd = [id for id, (_, _, _, tests) in rows() if _TEST.sub("", tests).strip(", ")]
    assert odd == []


def _is_there(module: str) -> bool:
    path = ROOT / "src" / Path(*module.split(".")) if module.startswith("enfold") else ROOT / module
    return path.is_dir() or path.with_suffix(".py").is_file()


@cache
def _tests_in(file: Path) -> frozenset[str]:
    if not file.is_file():
        return frozenset()
    nodes = ast.walk(ast.parse(file.read_text(encoding="utf-8")))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in nodes if isinstance(node, functions))
