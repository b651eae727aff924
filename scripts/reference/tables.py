"""Reference pages of settings, errors, events and strategy configs, generated from the code."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping
from typing import Any, get_args

from scripts.reference import source

from enfold import errors, events, settings
from enfold.fields import describe
from enfold.jsontext import dump_text
from enfold.strategies import contract
from enfold.wire import UPSTREAMS

_OTHER_VARIABLES = {
    "ENFOLD_DB": "The database. Unset: a SQLite file in the user's data folder.",
    "ENFOLD_CONFIG": "The config file. Unset: `config.toml` in the user's config folder, if any.",
    "ENFOLD_SECRET_KEY": "The secret that encrypts stored model keys; at least 16 characters.",
}


def settings_page() -> str:
    """Return a page with every setting, its default, bounds and variable."""
    return "\n".join(_settings())


def _settings() -> Iterator[str]:
    yield "# Settings reference\n"
    yield f"Generated from `enfold.settings` when this site was built. {_levels()}\n"
    yield "| setting | default | | variable |\n|---|---|---|---|"
    for each in settings.fields().values():
        shown = "unset" if each.default is None else f"`{dump_text(each.default)}`"
        text = each.help + (f" Unset: {each.unset}." if each.unset else "")
        yield f"| `{each.name}` | {shown} | {_cell(text)} | `{settings.variable_of(each.name)}` |"
    yield "\n## Other accepted names\n"
    yield "| name | setting |\n|---|---|"
    yield from (f"| `{alias}` | `{name}` |" for alias, name in settings.ALIASES.items())
    yield "| `autoCondenseContextPercent` | `threshold`, as a percentage |"
    yield "\n## Environment variables of a server\n"
    yield "| variable | default | |\n|---|---|---|"
    for each in describe(settings.ServerSettings).values():
        shown = f"`{each.default}`" if each.default else "unset"
        yield f"| `{settings.variable_of(each.name)}` | {shown} | {_cell(each.help)} |"
    for name, wire in UPSTREAMS.items():
        variable = f"ENFOLD_{name.upper()}_BASE_URL"
        yield f"| `{variable}` | `{wire.address}` | The upstream of the proxy. |"
    yield "\n## Other variables\n"
    yield "| variable | |\n|---|---|"
    yield from (f"| `{name}` | {text} |" for name, text in _OTHER_VARIABLES.items())


def _levels() -> str:
    return f"If several levels set a value, the first of these wins: {', '.join(settings.LEVELS)}."


def errors_page() -> str:
    """Return a page with the tree of errors, their codes and statuses."""
    return "\n".join(_errors())


def _errors() -> Iterator[str]:
    tree = (errors.__doc__ or "").partition("\n\n")[2].partition("\n\n")[0]
    yield "# Errors\n"
    yield "Generated from `enfold.errors` when this site was built. enfold raises only these"
    yield "errors; errors of other libraries are translated. A message says what failed, with which"
    yield "value, and what to do. It never contains message text or a key."
    yield f"\n```text\n{tree}\n```\n"
    yield "`code` and `status` are those of the HTTP API, `exit` is the exit code of the command"
    yield "line. If `retry` is yes, the same call may succeed later.\n"
    yield "| error | code | status | exit | retry | |\n|---|---|---|---|---|---|"
    for kind, facts in errors.FACTS.items():
        doors = f"`{facts.code}` | {facts.status} | {facts.exit_code} | {_yes(facts.retryable)}"
        yield f"| `{kind.__name__}` | {doors} | {_cell(_first(kind))} |"


def events_page() -> str:
    """Return a page with every event and its fields."""
    return "\n".join(_events())


def _events() -> Iterator[str]:
    yield "# Events\n"
    yield "Generated from `enfold.events` when this site was built. The payload is the same in "
    yield "the engine, in the API's stream, on the command line and in the web UI: the fields, "
    yield "and the name as `event`.\n"
    for kind in get_args(events.Event):
        yield f"## `{kind.name}`\n\n{_first(kind)}\n"
        yield "| field | type | |\n|---|---|---|"
        for each in source.fields(_body("enfold.events", kind.__name__)):
            yield f"| `{each.name}` | `{each.annotation}` | {_cell(each.text)} |"
        yield ""


def strategies_page() -> str:
    """Return a page with the config fields of every strategy."""
    return "\n".join(_strategies())


def _strategies() -> Iterator[str]:
    yield "# Configs of strategies\n"
    yield "Generated from the JSON schemas when this site was built. Names are in camel case; "
    yield "snake case is accepted.\n"
    for kind in map(contract.get, contract.names()):
        able = kind.capabilities
        yield f"## `{kind.id}`\n\n{kind.description}\n"
        yield f"Speed: {able.speed}. Lossless: {_yes(able.lossless)}. May call a model: "
        yield f"{_yes(able.summaries)}. Several passes: {_yes(able.multi_pass)}.\n"
        yield "| field | type | default | |\n|---|---|---|---|"
        yield from _properties(kind.schema(), "")
        yield ""


def _properties(schema: Mapping[str, Any], prefix: str) -> Iterator[str]:
    """Yield a row per field, followed by the fields of nested objects."""
    for name, each in schema.get("properties", {}).items():
        default = f"`{dump_text(each['default'])}`" if _is_short(each) else ""
        text = _cell(each.get("description", ""))
        yield f"| `{prefix}{name}` | {_cell(kind_of(each))} | {default} | {text} |"
        for inner, mark in _inner(each):
            yield from _properties(inner, f"{prefix}{name}{mark}.")


def _inner(schema: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], str]]:
    if "properties" in schema:
        yield schema, ""
    if "properties" in (items := schema.get("items", {})):
        yield items, "[]"
    for each in schema.get("anyOf", schema.get("oneOf", ())):
        if "properties" in each:
            yield each, ""


def kind_of(schema: Mapping[str, Any]) -> str:
    """Return a short description of a schema's type."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "enum" in schema:
        return ", ".join(f"`{dump_text(each)}`" for each in schema["enum"])
    if "const" in schema:
        return f"`{dump_text(schema['const'])}`"
    if choices := schema.get("anyOf", schema.get("oneOf")):
        return " or ".join(dict.fromkeys(kind_of(each) for each in choices))
    kind = schema.get("type", "any")
    if isinstance(kind, list):
        return " or ".join(kind)
    return f"array of {kind_of(schema['items'])}" if "items" in schema else str(kind)


def _is_short(schema: Mapping[str, Any]) -> bool:
    return "default" in schema and not isinstance(schema["default"], dict | list)


def _body(module: str, name: str) -> list[ast.stmt]:
    node = source.find(module, name)
    if not isinstance(node, ast.ClassDef):
        raise TypeError(f"{module}.{name} is not a class")
    return node.body


def _first(kind: type) -> str:
    return (inspect.getdoc(kind) or "").partition("\n\n")[0].replace("\n", " ")


def _yes(value: object) -> str:
    return "yes" if value else "no"


def _cell(text: str) -> str:
    return text.replace("|", r"\|")
