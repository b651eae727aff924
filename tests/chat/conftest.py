"""Fixtures of the chat tests."""

from __future__ import annotations

from tests.chat.setup import chat_setup

__all__ = ["chat_setup"]
