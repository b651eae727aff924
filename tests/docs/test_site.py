"""The documentation site: the menu, the links and the generated pages are complete."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scripts import docs

import enfold
from enfold import cli, errors, settings
from enfold.strategies import contract
from tests.docs.pages import DOCS, pages
from tests.source import ROOT, package
from tests.test_architecture import LAYERS

_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")


@pytest.fixture(scope="module")
def staged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder with all sources of the site."""
    folder = tmp_path_factory.mktemp("site") / "documentation"
    docs.stage(folder)
    return folder / "docs"


def test_the_menu_has_every_page_once_and_no_other(staged: Path) -> None:
    config = tomllib.loads(docs.CONFIG.read_text(encoding="utf-8"))
    listed = list(_leaves(config["project"]["nav"]))
    assert len(listed) == len(set(listed))
    written = {page.relative_to(staged).as_posix() for page in staged.rglob("*.md")}
    records = {page for page in written if re.match(r"decisions/\d{3}-", page)}
    assert written - records == set(listed)


def test_the_list_of_decisions_is_complete() -> None:
    listed = re.findall(r"\((\d{3}-[\w-]+\.md)\)", (DOCS / "decisions" / "index.md").read_text())
    assert listed == sorted(page.name for page in (DOCS / "decisions").glob("[0-9]*.md"))


def test_every_link_to_a_page_or_a_file_works(staged: Path) -> None:
    broken = []
    for page in pages():
        place = staged / page.relative_to(DOCS) if page.is_relative_to(DOCS) else ROOT / page.name
        for target in _LINK.findall(page.read_text(encoding="utf-8")):
            file = target.partition("#")[0]
            if "://" not in target and file and not (place.parent / file).exists():
                broken.append(f"{page.name}: {target}")
    assert broken == []


def test_the_reference_has_every_public_name(staged: Path) -> None:
    text = (staged / "reference" / "python.md").read_text(encoding="utf-8")
    entry = re.compile(r"^### `enfold\.(\w+)`\n+(?:```text\n(?s:.*?)```\n+)?[\w`]", re.MULTILINE)
    explained = entry.findall(text)
    assert explained == enfold.__all__


def test_the_reference_has_every_setting_error_strategy_and_command(staged: Path) -> None:
    def text(name: str) -> str:
        return (staged / "reference" / f"{name}.md").read_text(encoding="utf-8")

    assert [name for name in settings.fields() if f"| `{name}` |" not in text("settings")] == []
    assert [e for e in errors.FACTS if f"| `{e.__name__}` |" not in text("errors")] == []
    assert [name for name in contract.names() if f"## `{name}`" not in text("strategies")] == []
    commands = [name for group in cli.COMMANDS.values() for name in group]
    assert [name for name in commands if f"## `enfold {name}`" not in text("cli")] == []


def test_the_reference_has_every_operation_of_the_api(staged: Path) -> None:
    text = (staged / "reference" / "http.md").read_text(encoding="utf-8")
    assert len(re.findall(r"^`(?:GET|POST|PUT|PATCH|DELETE) /api/", text, re.MULTILINE)) >= 50
    linked = set(re.findall(r"\]\(#(\w+)\)", text))
    shapes = {name.lower() for name in re.findall(r"^### `(\w+)`", text, re.MULTILINE)}
    assert linked <= shapes


def test_the_architecture_page_has_the_layers_and_units_of_the_code(staged: Path) -> None:
    text = (staged / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (?:the public names|doors|\d+) \| (.+) \|$", text, re.MULTILINE)
    layers = [tuple(re.findall(r"`(\w+)`", row)) for row in rows]
    assert layers == [tuple(unit or "enfold" for unit in layer) for layer in LAYERS]
    there = {module.unit for module in package() if module.unit}
    assert [
        unit for unit in there if not re.search(rf"^\| `{unit}` \| \S", text, re.MULTILINE)
    ] == []


@pytest.mark.parametrize(
    "page",
    [
        '<script src="https://elsewhere.example/a.js"></script>',
        "<link rel=stylesheet href=//elsewhere.example/a.css>",
        '<img alt="" src="http://elsewhere.example/a.png">',
        "<style>body { background: url(https://elsewhere.example/a.png) }</style>",
        "<style>@import 'https://elsewhere.example/a.css'</style>",
    ],
    ids=["script", "link", "image", "background", "import"],
)
def test_resources_from_other_servers_are_found(page: str, tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(page, encoding="utf-8")
    assert len(list(docs.external_resources(tmp_path))) == 1


def test_a_plain_link_is_not_a_resource(tmp_path: Path) -> None:
    page = '<a href="https://elsewhere.example">there</a> <script src="own.js"></script>'
    (tmp_path / "index.html").write_text(page, encoding="utf-8")
    assert list(docs.external_resources(tmp_path)) == []


def _leaves(nav: Any) -> Iterator[str]:
    for entry in nav:
        for value in entry.values():
            yield from [value] if isinstance(value, str) else _leaves(value)
