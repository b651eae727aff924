"""Compression in camel case: check, manual, config and summaries.

Four routes with all parameters in the body or the query, for desktop applications that were written
against such an interface. They do the same as the routes of a session.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, TypeAlias

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from enfold.engine import Outcome, Status
from enfold.jsontext import dump_text
from enfold.llm.calls import Connection, Secret
from enfold.llm.profiles import Profile
from enfold.records import Snapshot
from enfold.server.api.shapes import StrictRoute, TheCaller, TheEngine, example
from enfold.settings import Settings

router = APIRouter(prefix="/api/compression", tags=["compression"], route_class=StrictRoute)

SessionId: TypeAlias = Annotated[
    str, Query(alias="sessionId", max_length=256, description="The session's name.")
]


class CamelShape(BaseModel):
    """A request's body in camel case: a session, and a model if its window is to count."""

    session_id: str = Field(max_length=256, description="The session's name.")
    provider: str | None = Field(
        None, max_length=128, description="With `model`: use this model's window."
    )
    model: str | None = Field(
        None, max_length=128, description="With `provider`: use this model's window."
    )
    model_config = ConfigDict(
        alias_generator=to_camel, validate_by_name=True, extra="forbid", strict=True
    )

    def call(self) -> dict[str, Any]:
        """Return the settings of this call."""
        return {"model": f"{self.provider}:{self.model}"} if self.provider and self.model else {}


class CheckRequest(CamelShape):
    """A session to check, and the next input."""

    additional_input: str | None = Field(None, description="The next user message.")
    model_config = example(sessionId="festival", additionalInput="And where do the boats moor?")


class ManualRequest(CamelShape):
    """A session to compress now."""

    retention_token_count: int | None = Field(
        None, ge=0, le=10**9, description="Number of recent tokens kept verbatim, this time."
    )
    force: bool = Field(default=True, description="Compress even if it is not due.")
    api_key: str | None = Field(
        None,
        max_length=4_096,
        repr=False,
        description="A key for the model, which then writes the summary. It is used for this call "
        "and not stored.",
    )
    model_config = example(sessionId="festival", retentionTokenCount=2_000)


def _camel(owner: str, *names: str) -> tuple[str, ...]:
    """Return JSON fields in camel case for attributes of the field `owner`."""
    return tuple(f"{to_camel(name)}={owner}.{name}" for name in names)


@dataclass(frozen=True, slots=True)
class ContextCheck:
    """The used part of the context. `utilizationPercentage` is a share: 1 is full."""

    JSON_FIELDS: ClassVar = (
        *_camel(
            "status",
            "needs_compression",
            "current_token_count",
            "context_limit",
            "threshold_token_count",
            "retention_token_budget",
            "retained_message_count",
            "compressible_message_count",
        ),
        "utilizationPercentage=status.utilization",
    )
    status: Status


@dataclass(frozen=True, slots=True)
class CompressionResult:
    """The result of a compression."""

    JSON_FIELDS: ClassVar = (
        "compressed=outcome.compressed",
        "summaryId=outcome.snapshot",
        "originalTokenCount=outcome.tokens_before",
        "newTokenCount=outcome.tokens_after",
        "messagesCompressed=outcome.messages",
        "messageCutoffId=outcome.cutoff",
        "summary=outcome.summary",
    )
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class CompressionConfig:
    """The compression settings of a session."""

    JSON_FIELDS: ClassVar = (
        "autoCompress=settings.auto_compress",
        "threshold=status.decision.threshold.share",
        "thresholdSource=status.threshold_source",
        "retentionTokenCount=status.retention_token_budget",
        "strategy=settings.strategy",
        "summarizer=settings.summarizer",
        "model=status.model",
        "contextLimit=status.context_limit",
    )
    settings: Settings
    status: Status


@dataclass(frozen=True, slots=True)
class CompressionSnapshot:
    """A stored summary."""

    JSON_FIELDS: ClassVar = (
        "sessionId=session_id",
        "messageCutoffId=snapshot.cutoff",
        "contentJson=content_json",
        *_camel("snapshot", "id", "kind", "content", "token_count"),
        *_camel("snapshot", "undone", "created_at", "updated_at"),
    )
    session_id: str
    """The session's name."""
    snapshot: Snapshot

    @property
    def content_json(self) -> str:
        """The content as a JSON text, with the time and the tokens of the summary."""
        snapshot = self.snapshot
        made = datetime.fromtimestamp(snapshot.created_at / 1000, UTC)
        return dump_text(
            {
                **snapshot.content,
                "compressionTimestamp": made.isoformat(timespec="milliseconds"),
                "summaryTokenCount": snapshot.token_count,
            }
        )


@router.post("/check", name="check", summary="Check if a compression is needed")
async def check(checking: CheckRequest, engine: TheEngine, caller: TheCaller) -> ContextCheck:
    """Return how full the context is, with the next input if it is given."""
    session = await engine.find(checking.session_id, namespace=caller.namespace)
    return ContextCheck(await session.status(checking.additional_input, **checking.call()))


@router.post("/manual", name="manual", summary="Compress now")
async def manual(options: ManualRequest, engine: TheEngine, caller: TheCaller) -> CompressionResult:
    """Compress with the session's profile or the server's, or with the key of the request."""
    session = await engine.find(options.session_id, namespace=caller.namespace)
    call = options.call()
    writer = None
    if options.api_key is not None:
        model = call.get("model") or (await session.status()).model
        profile = (await session.record()).profile
        listed = {each.name: each.profile for each in await engine.profiles.all()}
        writer = _connection(model, Secret(options.api_key), listed.get(profile or ""))
    return CompressionResult(
        await session.compress(
            force=options.force,
            keep_tokens=options.retention_token_count,
            writer=writer,
            **call,
        )
    )


def _connection(model: str, key: Secret, profile: Profile | None) -> Connection:
    """Return the connection to a model, at the profile's server if it has that provider."""
    provider, _, name = model.partition(":")
    if profile is not None and profile.provider == provider:
        return profile.connection(key, name)
    return Connection(provider, name, key=key)


@router.get("/config", name="config", summary="Show a session's compression config")
async def config(session_id: SessionId, engine: TheEngine, caller: TheCaller) -> CompressionConfig:
    """Return the settings in force for the session."""
    session = await engine.find(session_id, namespace=caller.namespace)
    return CompressionConfig(await session.settings(), await session.status())


@router.get("/summaries", name="summaries", summary="List a session's summaries")
async def summaries(
    session_id: SessionId, engine: TheEngine, caller: TheCaller
) -> list[CompressionSnapshot]:
    """Return all summaries, newest first, also those that were undone."""
    session = await engine.find(session_id, namespace=caller.namespace)
    return [CompressionSnapshot(session.id, each) for each in await session.summaries()]
