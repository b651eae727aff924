"""Wording: numbers with their nouns, and times, as every screen says them."""

from __future__ import annotations

from datetime import datetime


def number(amount: int, noun: str) -> str:
    """A number with its noun, in the plural unless it is one."""
    return f"{amount:,} {noun}" if amount == 1 else f"{amount:,} {noun}s"


def when(milliseconds: int) -> str:
    """A time for people, where they are."""
    local = datetime.fromtimestamp(milliseconds / 1000).astimezone()
    return local.strftime("%Y-%m-%d %H:%M")
