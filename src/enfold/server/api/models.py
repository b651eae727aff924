"""Models: their limits and defaults, read by everybody, changed by the owner."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from fastapi import APIRouter, Path, Query, Response
from pydantic import Field

from enfold.modelconfig import ModelConfig
from enfold.server.api.shapes import Shape, StrictRoute, TheEngine, TheOwner, example
from enfold.server.segments import name_in

router = APIRouter(prefix="/api", tags=["models"], route_class=StrictRoute)

Model: TypeAlias = Annotated[
    str, Path(max_length=256, description="As provider:model.", examples=["openai:gpt-4o"])
]


class ModelShape(Shape):
    """What a decision needs to know of a model."""

    id: str = Field(description="As provider:model.")
    max_input: int = Field(description="The largest input, in the model's tokens.")
    max_output: int = Field(description="The longest reply.")
    threshold: float = Field(description="The share of the limit at which a compression is due.")
    retention_tokens: int = Field(description="So many of the newest tokens stay.")
    tokenizer: str = Field(description="Who counts for it.")
    correction: float = Field(description="The model's tokens for one counted token.")
    source: str = Field(description="Who said so: api, library, manual or default.")


class ModelChanges(Shape):
    """New values; what is absent stays as it is."""

    max_input: int | None = Field(
        None, ge=1, le=10**12, description="The largest input, in the model's tokens."
    )
    max_output: int | None = Field(None, ge=0, le=10**12, description="The longest reply.")
    threshold: float | None = Field(
        None, ge=0.05, le=1, description="The share of the limit at which a compression is due."
    )
    retention_tokens: int | None = Field(
        None, ge=0, le=10**12, description="So many of the newest tokens stay."
    )
    tokenizer: str | None = Field(None, description="Who counts for it.")
    correction: float | None = Field(
        None, ge=0.1, le=100, description="The model's tokens for one counted token."
    )
    model_config = example(max_input=128_000, threshold=0.9)


@router.get("/models", name="list", summary="List models")
async def list_models(
    engine: TheEngine,
    q: Annotated[str, Query(max_length=256, description="Only with this in their names.")] = "",
) -> list[ModelShape]:
    """Every model that is known, by name."""
    return [shown(each) for each in await engine.models.all() if q.lower() in each.id.lower()]


@router.get("/models/{model:path}", name="get", summary="Show a model")
async def get_model(model: Model, engine: TheEngine) -> ModelShape:
    """One that is not known yet is looked for, and kept."""
    return shown(await engine.models.get(name_in(model)))


@router.patch("/models/{model:path}", name="change", summary="Change or add a model")
async def change_model(
    model: Model, changes: ModelChanges, engine: TheEngine, _: TheOwner
) -> ModelShape:
    """In effect at the next decision, in every process."""
    values = changes.model_dump(exclude_none=True)
    return shown(await engine.models.edit(name_in(model), **values))


@router.delete("/models/{model:path}", name="forget", summary="Forget a model", status_code=204)
async def forget_model(model: Model, engine: TheEngine, _: TheOwner) -> Response:
    """It is looked for again when it is next asked for, with the values that are known."""
    await engine.models.delete(name_in(model))
    return Response(status_code=204)


def shown(config: ModelConfig) -> ModelShape:
    """A model as the API has it."""
    return ModelShape(
        id=config.id,
        max_input=config.max_input,
        max_output=config.max_output,
        threshold=config.threshold,
        retention_tokens=config.retention_tokens,
        tokenizer=config.tokenizer,
        correction=config.correction,
        source=config.source,
    )
