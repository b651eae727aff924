"""Texts of a chat: unknown costs are named, and every failed turn comes with advice."""

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
def test_every_failed_turn_comes_with_advice(kind: type[EnfoldError]) -> None:
    text = commands.describe_error(kind("it failed"))
    assert text.startswith("it failed\n")
    assert "/" in text or "continue" in text


def test_other_errors_have_no_advice() -> None:
    assert commands.describe_error(errors.InputError("no such thing")) == "no such thing"


@pytest.mark.parametrize(
    ("cost", "text"), [(None, "cost unknown"), (0.0, "no cost"), (0.01234, "cost $0.0123")]
)
def test_an_unknown_cost_is_not_zero(cost: float | None, text: str) -> None:
    assert commands.format_cost(cost) == text


def test_a_compression_shows_tokens_cost_and_time() -> None:
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
        "Summarized 12 messages: 4,000 → 1,000 tokens (75% less), cost unknown, 1.2 s, "
        "by the built-in summarizer. /undo reverts it.\nNote: a note"
    )


@pytest.mark.parametrize("outcome", ["kept", "no_gain", "nothing_new", "nothing_to_compress"])
def test_a_compression_without_effect_has_its_reason(outcome: str) -> None:
    done = Outcome(outcome, 1, 1)  # type: ignore[arg-type] # a table of its cases
    assert commands.describe_compression(done).startswith("Nothing was summarized: ")


def test_attachments_are_named() -> None:
    assert (
        commands.message_text(user("Look", Attachment(mime="image/png")))
        == "Look\n[attachment image/png]"
    )
    assert "without a name" in commands.message_text(user("Look", Attachment()))


def test_shorten_gives_one_line() -> None:
    assert commands.shorten("a\n b") == "a b"
    assert len(commands.shorten("x" * 1_000)) == 240
