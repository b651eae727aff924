"""A talk with a small model."""

from __future__ import annotations

from tests.talk.desk import desk

__all__ = ["desk"]
