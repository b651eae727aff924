"""Compression as desktop apps ask for it: check, manual, config and summaries, in camel case.

Four calls with everything in the body or the query, for programs that were written against such
an interface. They do what the routes under a session do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, TypeAlias

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from enfold.server.api.shapes import StrictRoute, TheCaller, TheEngine

router = APIRouter(prefix="/api/compression", tags=["compression"], route_class=StrictRoute)

SessionId: TypeAlias = Annotated[
    str, Query(alias="sessionId", max_length=256, description="The session's name.")
]


class Camel(BaseModel):
    """A request's body with fields in camel case."""

    model_config = ConfigDict(
        alias_generator=to_camel, validate_by_name=True, extra="forbid", strict=True
    )


def _camel(*names: str) -> tuple[str, ...]:
    """Return JSON names in camel case for attributes."""
    return tuple(f"{to_camel(name)}={name}" for name in names)


def _example(**values: Any) -> ConfigDict:
    return ConfigDict(json_schema_extra={"examples": [values]})


class Checking(Camel):
    """Which session, for which model, and what is said next."""

    session_id: str = Field(max_length=256, description="The session's name.")
    provider: str | None = Field(
        None,
        max_length=128,
        description="With `model`: whose window counts, in place of the session's.",
    )
    model: str | None = Field(None, max_length=128, description="Likewise.")
    additional_input: str | None = Field(None, description="What is said next.")
    model_config = _example(sessionId="festival", provider="openai", model="gpt-4o")

    def call(self) -> dict[str, Any]:
        """The settings of this call."""
        return {"model": f"{self.provider}:{self.model}"} if self.provider and self.model else {}


class Manual(Camel):
    """What to compress by hand."""

    session_id: str = Field(max_length=256, description="The session's name.")
    provider: str | None = Field(
        None,
        max_length=128,
        description="With `model`: whose window counts, in place of the session's.",
    )
    model: str | None = Field(None, max_length=128, description="Likewise.")
    retention_token_count: int | None = Field(
        None, ge=0, le=10**9, description="So many of the newest tokens stay, this time."
    )
    force: bool = Field(default=True, description="Even if it is not due.")
    model_config = _example(sessionId="festival", retentionTokenCount=2_000)

    def call(self) -> dict[str, Any]:
        """The settings of this call."""
        return {"model": f"{self.provider}:{self.model}"} if self.provider and self.model else {}


@dataclass(frozen=True, slots=True)
class ContextCheck:
    """How full the context is."""

    JSON_FIELDS: ClassVar = _camel(
        "needs_compression",
        "current_token_count",
        "context_limit",
        "threshold_token_count",
        "utilization_percentage",
        "retention_token_budget",
        "retained_message_count",
        "compressible_message_count",
    )
    needs_compression: bool
    """True if a compression is due before the next request."""
    current_token_count: int
    """The tokens of the next request."""
    context_limit: int
    """The maximum tokens of the history."""
    threshold_token_count: int
    """The tokens above which a compression is due."""
    utilization_percentage: float
    """0 to 100; above 100 if it does not fit."""
    retention_token_budget: int
    """The number of recent tokens kept verbatim."""
    retained_message_count: int
    """The messages that would stay verbatim."""
    compressible_message_count: int
    """The messages that could be summarized."""


@dataclass(frozen=True, slots=True)
class CompressionResult:
    """The result of a compression."""

    JSON_FIELDS: ClassVar = _camel(
        "compressed",
        "summary_id",
        "original_token_count",
        "new_token_count",
        "messages_compressed",
        "message_cutoff_id",
        "summary",
    )
    compressed: bool
    """True if a summary was recorded."""
    summary_id: str | None
    """The summary's id; null if there is none."""
    original_token_count: int
    """The tokens of the view before."""
    new_token_count: int
    """The tokens of the view after."""
    messages_compressed: int
    """The messages that were summarized."""
    message_cutoff_id: str | None
    """The last of these messages."""
    summary: str | None
    """The summary's text."""


