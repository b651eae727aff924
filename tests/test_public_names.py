"""The library's surface: the public names of `import enfold`, and no more."""

from __future__ import annotations

import subprocess
import sys

import pytest

import enfold
from enfold import errors, messages


def test_the_names_are_few_and_sorted() -> None:
    constants_first = sorted(set(enfold.__all__), key=lambda name: (not name.isupper(), name))
    assert enfold.__all__ == constants_first
    assert len(enfold.__all__) <= 38


@pytest.mark.parametrize("name", [name for name in enfold.__all__ if name.isupper()])
def test_every_constant_is_a_number(name: str) -> None:
    assert isinstance(getattr(enfold, name), int | float)


@pytest.mark.parametrize("name", [name for name in enfold.__all__ if not name.isupper()])
def test_every_name_is_there_with_its_explanation(name: str) -> None:
    value = getattr(enfold, name)
    assert value.__name__ == name
    assert value.__module__.startswith("enfold.")
    assert value.__doc__


def test_names_are_the_modules_own() -> None:
    assert enfold.Message is messages.Message
    assert enfold.EnfoldError is errors.EnfoldError


def test_callers_can_name_and_catch_what_the_library_returns_and_raises() -> None:
    needed = {"Engine", "Session", "Prepared", "Condensed", "Outcome", "Receipt", "Report"}
    needed |= {"Status", "Preview", "Ledger", "BlockedError", "CompressionError", "NotFoundError"}
    assert needed <= set(enfold.__all__)


def test_dir_shows_the_public_names_and_nothing_else() -> None:
    assert dir(enfold) == sorted(enfold.__all__)


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'compress_everything'"):
        _ = enfold.compress_everything


def test_star_imports_the_public_names() -> None:
    names: dict[str, object] = {}
    exec("from enfold import *", names)
    assert set(enfold.__all__) == names.keys() - {"__builtins__"}


def test_names_are_loaded_when_first_used() -> None:
    program = "import sys, enfold; print(*sys.modules); enfold.Message; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    before, after = (set(line.split()) for line in done.stdout.splitlines())
    assert [name for name in before if name.startswith("enfold.")] == []
    assert "enfold.messages" in after
