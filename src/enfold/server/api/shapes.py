"""Shapes that several routers share, and how each gets its engine, its caller and its session."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Annotated, Any, TypeAlias

from fastapi import Depends, Path, Query, Request
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response
from starlette.types import Scope

from enfold.engine import Engine, Session
from enfold.jsontext import loads
from enfold.server.access import Tokens
from enfold.server.bodies import unpacked
from enfold.server.callers import Caller, caller_of, require_owner
from enfold.server.feed import Feeds
from enfold.server.headers import name_in
from enfold.settings import check

LONGEST_PAGE = 500


class Shape(BaseModel):
    """What comes in or goes out. A field that nobody knows is refused, and "1" is no number."""

    model_config = ConfigDict(extra="forbid", strict=True)


def example(**values: Any) -> ConfigDict:
    """The config of a shape with an example in its description."""
    return ConfigDict(json_schema_extra={"examples": [values]})


class Fault(BaseModel):
    """What went wrong."""

    code: str = Field(description="One word for programs.", examples=["not_found"])
    message: str = Field(
        description="What failed, with which value, and what to do.",
        examples=["there is no session 'chat'"],
    )
    retryable: bool = Field(description="Whether the same request may succeed later.")
    request_id: str = Field(description="What the log has more under.")


class Failure(BaseModel):
    """The one shape of every error."""

    error: Fault = Field(description="What went wrong.")


class StrictRequest(Request):
    """A request whose body is read as strictly as everything else that enfold reads."""

    async def body(self) -> bytes:
        """The body, unpacked if it was packed."""
        if not hasattr(self, "_unpacked"):
            packed = await super().body()
            encoding = self.headers.get("content-encoding", "")
            self._unpacked = unpacked(packed, encoding, self.app.state.body_limit)
        return self._unpacked

    async def json(self) -> Any:
        """The body's value: no NaN, no infinity, no number that a float cannot hold."""
        return loads(await self.body())


class StrictRoute(APIRoute):
    """A route with such requests."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """What answers a request."""
        answer = super().get_route_handler()

        async def strictly(request: Request) -> Response:
            return await answer(StrictRequest(request.scope, request.receive))

        return strictly


def _engine(request: Request) -> Engine:
    engine: Engine = request.app.state.engine
    return engine


def _feeds(request: Request) -> Feeds:
    feeds: Feeds = request.app.state.feeds
    return feeds


def _tokens(request: Request) -> Tokens:
    tokens: Tokens = request.app.state.tokens
    return tokens


def _owner(request: Request) -> Caller:
    caller = caller_of(request)
    require_owner(caller)
    return caller


def _caller(request: Request) -> Caller:
    return caller_of(request)


TheEngine: TypeAlias = Annotated[Engine, Depends(_engine)]
TheFeeds: TypeAlias = Annotated[Feeds, Depends(_feeds)]
TheTokens: TypeAlias = Annotated[Tokens, Depends(_tokens)]
TheCaller: TypeAlias = Annotated[Caller, Depends(_caller)]
TheOwner: TypeAlias = Annotated[Caller, Depends(_owner)]

SessionName: TypeAlias = Annotated[
    str,
    Path(description="The session's name; a slash in it is written %2F.", examples=["festival"]),
]


async def _session(session: SessionName, engine: TheEngine, caller: TheCaller) -> Session:
    return await engine.find(name_in(session), namespace=caller.namespace)


TheSession: TypeAlias = Annotated[Session, Depends(_session)]
Limit: TypeAlias = Annotated[
    int, Query(ge=1, le=LONGEST_PAGE, description="So many at most.", examples=[50])
]


def checked(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by their own names; a name that is none of them is an error before it is used."""
    return dict(check(name, value) for name, value in settings.items())


def count(scope: Scope, **counts: int) -> None:
    """Add figures to the request's line in the audit log."""
    scope["state"].setdefault("counts", {}).update(counts)
