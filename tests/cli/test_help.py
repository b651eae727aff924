"""Help pages: complete, plain, and readable at any width."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Enfold
from tests.cli.processes import run_in_pipes, run_on_terminal

PAGES = [
    [],
    ["count"],
    ["condense"],
    ["restore"],
    ["import"],
    ["export"],
    ["search"],
    ["demo"],
    ["wrap"],
    ["doctor"],
    ["sessions"],
    *(
        ["sessions", name]
        for name in ("list", "status", "compress", "summaries", "undo", "rename", "delete")
    ),
    ["models"],
    *(["models", name] for name in ("list", "show", "set", "reset")),
    ["settings"],
    *(["settings", name] for name in ("list", "set", "unset")),
]


@pytest.mark.parametrize("command", PAGES, ids=" ".join)
def test_every_page_is_plain_text(command: list[str], enfold: Enfold) -> None:
    page = enfold(*command, "--help")
    assert page.code == 0
    assert page.err == b""
    assert page.text.startswith(" ".join(["Usage: enfold", *command]))
    assert page.text.isascii()
    assert "\x1b" not in page.text
    assert max(map(len, page.text.splitlines())) <= 80


@pytest.mark.parametrize("command", PAGES[1:], ids=" ".join)
def test_every_option_is_explained(command: list[str], enfold: Enfold) -> None:
    lines = enfold(*command, "--help").text.splitlines()
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if line.startswith("  --") or (line.startswith("  ") and line.strip().isupper()):
            _, _, words = line.strip().partition("  ")
            assert words.strip() or following.startswith(" " * 10), line


def test_the_help_lists_defaults_and_choices(enfold: Enfold) -> None:
    page = " ".join(enfold("count", "--help").text.split())
    assert "o200k_base, cl100k_base" in page
    assert "[default: o200k_base]" in page
    assert "auto, openai, openai-responses, anthropic, gemini, langchain, enfold" in page
    assert "False" not in page
    assert "[required]" in enfold("search", "--help").text


@pytest.mark.parametrize(("columns", "widest"), [(40, 40), (200, 100)], ids=str)
def test_lines_are_as_long_as_is_good_to_read(columns: int, widest: int) -> None:
    page = run_in_pipes("count", "--help", COLUMNS=str(columns)).text
    assert widest * 0.8 < max(map(len, page.splitlines())) <= widest
    assert " ".join(page.split()).startswith(
        "Usage: enfold count [OPTIONS] [FILE] Count tokens, exactly and offline. Arguments: FILE"
    )


def test_a_terminal_gets_the_same_page() -> None:
    code, shown = run_on_terminal("sessions", "--help", columns=80)
    assert code == 0
    assert shown.replace("\r\n", "\n") == run_in_pipes("sessions", "--help", COLUMNS="80").text
