"""Messages: what was said, appended and read in pages, folded or not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from pydantic import Field

from enfold import dialects
from enfold.dialects import AUTO
from enfold.engine.requests import as_messages
from enfold.errors import InputError
from enfold.jsontext import loads
from enfold.messages import Message
from enfold.server.api.shapes import Limit, Shape, StrictRoute, TheSession, count, example
from enfold.store.records import StoredMessage

router = APIRouter(prefix="/api", tags=["messages"], route_class=StrictRoute)

_MOST = 10_000
"""Messages in one request."""
_TEA = {
    "id": "2de8d65c79991aa982dd29788f98fb5d",
    "parent": None,
    "depth": 1,
    "role": "user",
    "dialect": "openai",
    "tokens": 11,
    "tokenizer": "o200k_base",
    "estimate": 0,
    "created_at": 1_700_000_000_000,
    "message": {"role": "user", "content": "Where do the boats moor?"},
}


class MessageShape(Shape):
    """A message as it was said."""

    id: str = Field(description="Made from what it says and what came before.")
    parent: str | None = Field(description="The message before it; null for the first.")
    depth: int = Field(description="Its place on its branch; the first is 1.")
    role: str = Field(description="system, user, assistant or tool.")
    dialect: str = Field(description="The wire format of `message`.")
    tokens: int = Field(description="As counted when it was stored.")
    tokenizer: str = Field(description="Who counted.")
    estimate: int = Field(description="Of what has no exact count, such as an image.")
    created_at: int = Field(description="Milliseconds since 1970.")
    message: Any = Field(description="As it came.")
    model_config = example(**_TEA)


class History(Shape):
    """Some messages of a branch, oldest first."""

    messages: list[MessageShape] = Field(description="The messages.")


class NewMessages(Shape):
    """Messages to be added."""

    messages: list[str | dict[str, Any]] = Field(
        min_length=1,
        max_length=_MOST,
        description="Messages of a dialect; a text is what the user says.",
    )
    dialect: str = Field(AUTO, description="The wire format, recognised if it is not named.")
    after: str | None = Field(
        None, description="The message that they follow; null for the end of the branch."
    )
    model_config = example(messages=[_TEA["message"]])


class Appended(Shape):
    """The ids of the messages, in order."""

    ids: list[str] = Field(description="Of those that were there already, too.")


@router.get("/sessions/{session}/messages", name="list", summary="Read the history")
async def read_history(
    session: TheSession,
    limit: Limit = 50,
    before: Annotated[str | None, Query(description="Those before this message.")] = None,
    after: Annotated[str | None, Query(description="Those after this message.")] = None,
) -> History:
    """The last messages of the branch, or a page before or after one of them."""
    if before is not None and after is not None:
        raise InputError("give before or after, not both", place="query.before")
    rows = await session.history(before=before, after=after, limit=limit)
    return History(messages=[shown(row) for row in rows])


@router.post(
    "/sessions/{session}/messages", name="append", summary="Append messages", status_code=201
)
async def append(new: NewMessages, session: TheSession, request: Request) -> Appended:
    """What is there already is recognised. After any message but the last it makes a branch."""
    messages = parsed(new.messages, new.dialect)
    count(request.scope, messages=len(messages))
    return Appended(ids=list(await session.append(*messages, after=new.after)))


@router.get("/sessions/{session}/messages/{message}", name="get", summary="Read one message")
async def read_message(
    message: Annotated[str, Path(description="The message's id.")], session: TheSession
) -> MessageShape:
    """One message of the branch, folded or not."""
    return shown(await session.message(message))


def parsed(given: list[str | dict[str, Any]], dialect: str) -> tuple[Message, ...]:
    """The messages that were sent; an array of one wire format is read as one."""
    if dialect != AUTO:
        dialects.get(dialect)
    try:
        if all(isinstance(each, Mapping) for each in given):
            return dialects.parse(given, dialect).messages
        return as_messages(given, dialect)
    except InputError as error:
        raise error.at("body") from None


def shown(row: StoredMessage) -> MessageShape:
    """A message as the API has it."""
    return MessageShape(
        id=row.id,
        parent=row.parent,
        depth=row.depth,
        role=row.role,
        dialect=row.dialect,
        tokens=row.tokens,
        tokenizer=row.tokenizer,
        estimate=row.estimate,
        created_at=row.created_at,
        message=loads(row.body),
    )
