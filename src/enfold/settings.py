"""Settings: what can be set, what each value may be, and which of several levels wins.

The levels, strongest first: call, session, profile, database, config file, environment, default.
This module is the only reader of the environment and of config files. Everything else is handed
`Settings`, resolved, each value with the level it came from.
"""

from __future__ import annotations

import math
import os
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from enfold import budget, retention
from enfold.errors import ConfigError, InputError
from enfold.jsontext import loads
from enfold.summaries import Style

LEVELS = ("call", "session", "profile", "database", "config file", "environment", "default")


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings in force; a field's docstring says what it does."""

    strategy: str = "native"
    """How views are condensed."""
    strategy_config: Mapping[str, Any] = field(default_factory=dict)
    """Configs of strategies, by their names: `{"truncation": {"preserveRecentCount": 5}}`."""
    preset: str | None = None
    """A strategy with its config, by the preset's name; what is set beside it wins."""
    parallel_summaries: int = 4
    """How many summaries one compression may have written at the same time."""
    summarizer: str | None = None
    """Who writes summaries: `local`, or a profile's name. Unset: the profile in use, else local."""
    auto_compress: bool = True
    """Compress at the threshold without being asked. Off, only the hard limit still compresses."""
    threshold: float | None = None
    """Share of the limit at which a compression is due, 0.05 to 1. Unset: the model's."""
    trigger_ratio: float | None = None
    """Instead of the threshold: a share of what is available, without a safety margin."""
    max_tokens: int | None = None
    """Instead of the threshold: an absolute number of tokens."""
    early_mark: float = budget.EARLY_MARK
    """Share of the threshold from which compression in the background may start."""
    retention_tokens: int | None = None
    """Newest tokens that stay verbatim. Unset: the model's."""
    recent_ratio: float | None = None
    """Instead of retention_tokens: a share of the history's tokens."""
    keep_first: int = 0
    """First messages that stay verbatim."""
    summary_tokens: int | None = None
    """Limit of a summary. Unset: a tenth of what it folds."""
    style: Style = "default"
    """Style of summaries: default, code, concise or detailed."""
    prompt: str | None = None
    """A prompt of your own for summaries."""
    share_across_branches: bool = False
    """Let a summary serve every branch that its cutoff is on, not only the one that made it."""
    notifications: bool = True
    """Show compressions while they run."""
    model: str = "openai:gpt-4o"
    """The model whose window is kept, as provider:model, where a session names none."""
    timeout: float = 120.0
    """Seconds after which a compression is given up."""
    on_failure: str = "block"
    """When a compression that is due fails: `block`, `truncate` what is old, or `pass` all on."""
    proxy_background: bool = False
    """Let the proxy compress from the early mark on in the background: a turn seldom waits."""
    proxy_recall: str = "tools"
    """When models may recall what was folded: with other `tools`, `always`, or `off`."""
    proxy_client_key: bool = False
    """Let the model that a client talks to write its summaries, with the client's own key."""
    audit_days: int = 400
    """Days for which a server remembers who changed what; at most a hundred years."""
    sources: Mapping[str, str] = field(default_factory=dict, compare=False)
    """For every setting the level it came from."""


def _flag(value: Any) -> bool:
    words = {"true": True, "1": True, "yes": True, "on": True}
    words |= {"false": False, "0": False, "no": False, "off": False}
    if isinstance(value, bool):
        return value
    if str(value).lower() in words:
        return words[str(value).lower()]
    raise ValueError("expected true or false")


def _number(lowest: float, highest: float | None = None, hint: str = "") -> Callable[[Any], float]:
    allowed = f"{lowest:g} to {highest:g}" if highest else f"{lowest:g} or more"

    def check(value: Any) -> float:
        number = _float(value)
        if not lowest <= number <= (highest or sys.float_info.max):
            raise ValueError(f"expected {allowed}{hint}")
        return number

    return check


def _float(value: Any) -> float:
    """The number that is meant; no number where none is."""
    try:
        return math.nan if isinstance(value, bool) else float(value)
    except (OverflowError, TypeError, ValueError):
        return math.nan


def _whole(lowest: int, highest: int | None = None) -> Callable[[Any], int]:
    allowed = f"{lowest} to {highest}" if highest else f"{lowest} or more"

    def check(value: Any) -> int:
        number = _float(value)
        if not number.is_integer() or not lowest <= number <= (highest or sys.float_info.max):
            raise ValueError(f"expected a whole number, {allowed}")
        return int(number)

    return check


