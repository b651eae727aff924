"""Names and docstrings are in plain words. Each check reads the source of the package."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator

from tests.source import package

MODULES = package()

RETIRED = frozenset(
    {
        "ahead",
        "alone",
        "asked",
        "beside",
        "errand",
        "heard",
        "known",
        "outside",
        "said",
        "seen",
        "shelf",
        "told",
    }
)
"""Names that say too little. The list of replacements is in CONTRIBUTING.md."""

NOUNS_IN_ING = frozenset(
    {"embedding", "logging", "pricing", "settings", "testing", "typing", "wiring"}
)
"""Module names that end like a gerund and are nouns."""

UNCLEAR_START = re.compile(
    r"^\W*(?:what|who|whose|whom|whoever|whatever|whichever|whether)\b", re.IGNORECASE
)
UNCLEAR_WORD = re.compile(r"\b(?:whoever|nobody|somebody|so many|so much)\b", re.IGNORECASE)


def test_each_class_name_has_one_meaning() -> None:
    names = Counter(
        node.name for module in MODULES for node in module.nodes if isinstance(node, ast.ClassDef)
    )
    shared = {name for name, count in names.items() if count > 1}
    assert not shared


def test_retired_names_are_not_used() -> None:
    found = [
        f"{module.name}:{line}: {name}"
        for module in MODULES
        for line, name in _names(module.nodes)
        if name.strip("_").lower() in RETIRED
    ]
    assert not found


def test_modules_are_named_by_nouns() -> None:
    last_parts = {module.name.rpartition(".")[2] for module in MODULES}
    assert not {name for name in last_parts if name in RETIRED}
    assert not {name for name in last_parts - NOUNS_IN_ING if name.endswith("ing")}


def test_docstrings_start_plainly() -> None:
    first_lines = [
        (module.name, text.partition("\n")[0])
        for module in MODULES
        for text in _docstrings(module.nodes)
    ]
    unclear = [
        f"{name}: {line}"
        for name, line in first_lines
        if UNCLEAR_START.search(line) or UNCLEAR_WORD.search(line)
    ]
    assert not unclear


def test_the_checks_find_what_they_look_for() -> None:
    tree = ast.parse('def told(seen):\n    """What nobody asked."""\n    self._known = seen')
    nodes = tuple(ast.walk(tree))
    assert {name for _, name in _names(nodes)} >= {"told", "seen", "_known"}
    assert list(_docstrings(nodes)) == ["What nobody asked."]
    assert UNCLEAR_START.search("Whether it fits.")
    assert not UNCLEAR_START.search("Return the tokens of each message.")


def _names(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    """Every identifier of the nodes, with its line."""
    for node in nodes:
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                yield node.lineno, name
            case ast.arg(arg=name):
                yield node.lineno, name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield node.lineno, name
            case ast.ClassDef(name=name):
                yield node.lineno, name
            case ast.keyword(arg=str(name)):
                yield node.lineno, name


def _docstrings(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield text
