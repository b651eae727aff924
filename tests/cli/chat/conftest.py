"""A chat with a small model, and the screen that shows it."""

from __future__ import annotations

from tests.chat.setup import chat_setup

__all__ = ["chat_setup"]
