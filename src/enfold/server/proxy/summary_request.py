"""The summary request that continues a forwarded conversation with the client's model and key.

It has the same system prompt, tools and messages as the request that was forwarded, byte for byte,
and one more message with the instruction. The provider's prompt cache serves all but that message.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TypeAlias

from enfold import wire
from enfold.errors import BadReplyError, InputError, UnavailableError
from enfold.jsontext import dumps
from enfold.llm.calls import Ending, ModelReply
from enfold.messages import Message, Part, Text
from enfold.server.proxy.bodies import RequestBody, parse_message
from enfold.server.proxy.recorder import RecordedResponse
from enfold.server.proxy.upstream import UpstreamResponse
from enfold.wire.replies import Reply

CallModel: TypeAlias = Callable[[bytes], AbstractAsyncContextManager[UpstreamResponse]]
"""Sends a body as the client's request was sent."""


def can_be_continued_by_instruction(body: RequestBody) -> bool:
    """Return True if the model may answer an instruction after the messages with a plain text."""
    form = body.wire
    is_complete = not body.replaced_fields and not any(
        body.field(name) for name in form.external_history_keys
    )
    return is_complete and form.recall.is_allowed(body.field) and form.answers_in_text(body.field)


@dataclass(frozen=True, slots=True)
class ForwardedConversation:
    """A conversation as its model was sent it last; a `ConversationPrefix`."""

    body: RequestBody
    """The request's body, with the tools that were sent."""
    messages: Sequence[bytes] = field(repr=False)
    """The messages that were sent."""
    tokens: int
    model: str
    call: CallModel = field(repr=False)
    is_cached: bool = True

    async def ask(self, instruction: str, max_output: int) -> ModelReply:
        """Return the model's reply to the instruction after the conversation."""
        form = self.body.wire
        message = wire.get(form.dialect).render_message(Message("user", (Text(instruction),)))
        body = self.body.with_max_output(max_output)
        raw = body.with_messages((*self.messages, dumps(message)))
        async with self.call(raw) as response:
            content = await response.read()
        if response.status >= HTTPStatus.BAD_REQUEST:
            raise UnavailableError(f"{self.model} answered with status {response.status}")
        reply = RecordedResponse(form, response.headers, [content]).reply
        return ModelReply(
            Message("assistant", tuple(self._parts(reply))),
            reply.usage,
            self._ending(reply),
            self.model,
        )

    def _parts(self, reply: Reply) -> list[Part]:
        dialect = self.body.wire.dialect
        try:
            messages = [parse_message(dumps(each), dialect) for each in reply.messages]
        except InputError:
            raise BadReplyError(f"{self.model} answered with a message that is not valid") from None
        return [part for message in messages for part in message.parts]

    def _ending(self, reply: Reply) -> Ending:
        if reply.calls:
            return "tool_call"
        return "stop" if reply.finish == self.body.wire.text_finish else "length"