def _text(value: Any) -> str:
    if isinstance(value, str) and value.strip():
        return value
    raise ValueError("expected a text")


def _choice(*names: str) -> Callable[[Any], str]:
    def check(value: Any) -> str:
        if value in names:
            return str(value)
        raise ValueError(f"expected one of {', '.join(names)}")

    return check


def _recall(value: Any) -> str:
    """A choice; plain yes and no are understood too."""
    if value in ("tools", "always", "off"):
        return str(value)
    try:
        return "tools" if _flag(value) else "off"
    except ValueError:
        raise ValueError("expected one of tools, always, off") from None


def _configs(value: Any) -> dict[str, Any]:
    found = loads(value) if isinstance(value, str) else value
    if isinstance(found, Mapping) and all(isinstance(each, Mapping) for each in found.values()):
        return dict(found)
    raise ValueError('expected configs by strategy, such as {"truncation": {…}}')


def _model(value: Any) -> str:
    provider, colon, model = _text(value).partition(":")
    if provider and colon and model:
        return str(value)
    raise ValueError("expected provider:model")


_share = _number(budget.MIN_CONDENSE_THRESHOLD / 100, 1, "; 95 % is 0.95")

CHECKS: Mapping[str, Callable[[Any], Any]] = {
    "on_failure": _choice("block", "truncate", "pass"),
    "proxy_background": _flag,
    "proxy_recall": _recall,
    "proxy_client_key": _flag,
    "strategy": _text,
    "strategy_config": _configs,
    "preset": _text,
    "parallel_summaries": _whole(1),
    "summarizer": _text,
    "auto_compress": _flag,
    "threshold": _share,
    "trigger_ratio": _share,
    "max_tokens": _whole(1),
    "early_mark": _share,
    "retention_tokens": _whole(0),
    "recent_ratio": _number(0, 1),
    "keep_first": _whole(0),
    "summary_tokens": _whole(16),
    "style": _choice("default", "code", "concise", "detailed"),
    "prompt": _text,
    "share_across_branches": _flag,
    "notifications": _flag,
    "model": _model,
    "timeout": _number(0.001),
    "audit_days": _whole(1, 36_500),
}
"""What a value of each setting must be; None always means unset."""

ALIASES: Mapping[str, str] = {
    "COMPRESSION_TRIGGER_RATIO": "trigger_ratio",
    "ENFOLD_PROXY_ON_FAILURE": "on_failure",
    "RECENT_MESSAGES_RATIO": "recent_ratio",
    "autoCondenseContext": "auto_compress",
    "provider": "strategy",
    "proxy.background": "proxy_background",
    "proxy.client_key": "proxy_client_key",
    "proxy.on_failure": "on_failure",
    "proxy_on_failure": "on_failure",
    "proxy.recall": "proxy_recall",
}
"""Names that other systems, or older versions, use for a setting."""


def check(name: str, value: Any) -> tuple[str, Any]:
    """A setting's own name and checked value; `ConfigError` says what it may be."""
    known = ALIASES.get(name, name)
    if known == "autoCondenseContextPercent":
        known, value = "threshold", value if value is None else float(value) / 100
    if known not in CHECKS:
        raise ConfigError(f"no setting {name!r}; there are {', '.join(CHECKS)}")
    if value is None:
        return known, None
    try:
        return known, CHECKS[known](value)
    except (TypeError, ValueError, InputError) as error:
        raise ConfigError(f"{name} = {value!r}: {error}") from None


def resolve(levels: Iterable[tuple[str, Mapping[str, Any]]]) -> Settings:
    """The settings in force: for each the first level that sets it, from the strongest down.

    Of configs each strategy's is looked for on its own, so that a level which configures one
    strategy does not hide what another level says of the others.
    """
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    configs: dict[str, tuple[Any, str]] = {}
    for source, given in levels:
        for name, value in given.items():
            try:
                known, checked = check(name, value)
            except ConfigError as error:
                raise ConfigError(f"{source}: {error}") from None
            if known == "strategy_config":
                for strategy, config in (checked or {}).items():
                    configs.setdefault(strategy, (config, source))
            elif checked is not None and known not in values:
                values[known], sources[known] = checked, source
    values["strategy_config"] = {strategy: config for strategy, (config, _) in configs.items()}
    in_force = values.get("strategy", Settings().strategy)
    sources["strategy_config"] = configs.get(in_force, (None, "default"))[1]
    for each in fields(Settings):
        sources.setdefault(each.name, "default")
    del sources["sources"]
    return Settings(**values, sources=sources)


