"""A talk with a small model, and the screen that shows it."""

from __future__ import annotations

from tests.talk.desk import desk

__all__ = ["desk"]
