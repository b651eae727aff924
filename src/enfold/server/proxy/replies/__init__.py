"""Replies: what a provider's answer says, read from its bytes while they pass.

    reader = replies.reader(form, answer.headers)
    async for chunk in answer.chunks():
        reader.feed(chunk)
        ...                     # the chunk goes on to the client as it is
    reply = reader.end()

A reader never fails: what it cannot understand is left out of the reply, and the bytes are the
client's to judge.
"""

from enfold.server.proxy.replies.reading import Reader, reader
from enfold.server.proxy.replies.reply import Called, Reply
from enfold.server.proxy.replies.sse import Event, Events

__all__ = ["Called", "Event", "Events", "Reader", "Reply", "reader"]