def from_environment(environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Settings in the environment: `ENFOLD_` and a name in capitals, or another system's name."""
    given = os.environ if environment is None else environment
    own = {f"ENFOLD_{name.upper()}": name for name in CHECKS}
    foreign = {alias: alias for alias in ALIASES if alias.isupper()}
    return {name: given[key] for key, name in (own | foreign).items() if given.get(key)}


def from_file(path: Path | None = None) -> dict[str, Any]:
    """Settings in the config file: `ENFOLD_CONFIG`, else config.toml in the user's folder."""
    named = path or (Path(os.environ["ENFOLD_CONFIG"]) if "ENFOLD_CONFIG" in os.environ else None)
    place = named or _user_folder("config") / "config.toml"
    try:
        text = place.read_text("utf-8")
    except FileNotFoundError:
        if named is None:
            return {}
        raise ConfigError(f"config file {place}: there is none") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"config file {place}: {error}") from None
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"config file {place}: {error}") from None


def database_url() -> str:
    """The store's address: `ENFOLD_DB`, else a SQLite file in the user's data folder."""
    given = os.environ.get("ENFOLD_DB")
    return given or f"sqlite:///{_user_folder('data', make=True) / 'enfold.db'}"


def variable(name: str) -> str | None:
    """A variable of the environment that is no setting: where a profile says its key is."""
    return os.environ.get(name)


def quieten_libraries() -> None:
    """Before a library is loaded: it reports nothing to its makers, and draws nothing."""
    os.environ.setdefault("DO_NOT_TRACK", "1")
    os.environ.setdefault("DAFT_PROGRESS_BAR", "0")


@dataclass(frozen=True, slots=True)
class Serving:
    """What a server takes from its environment."""

    token: str | None = None
    """`ENFOLD_TOKEN`: the first access token. Required unless the server listens on loopback."""
    hosts: tuple[str, ...] = ()
    """`ENFOLD_HOSTS`: further names under which the server is reached, with commas between."""
    body_limit: int = 64 * 2**20
    """`ENFOLD_BODY_LIMIT`: the largest body of a request, in bytes."""
    rate_limit: int | None = None
    """`ENFOLD_RATE_LIMIT`: requests a minute from one token or address. Unset: as many as come."""


def serving(environment: Mapping[str, str] | None = None) -> Serving:
    """The environment's words for a server."""
    given = os.environ if environment is None else environment
    hosts = tuple(name.strip().lower() for name in given.get("ENFOLD_HOSTS", "").split(","))
    limits: dict[str, int] = {}
    for name, key in (("body_limit", "ENFOLD_BODY_LIMIT"), ("rate_limit", "ENFOLD_RATE_LIMIT")):
        if not given.get(key):
            continue
        try:
            limits[name] = _whole(1)(given[key])
        except ValueError as error:
            raise ConfigError(f"environment: {key} = {given[key]!r}: {error}") from None
    token = given.get("ENFOLD_TOKEN") or None
    return Serving(token=token, hosts=tuple(filter(None, hosts)), **limits)


UPSTREAMS: Mapping[str, str] = {
    "openai": "https://api.openai.com",
    "anthropic": "https://api.anthropic.com",
    "gemini": "https://generativelanguage.googleapis.com",
}
"""The public addresses that the proxy forwards to."""


def upstreams() -> dict[str, str]:
    """Where the proxy forwards to: `ENFOLD_OPENAI_BASE_URL` and so on, else the public addresses.

    A version at the end of an address, as client libraries want it, is part of the paths here.
    """
    return {
        name: os.environ.get(f"ENFOLD_{name.upper()}_BASE_URL", public)
        .rstrip("/")
        .removesuffix("/v1")
        .removesuffix("/v1beta")
        for name, public in UPSTREAMS.items()
    }


def parse_value(text: str) -> Any:
    """A value typed on a command line: JSON where it is JSON, else the text itself."""
    try:
        return loads(text)
    except InputError:
        return text


def _user_folder(kind: str, *, make: bool = False) -> Path:
    import platformdirs

    folder = getattr(platformdirs, f"user_{kind}_dir")
    return Path(folder("enfold", appauthor=False, ensure_exists=make))


def retention_policy(settings: Settings, model_default: int) -> retention.Retention:
    """What stays verbatim under these settings."""
    if settings.recent_ratio is not None and settings.retention_tokens is None:
        return retention.Retention("ratio", settings.recent_ratio, settings.keep_first)
    tokens = model_default if settings.retention_tokens is None else settings.retention_tokens
    return retention.Retention("tokens", tokens, settings.keep_first)
