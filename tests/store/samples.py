"""Messages to store, made from a few words."""

from __future__ import annotations

from collections.abc import Sequence

from enfold.errors import IntegrityError
from enfold.identity import content_hash
from enfold.jsontext import dumps
from enfold.messages import Message, Role, Text
from enfold.records import MessageDraft, SessionKey, StoredMessage
from enfold.store import Database
from enfold.store.integrity import check_session


def draft(text: str, role: Role = "user", client_id: str | None = None) -> MessageDraft:
    """A message that says the text; as many tokens as characters."""
    return MessageDraft(
        role=role,
        dialect="openai",
        body=dumps({"role": role, "content": text}),
        content_hash=content_hash(Message(role, (Text(text),))),
        tokens=len(text),
        tokenizer="characters",
        search_text=text,
        client_id=client_id,
    )


def drafts(*texts: str) -> list[MessageDraft]:
    """Messages one after the other, the user's and the assistant's in turn."""
    roles: tuple[Role, Role] = ("user", "assistant")
    return [draft(text, roles[at % 2]) for at, text in enumerate(texts)]


def numbered(count: int, name: str = "message") -> list[MessageDraft]:
    """Return a number of messages, each with its number."""
    return drafts(*(f"{name} {number}" for number in range(1, count + 1)))


def texts(messages: Sequence[StoredMessage]) -> list[str]:
    """Return the texts of stored messages."""
    from enfold.jsontext import loads

    return [loads(message.body)["content"] for message in messages]


def verify(db: Database, session: SessionKey) -> int:
    """Check a session; return its number of messages, or raise an error with the first fault."""
    check = check_session(db, session)
    for problem in check.problems:
        raise IntegrityError(f"{problem.area} {problem.id}: {problem.detail}")
    return check.messages
