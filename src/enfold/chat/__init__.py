"""Talks: what a person does with a session at any screen, and the words it is told in.

`talk` is a session with who answers in it, `commands` the table of slash commands, `choosing` finds
who answers, `meter` says how full the context is. Doors draw what these say.
"""

from enfold.chat.controller import ChatController, profile_chooser

__all__ = ["ChatController", "profile_chooser"]
