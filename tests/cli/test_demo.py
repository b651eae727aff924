"""`enfold demo`: every step is true, in a pipe and on a terminal."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Enfold
from tests.cli.processes import run_on_terminal


def test_the_demo_ends_with_everything_as_it_came_in(enfold: Enfold, own_home: Path) -> None:
    outcome = enfold("demo")
    assert (outcome.code, outcome.err) == (0, b"")
    for step in (
        "1. A conversation that no longer fits",
        "Decision: must",
        "2. Before the next request",
        "Summarized ",
        "3. Nothing is lost",
        "E-4031 is in message ",
        "(summarized)",
        "4. The compression can be undone",
        "equal the input, byte for byte",
    ):
        assert step in outcome.text
    assert not list(own_home.rglob("*.db"))


def test_the_demo_fits_a_terminal() -> None:
    code, shown = run_on_terminal("demo", columns=100)
    assert code == 0
    assert "byte for byte" in shown
    assert max(map(len, shown.splitlines())) <= 100
