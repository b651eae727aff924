"""`enfold sessions pin`, `unpin` and `pins`."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Enfold


def test_a_pinned_message_stays_through_a_compression_until_it_is_unpinned(
    festival: Enfold,
) -> None:
    assert festival("sessions", "pin", "festival", "2").text.startswith("pinned: #2 ")
    (listed,) = festival("sessions", "pins", "festival", "--json").json
    assert (listed["position"], listed["why"], listed["in_view"]) == (2, "pinned", True)
    festival("sessions", "compress", "festival", "--keep-tokens", "500")
    assert festival("sessions", "pins", "festival", "--json").json == [listed]
    title, head, row = festival("sessions", "pins", "festival").text.splitlines()
    assert title == "1 message"
    assert head.split() == ["message", "role", "why", "tokens", "in", "view", "text"]
    assert row.split()[:5] == ["#2", listed["role"], "pinned", f"{listed['tokens']:,}", "yes"]
    unpinned = festival("sessions", "unpin", "festival", listed["message"])
    assert unpinned.text.startswith("unpinned: #2 ")
    empty = festival("sessions", "pins", "festival")
    assert empty.text.startswith("0 messages\n")
    assert "enfold sessions pin" in empty.said


@pytest.mark.parametrize("command", ["pin", "unpin"])
@pytest.mark.parametrize("message", ["99", "#99", "nowhere"])
def test_a_message_that_is_not_there_cannot_be_pinned(
    command: str, message: str, festival: Enfold
) -> None:
    festival("sessions", command, "festival", message).refused(message.removeprefix("#"))
    assert festival("sessions", "pins", "festival", "--json").json == []