@dataclass(frozen=True, slots=True)
class CompressionConfig:
    """The compression settings of a session."""

    JSON_FIELDS: ClassVar = _camel(
        "auto_compress",
        "threshold",
        "threshold_source",
        "retention_token_count",
        "strategy",
        "summarizer",
        "model",
        "context_limit",
    )
    auto_compress: bool
    """True if a compression starts automatically at the threshold."""
    threshold: float
    """Share of the limit at which a compression is due."""
    threshold_source: str
    """The level that set the threshold."""
    retention_token_count: int
    """The number of recent tokens kept verbatim."""
    strategy: str
    """The strategy."""
    summarizer: str | None
    """The author of summaries; null for the profile in use, else the built-in summarizer."""
    model: str
    """The model whose window counts, as provider:model."""
    context_limit: int
    """The maximum tokens of the history."""


@dataclass(frozen=True, slots=True)
class CompressionSnapshot:
    """A stored summary."""

    JSON_FIELDS: ClassVar = _camel(
        "id",
        "session_id",
        "kind",
        "content",
        "message_cutoff_id",
        "token_count",
        "undone",
        "created_at",
        "updated_at",
    )
    id: str
    """The snapshot's id."""
    session_id: str
    """The session's name."""
    kind: str
    """summary, title or memory."""
    content: Mapping[str, Any]
    """The summary's text, its range and further fields."""
    message_cutoff_id: str | None
    """The last message that it covers."""
    token_count: int | None
    """The tokens of the summary."""
    undone: bool
    """True if it was undone."""
    created_at: int
    """Milliseconds since 1970."""
    updated_at: int
    """Milliseconds since 1970."""


@router.post("/check", name="check", summary="Check whether a compression is needed")
async def check(checking: Checking, engine: TheEngine, caller: TheCaller) -> ContextCheck:
    """With what is said next, if it is given."""
    session = await engine.find(checking.session_id, namespace=caller.namespace)
    found = await session.status(checking.additional_input, **checking.call())
    return ContextCheck(
        needs_compression=found.needs_compression,
        current_token_count=found.current_token_count,
        context_limit=found.context_limit,
        threshold_token_count=found.threshold_token_count,
        utilization_percentage=found.utilization_percentage,
        retention_token_budget=found.retention_token_budget,
        retained_message_count=found.retained_message_count,
        compressible_message_count=found.compressible_message_count,
    )


@router.post("/manual", name="manual", summary="Compress by hand")
async def manual(options: Manual, engine: TheEngine, caller: TheCaller) -> CompressionResult:
    """By the session's profile or the server's; keys are never taken from a request."""
    session = await engine.find(options.session_id, namespace=caller.namespace)
    done = await session.compress(
        force=options.force, keep_tokens=options.retention_token_count, **options.call()
    )
    return CompressionResult(
        compressed=done.compressed,
        summary_id=done.snapshot,
        original_token_count=done.tokens_before,
        new_token_count=done.tokens_after,
        messages_compressed=done.messages,
        message_cutoff_id=done.cutoff,
        summary=done.summary,
    )


@router.get("/config", name="config", summary="Show a session's compression config")
async def config(session_id: SessionId, engine: TheEngine, caller: TheCaller) -> CompressionConfig:
    """What is in force for the session."""
    session = await engine.find(session_id, namespace=caller.namespace)
    settings = await session.settings()
    found = await session.status()
    return CompressionConfig(
        auto_compress=settings.auto_compress,
        threshold=found.decision.threshold.share,
        threshold_source=found.threshold_source,
        retention_token_count=found.retention_token_budget,
        strategy=settings.strategy,
        summarizer=settings.summarizer,
        model=found.model,
        context_limit=found.context_limit,
    )


@router.get("/summaries", name="summaries", summary="List a session's summaries")
async def summaries(
    session_id: SessionId, engine: TheEngine, caller: TheCaller
) -> list[CompressionSnapshot]:
    """Newest first, undone ones too."""
    session = await engine.find(session_id, namespace=caller.namespace)
    return [
        CompressionSnapshot(
            id=snapshot.id,
            session_id=session.id,
            kind=snapshot.kind,
            content=snapshot.content,
            message_cutoff_id=snapshot.cutoff,
            token_count=snapshot.token_count,
            undone=snapshot.undone,
            created_at=snapshot.created_at,
            updated_at=snapshot.updated_at,
        )
        for snapshot in await session.summaries()
    ]
