"""Words of a talk: what is unknown is said to be, and every failure of a model has a way on."""

from __future__ import annotations

import pytest

from enfold import errors
from enfold.chat import commands
from enfold.engine import Outcome
from enfold.errors import FACTS, BlockedError, CompressionError, EnfoldError, GatewayError
from enfold.messages import Attachment
from enfold.testing import user


@pytest.mark.parametrize(
    "kind",
    [k for k in FACTS if issubclass(k, GatewayError | CompressionError | BlockedError)],
    ids=lambda kind: kind.__name__,
)
def test_every_failure_of_a_turn_has_a_way_on(kind: type[EnfoldError]) -> None:
    text = commands.describe_error(kind("it failed"))
    assert text.startswith("it failed\n")
    assert "/" in text or "go on" in text


def test_other_errors_speak_for_themselves() -> None:
    assert commands.describe_error(errors.InputError("no such thing")) == "no such thing"


@pytest.mark.parametrize(
    ("cost", "said"), [(None, "cost unknown"), (0.0, "no cost"), (0.01234, "cost $0.0123")]
)
def test_unknown_is_not_nothing(cost: float | None, said: str) -> None:
    assert commands.format_cost(cost) == said


def test_a_compression_says_before_after_cost_and_time() -> None:
    done = Outcome(
        "compressed",
        4_000,
        1_000,
        12,
        author="local",
        seconds=1.25,
        warnings=("a note",),
        cost=None,
    )
    assert commands.describe_compression(done) == (
        "Folded 12 messages: 4,000 → 1,000 tokens (75% less), cost unknown, 1.2 s, by local. "
        "/undo takes it back.\nNote: a note"
    )


@pytest.mark.parametrize("outcome", ["kept", "no_gain", "nothing_new", "nothing_to_compress"])
def test_nothing_done_is_said(outcome: str) -> None:
    done = Outcome(outcome, 1, 1)  # type: ignore[arg-type] # a table of its cases
    assert commands.describe_compression(done).startswith("Nothing was folded: ")


def test_attachments_are_named() -> None:
    assert (
        commands.message_text(user("Look", Attachment(mime="image/png")))
        == "Look\n[attachment image/png]"
    )
    assert "without a name" in commands.message_text(user("Look", Attachment()))


def test_brief_is_one_line() -> None:
    assert commands.shorten("a\n b") == "a b"
    assert len(commands.shorten("x" * 1_000)) == 240
