"""Wording: as people say it, where they are."""

from __future__ import annotations

import time

import pytest

from enfold.amounts import number, when


def test_numbers_have_their_noun() -> None:
    assert [number(n, "token") for n in (0, 1, 1_234)] == ["0 tokens", "1 token", "1,234 tokens"]


def test_a_time_is_the_time_of_the_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert when(0) == "1970-01-01 09:00"
    finally:
        monkeypatch.undo()
        time.tzset()
