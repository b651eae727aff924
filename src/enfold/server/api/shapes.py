"""Request bodies, routes and dependencies that all routers share."""

from __future__ import annotations

import ast
import asyncio
import builtins
import collections.abc
import inspect
import sys
import types
import typing
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, is_dataclass
from functools import cache, reduce, wraps
from itertools import pairwise
from operator import or_
from typing import (
    Annotated,
    Any,
    ParamSpec,
    TypeAlias,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

from fastapi import Depends, Path, Query, Request
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, Field, create_model
from starlette.responses import Response
from starlette.types import Scope

from enfold.engine import Engine, Session
from enfold.errors import InputError, TooLargeError
from enfold.jsontext import fields, items, json_fields, loads, to_json
from enfold.server.access import Caller, Tokens, caller_in, name_in, require_owner
from enfold.server.bodies import too_large, unpacked
from enfold.server.failures import Json
from enfold.server.feed import Feeds
from enfold.server.load import request_load
from enfold.settings import change

LONGEST_PAGE = 500
_NO_CONTENT = 204
_WITHOUT_BODY = frozenset({"GET", "HEAD", "OPTIONS", "DELETE"})


_MAX_OBJECTS = 100_000
"""Objects in a body: each costs far more time and memory than its bytes."""
_THREAD_BYTES = 50_000
"""Bytes of a body from which its messages are parsed in a thread."""
Params = ParamSpec("Params")
Result = TypeVar("Result")


class Shape(BaseModel):
    """A request's body. Unknown fields are refused; a text is not read as a number."""

    model_config = ConfigDict(extra="forbid", strict=True)


def example(**values: Any) -> ConfigDict:
    """Return the config of a shape, with an example for its description."""
    return ConfigDict(json_schema_extra={"examples": [values]})


class CallSettings(Shape):
    """Settings that apply to one call."""

    settings: dict[str, Any] = Field(
        default_factory=dict, description="Settings for this call only."
    )

    def checked(self) -> dict[str, Any]:
        """Return the settings as they were given; an unknown or wrong one is an error."""
        return checked(self.settings)


class ApiError(BaseModel):
    """An error."""

    code: str = Field(description="The error's code, for programs.", examples=["not_found"])
    message: str = Field(
        description="The cause, the wrong value and the remedy, for people.",
        examples=["there is no session 'chat'"],
    )
    retryable: bool = Field(description="True if the same request may succeed later.")
    request_id: str = Field(description="The request's id in the server's log.")


class ErrorBody(BaseModel):
    """The body of every error response."""

    error: ApiError = Field(description="The error.")


@dataclass(frozen=True, slots=True)
class ApiParts:
    """The objects that the API answers from, and the largest body in bytes."""

    engine: Engine
    feeds: Feeds
    tokens: Tokens
    body_limit: int


API_PARTS = "enfold.api"
"""The place of the `ApiParts` in a request's scope."""


class StrictRequest(Request):
    """A request whose JSON is read strictly."""

    async def body(self) -> bytes:
        """Return the body, decompressed."""
        if not hasattr(self, "_unpacked"):
            limit = self.scope[API_PARTS].body_limit
            announced = self.headers.get("content-length", "")
            if announced.isdigit() and int(announced) > limit:
                raise too_large(limit)
            pieces, size = [], 0
            async for piece in self.stream():
                size += len(piece)
                if size > limit:
                    raise too_large(limit)
                pieces.append(piece)
            encoding = self.headers.get("content-encoding", "")
            # A long body is joined in a thread, which lets others run meanwhile.
            is_large = size >= _THREAD_BYTES
            body = await asyncio.to_thread(b"".join, pieces) if is_large else b"".join(pieces)
            if encoding:
                body = await asyncio.to_thread(unpacked, body, encoding, limit)
            self._unpacked = body
        return self._unpacked

    async def json(self) -> Any:
        """Return the body's value. NaN, infinity and numbers beyond a float are errors."""
        body = await self.body()
        return loads(body) if len(body) < _THREAD_BYTES else await asyncio.to_thread(_read, body)


def _read(body: bytes) -> Any:
    """Return a large body's value. Other threads run between the items of its arrays."""
    if body.count(b"{") > _MAX_OBJECTS:
        raise TooLargeError(
            f"the request's body has more than {_MAX_OBJECTS:,} objects; send it in parts"
        )
    try:
        return {
            name: list(map(loads, items(raw))) if raw.startswith(b"[") else loads(raw)
            for name, raw in fields(body).items()
        }
    except InputError:
        return loads(body)  # it is no object, or the error names the place in the whole body


async def run_in_thread_if_large(
    request: Request, work: Callable[Params, Result], *args: Params.args, **kwargs: Params.kwargs
) -> Result:
    """Run a function on a request's content, in a thread if its body is large."""
    if len(await request.body()) < _THREAD_BYTES:
        return work(*args, **kwargs)
    return await asyncio.to_thread(work, *args, **kwargs)


class StrictRoute(APIRoute):
    """A route with strict requests, whose endpoint returns a result.

    The result is written with `to_json`, as at every other door.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        self._definition = path, endpoint, options
        unchecked = options | {"response_model": None}
        super().__init__(path, _writing_json(endpoint, options.get("status_code")), **unchecked)

    def described(self) -> APIRoute:
        """Return a route for the OpenAPI description, with the type of the result.

        The types take longer to make than all the rest of the API, and only this needs them.
        """
        path, endpoint, options = self._definition
        result = get_type_hints(endpoint).get("return")
        if not (isinstance(result, type) and issubclass(result, Response | types.NoneType)):
            options = options | {"response_model": shape_of(result)}
        return APIRoute(path, endpoint, **options)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the function that answers a request."""
        answer = super().get_route_handler()

        async def answer_strictly(request: Request) -> Response:
            strict = StrictRequest(request.scope, request.receive)
            load = request_load(request.scope)
            if load is None or request.method in _WITHOUT_BODY:
                return await answer(strict)
            async with load.turn(len(await strict.body())):
                return await answer(strict)

        return answer_strictly


def _writing_json(endpoint: Callable[..., Any], status: int | None) -> Callable[..., Any]:
    """Return an endpoint that answers with its result as JSON."""

    @wraps(endpoint)
    async def call(**arguments: Any) -> Any:
        result = await endpoint(**arguments)
        if status == _NO_CONTENT:
            return Response(status_code=status)
        return result if isinstance(result, Response) else Json(to_json(result), status or 200)

    return call


def shape_of(result: Any) -> Any:
    """Return the pydantic type that describes a result's type as `to_json` writes it."""
    if is_dataclass(result) and isinstance(result, type):
        return _model_of(result)
    arguments = get_args(result)
    match get_origin(result):
        case collections.abc.Sequence | builtins.list | builtins.tuple:
            return list[shape_of(arguments[0])]  # type: ignore[misc]
        case collections.abc.Mapping | builtins.dict:
            return dict[str, shape_of(arguments[1])]  # type: ignore[misc]
        case types.UnionType | typing.Union:
            return reduce(or_, map(shape_of, arguments))
    return result


@cache
def _model_of(result: type) -> Any:
    if not hasattr(result, "JSON_FIELDS") and hasattr(result, "as_json"):
        return dict[str, Any]
    described = {name: _describe(result, path) for name, path in json_fields(result)}
    shapes: dict[str, Any] = {
        name: (shape_of(kind), Field(description=text)) for name, (kind, text) in described.items()
    }
    return create_model(result.__name__, __doc__=result.__doc__, **shapes)


def _describe(owner: type, path: tuple[str, ...]) -> tuple[Any, str | None]:
    """Return the type and the docstring of an attribute, or of one at the end of a path."""
    name, *rest = path
    found = getattr(owner, name, None)
    if isinstance(found, property):
        kind, text = get_type_hints(found.fget)["return"], found.__doc__
    elif issubclass(owner, BaseModel):
        field = owner.model_fields[name]
        kind, text = field.annotation, field.description
    else:
        kind, text = get_type_hints(owner)[name], _field_docstrings(owner).get(name)
    if not rest:
        return kind, text
    steps = [each for each in get_args(kind) or (kind,) if each is not types.NoneType]
    inner, text = _describe(steps[0], tuple(rest))
    return (inner if steps == [kind] else inner | None), text


def _field_docstrings(kind: type) -> dict[str, str]:
    """Return the descriptions of a model's fields, or the docstrings below a class's fields.

    Those of its parents are included.
    """
    if issubclass(kind, BaseModel):
        return {name: info.description or "" for name, info in kind.model_fields.items()}
    texts: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        definition = _classes_of(each.__module__).get(each.__name__)
        body = definition.body if definition is not None else []
        for field, below in pairwise(body):
            match field, below:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(text))),
                ):
                    texts[name] = text
    return texts


@cache
def _classes_of(module: str) -> dict[str, ast.ClassDef]:
    if not module.startswith("enfold"):
        return {}
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}


def _from_scope(name: str) -> Any:
    """Return a dependency on a part that `create_api` has put into the request's scope."""

    async def read(request: Request) -> Any:  # a function that is not async runs in a thread
        return getattr(request.scope[API_PARTS], name)

    return Depends(read)


async def _caller(request: Request) -> Caller:
    return caller_in(request.scope)


async def _owner(request: Request) -> Caller:
    caller = caller_in(request.scope)
    require_owner(caller)
    return caller


TheEngine: TypeAlias = Annotated[Engine, _from_scope("engine")]
TheFeeds: TypeAlias = Annotated[Feeds, _from_scope("feeds")]
TheTokens: TypeAlias = Annotated[Tokens, _from_scope("tokens")]
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
    int, Query(ge=1, le=LONGEST_PAGE, description="The largest number of results.", examples=[50])
]


def checked(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings as they were given; an unknown name or a wrong value is an error."""
    change({}, settings)
    return dict(settings)


def count(scope: Scope, **counts: int) -> None:
    """Add figures to the request's entry in the audit log."""
    scope["state"].setdefault("counts", {}).update(counts)
