"""`enfold sessions pin`, `unpin` and `pins`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.conftest import Enfold


def _pinned(festival: Enfold) -> list[dict[str, Any]]:
    listed = festival("sessions", "pins", "festival", "--json").json
    return [each for each in listed if each["why"] == "pinned"]


def test_a_pinned_message_stays_through_a_compression_until_it_is_unpinned(
    festival: Enfold,
) -> None:
    assert festival("sessions", "pin", "festival", "4").text.startswith("pinned: #4 ")
    (pinned,) = _pinned(festival)
    assert (pinned["position"], pinned["in_view"]) == (4, True)
    done = festival("sessions", "compress", "festival", "--keep-tokens", "500", "--json").json
    assert done["compressed"]
    assert _pinned(festival) == [pinned]
    _, head, *rows = festival("sessions", "pins", "festival").text.splitlines()
    assert head.split() == ["message", "role", "why", "tokens", "in", "view", "text"]
    expected = ["#4", pinned["role"], "pinned", f"{pinned['tokens']:,}", "yes"]
    assert expected in [row.split()[:5] for row in rows]
    unpinned = festival("sessions", "unpin", "festival", pinned["message"])
    assert unpinned.text.startswith("unpinned: #4 ")
    assert _pinned(festival) == []


def test_a_session_without_pins_names_the_command(stored: Enfold) -> None:
    stored("import", "--session", "empty", stdin=b'[{"role": "assistant", "content": "Hello."}]')
    listed = stored("sessions", "pins", "empty")
    assert listed.text.startswith("0 messages\n")
    assert "enfold sessions pin" in listed.stderr_text


@pytest.mark.parametrize("command", ["pin", "unpin"])
@pytest.mark.parametrize("message", ["99", "#99", "nowhere"])
def test_a_message_that_is_not_there_cannot_be_pinned(
    command: str, message: str, festival: Enfold
) -> None:
    festival("sessions", command, "festival", message).refused(message.removeprefix("#"))
    assert _pinned(festival) == []
