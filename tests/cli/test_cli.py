"""The command as a whole: its subcommands, its help and its errors."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from importlib.metadata import PackageNotFoundError, entry_points, version
from pathlib import Path

import pytest

from enfold.cli import COMMANDS, NEXT_STEPS, main
from enfold.errors import FACTS
from tests.cli.conftest import Enfold

EVERY = [
    (name, module, summary)
    for commands in COMMANDS.values()
    for name, (module, summary) in commands.items()
]


def _installed() -> str:
    try:
        return version("enfold")
    except PackageNotFoundError:
        pytest.skip("enfold is not installed, only on the path")


def test_the_program_is_this_module() -> None:
    _installed()
    (script,) = entry_points(group="console_scripts", name="enfold")
    assert script.load() is main


def test_the_version_is_the_installed_one(enfold: Enfold) -> None:
    expected = _installed()
    outcome = enfold("--version")
    assert (outcome.code, outcome.text) == (0, f"enfold {expected}\n")


def test_without_a_word_there_is_help(enfold: Enfold) -> None:
    assert enfold().out.decode() == f"{NEXT_STEPS}\n"
    for line in NEXT_STEPS.splitlines():
        if line.startswith("  enfold "):
            assert enfold(line.split()[1], "--help").code == 0


@pytest.mark.parametrize(("name", "module", "summary"), EVERY, ids=[row[0] for row in EVERY])
def test_the_list_says_of_a_command_what_the_command_says(
    name: str, module: str, summary: str, enfold: Enfold
) -> None:
    path, _, attribute = module.partition(":")
    app = getattr(import_module(f"enfold.cli.{path}"), attribute or "app")
    assert app.name == (name,)
    if not app.resolved_commands().keys() - {"--help", "-h", "--version"}:
        # Cyclopts shows the list's words on the command's own page, and the docstring nowhere.
        assert app.default_command.__doc__ == summary
    help_page = enfold(name, "--help").text
    assert help_page.startswith(f"Usage: enfold {name}")
    assert summary in help_page
    assert re.search(f"^  {name} +{re.escape(summary)}$", enfold("--help").text, re.MULTILINE)


def test_the_error_of_a_wrong_command_suggests_the_right_one(enfold: Enfold) -> None:
    enfold("cuont").refused("no command 'cuont'", "Did you mean 'count'?", "See 'enfold --help'")
    outcome = enfold("xyzzy")
    outcome.refused("no command 'xyzzy'; available: count, condense, restore")
    assert "Did you mean" not in outcome.stderr_text


def test_the_error_of_a_wrong_subcommand_suggests_the_right_one(enfold: Enfold) -> None:
    outcome = enfold("sessions", "compres", "x")
    outcome.refused("'compres'", "Did you mean 'compress'?", "See 'enfold sessions --help'")


def test_the_error_of_a_wrong_option_suggests_the_right_one(enfold: Enfold) -> None:
    outcome = enfold("count", "--jsno", "x.json")
    outcome.refused("--jsno", "Did you mean --json?", "See 'enfold count --help'")


def test_an_argument_too_many_is_named(enfold: Enfold) -> None:
    enfold("count", "a.json", "b.json").refused("one argument too many: 'b.json'")
    enfold("sessions", "delte").refused("no command 'delte'", "Did you mean 'delete'?")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["restore", "x"], ["--ledger"]),
        (["export"], ["SESSION"]),
        (["search"], ["QUERY"]),
        (["condense", "--window", "wide"], ["--window", '"wide"', "int"]),
        (["condense", "--window"], ["--window"]),
        (["models", "set", "a:b", "--threshold", "high"], ["--threshold", '"high"', "float"]),
        (["sessions", "--limit", "0"], ["--limit", "Must be >= 1"]),
        (["search", "x", "--limit", "-5"], ["--limit", "Must be >= 1"]),
    ],
    ids=" ".join,
)
def test_options_say_what_they_expect(
    arguments: list[str], words: list[str], enfold: Enfold
) -> None:
    enfold(*arguments).refused(*words)


def test_a_file_may_be_called_like_an_option(
    enfold: Enfold, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path_factory.mktemp("odd"))
    Path("--json").write_bytes(b"[]")
    assert "0 tokens" in enfold("count", "--", "--json").text


def test_an_interrupt_is_no_traceback(enfold: Enfold, monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted:
        def isatty(self) -> bool:
            raise KeyboardInterrupt

    outcome = enfold("count", "nothing.json")
    outcome.refused("nothing.json")
    monkeypatch.setattr("enfold.cli.files.sys.stdin", Interrupted())
    assert main_code(["count"], monkeypatch) == 130


def main_code(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> object:
    """The exit code that the program ends with."""
    monkeypatch.setattr(sys, "argv", ["enfold", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code


def test_the_program_exits_with_the_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main_code(["--version"], monkeypatch) == 0
    assert main_code(["no-such-command"], monkeypatch) == 2


def test_exit_codes_are_those_of_the_table(stored: Enfold) -> None:
    codes = {kind.__name__: facts.exit_code for kind, facts in FACTS.items()}
    assert stored("sessions", "status", "nobody").code == codes["NotFoundError"] == 2
    assert stored("sessions", "--db", "mysql://x").code == codes["ConfigError"] == 2
