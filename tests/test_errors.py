"""The error tree: every error has its facts, and says where."""

from __future__ import annotations

import pytest

from enfold import errors
from enfold.errors import FACTS, DialectError, EnfoldError, InputError, facts

TREE = [kind for kind in vars(errors).values() if isinstance(kind, type)]
ERRORS = [kind for kind in TREE if issubclass(kind, EnfoldError)]


@pytest.mark.parametrize("kind", ERRORS)
def test_every_error_has_a_row_and_a_place_in_the_drawing(kind: type[EnfoldError]) -> None:
    assert kind in FACTS
    assert f"{kind.__name__} " in (errors.__doc__ or "").replace("\n", " ")


def test_codes_are_unlike_each_other() -> None:
    codes = [row.code for row in FACTS.values()]
    assert len(codes) == len(set(codes))


@pytest.mark.parametrize("row", FACTS.values(), ids=lambda row: row.code)
def test_statuses_and_exit_codes_say_failure(row: errors.ErrorFacts) -> None:
    assert 400 <= row.status <= 599
    assert 1 <= row.exit_code <= 5


def test_an_error_without_a_row_takes_its_parents() -> None:
    class TelegraphError(DialectError):
        """A dialect of later."""

    assert facts(TelegraphError("unreadable")) == FACTS[DialectError]


@pytest.mark.parametrize(
    ("place", "outer", "expected"),
    [
        ("", "messages[3]", "messages[3]"),
        ("content", "messages[3]", "messages[3].content"),
        ("[2]", "content", "content[2]"),
    ],
)
def test_an_input_error_collects_its_place_from_the_inside_out(
    place: str, outer: str, expected: str
) -> None:
    error = DialectError("expected text", place=place).at(outer)
    assert type(error) is DialectError
    assert error.place == expected
    assert str(error) == f"{expected}: expected text"


def test_an_input_error_without_a_place_is_its_reason() -> None:
    assert str(InputError("not valid JSON")) == "not valid JSON"
