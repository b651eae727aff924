"""Settings: every setting with its type, default, bounds and help, and the level that wins.

The levels, strongest first: call, session, profile, database, config file, environment, default.
This module is the only reader of the environment and of config files. Everything else receives
resolved `Settings`, in which `sources` names the level of each value.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, lru_cache, partial
from hashlib import blake2b
from importlib import metadata
from math import isfinite
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field, ValidationError, ValidationInfo, field_validator

from enfold import budget, retention
from enfold.errors import ConfigError, InputError
from enfold.fields import DescribedModel, FieldDescription, describe, described
from enfold.jsontext import dump_text, loads, loads_or_text
from enfold.modelconfig import DEFAULT_MODEL
from enfold.standing_instructions import WORDS_SHARE
from enfold.summaries import Style, prompts
from enfold.wire import UPSTREAMS

LEVELS = ("call", "session", "profile", "database", "config file", "environment", "default")

GROUPS: Mapping[str, str] = {
    "When to compress": "The size of a conversation at which old messages are summarized.",
    "What stays verbatim": "Messages that no compression touches.",
    "Summaries": "The author and the form of summaries. Prompts have their own page.",
    "Model and notifications": "The model whose window applies, and what is shown and recorded.",
    "Proxy": "For clients that reach their model through enfold.",
    "Strategy": "The strategy that condenses, its config, and presets.",
}
"""Groups of settings, in order, each with its help."""

_FLAGS = {
    **dict.fromkeys(("true", "1", "yes", "on"), True),
    **dict.fromkeys(("false", "0", "no", "off"), False),
}
_LOWEST_SHARE = budget.MIN_CONDENSE_THRESHOLD / 100
_PERCENT = "95 % is 0.95"


_trigger = partial(described, group="When to compress")
_verbatim = partial(described, group="What stays verbatim")
_summary = partial(described, group="Summaries")
_general = partial(described, group="Model and notifications")
_proxy = partial(described, group="Proxy")
_strategy = partial(described, group="Strategy")


class SettingsModel(DescribedModel):
    """A described model whose values may be texts, as those from the environment are."""

    @field_validator("*", mode="before")
    @classmethod
    def _from_text(cls, value: Any, info: ValidationInfo) -> Any:
        if not isinstance(value, str) or info.field_name == "sources":
            return value
        match describe(cls)[info.field_name or ""].kind:
            case "flag":
                return _FLAGS.get(value.lower(), value)
            case "integer" | "number":
                return _number(value)
            case "object":
                return loads(value)
            case "list":
                return tuple(filter(None, (part.strip() for part in value.split(","))))
        return value


class Settings(SettingsModel):
    """The settings in force."""

    auto_compress: bool = _trigger(
        "Compress automatically",
        "Compress when the threshold is reached. If off, only the hard limit starts a compression.",
        default=True,
    )
    threshold: float | None = _trigger(
        "Threshold",
        "Share of the limit at which a compression is due, 0.05 to 1: 0.95 is 95 %. 5 to 100 is "
        "read as a percentage.",
        default=None,
        ge=_LOWEST_SHARE,
        le=1,
        hint=f"{_PERCENT}, and 5 to 100 is read as a percentage",
        unset="the model's threshold",
    )
    early_mark: float = _trigger(
        "Early mark",
        "Share of the threshold from which a compression in the background may start.",
        default=budget.EARLY_MARK,
        ge=_LOWEST_SHARE,
        le=1,
        hint=_PERCENT,
        is_advanced=True,
    )
    background: bool = _trigger(
        "Compress in the background",
        "Compress from the early mark on in the background, in chats and in the proxy, so that a "
        "turn waits only at the hard limit.",
        default=True,
    )
    trigger_ratio: float | None = _trigger(
        "Trigger ratio",
        "Replaces the threshold: a share of the available tokens, without a safety margin.",
        default=None,
        ge=_LOWEST_SHARE,
        le=1,
        hint=_PERCENT,
        unset="not used",
        is_advanced=True,
    )
    max_tokens: int | None = _trigger(
        "Maximum tokens",
        "Replaces the threshold: an absolute number of tokens.",
        default=None,
        ge=1,
        unit="tokens",
        unset="not used",
        is_advanced=True,
    )
    window: int | None = _trigger(
        "Window",
        "The context window to use, if the model's is larger. The proxy sets it for clients that "
        "work with a smaller window than the model has.",
        default=None,
        ge=1_000,
        unit="tokens",
        unset="the model's",
        is_advanced=True,
    )
    on_failure: Literal["block", "local", "truncate", "pass"] = _trigger(
        "If a compression fails",
        "Handling of a request whose compression was due and failed: `block` holds it back, "
        "`local` lets the built-in summarizer write the summary, `truncate` leaves out old "
        "content, `pass` sends it unchanged.",
        default="block",
        choices={
            "block": "Hold the request back",
            "local": "Let the built-in summarizer write the summary",
            "truncate": "Leave out old content and report it",
            "pass": "Send the request unchanged",
        },
        is_advanced=True,
    )
    retention_tokens: int | None = _verbatim(
        "Recent tokens kept",
        "Number of recent tokens kept verbatim. If it is not set, the model's own value applies "
        "where that is more than a fifth of the limit.",
        default=None,
        ge=0,
        unit="tokens",
        unset="a fifth of the limit, or more",
    )
    keep_first: int = _verbatim(
        "First messages kept",
        "Number of messages at the beginning kept verbatim.",
        default=0,
        ge=0,
        unit="messages",
    )
    words_share: float = _verbatim(
        "Share for people's words",
        "Share of the limit up to which everything that people typed stays verbatim, 0 to 1. If "
        "they typed more, only their rules, corrections and decisions stay.",
        default=WORDS_SHARE,
        ge=0,
        le=1,
        hint=_PERCENT,
        is_advanced=True,
    )
    recent_ratio: float | None = _verbatim(
        "Recent share kept",
        "Replaces the number of recent tokens: a share of the history, 0 to 1.",
        default=None,
        ge=0,
        le=1,
        unset="not used",
        is_advanced=True,
    )
    summarizer: str | None = _summary(
        "Summarizer",
        "The author of summaries: `local`, which needs no model, no key and no network, or the "
        "name of a profile. If it is not set and there is no profile, the built-in summarizer "
        "writes them.",
        default=None,
        kind="choice",
        expected="a text",
        unset="the profile in use",
    )
    style: Style = _summary(
        "Style",
        "The emphasis of summaries.",
        default="default",
        choices={
            "default": "Default",
            "code": "Code: files, commands, errors",
            "concise": "Concise",
            "detailed": "Detailed",
        },
    )
    summary_role: Literal["system", "user"] = _summary(
        "Role of the summary",
        "The role in which a summary is sent: `system`, or `user`, which gives a text that quotes "
        "others less authority. Providers without a system role inside a conversation always get "
        "it in a user message.",
        default="system",
        choices={"system": "System message", "user": "User message: less authority"},
        is_advanced=True,
    )
    prompt: str | None = _summary(
        "Prompt",
        "The prompt for summaries, in place of the built-in one.",
        default=None,
        unset="the built-in prompt",
    )
    trial_prompt: str | None = _summary(
        "Prompt on trial",
        "Another prompt for summaries, which a share of the sessions uses in place of the usual "
        "one, so that both can be compared. A session with its own prompt takes no part.",
        default=None,
        unset="no trial",
        is_advanced=True,
    )
    trial_share: float = _summary(
        "Share of the trial",
        "Share of the sessions that use the prompt on trial.",
        default=0.5,
        ge=0,
        le=1,
        hint=_PERCENT,
        is_advanced=True,
    )
    summary_tokens: int | None = _summary(
        "Longest summary",
        "Maximum tokens of a summary.",
        default=None,
        ge=16,
        unit="tokens",
        unset="a tenth of what it replaces",
    )
    timeout: float = _summary(
        "Time limit",
        "Seconds after which a compression is cancelled.",
        default=120.0,
        ge=0.001,
        unit="seconds",
        is_advanced=True,
    )
    parallel_summaries: int = _summary(
        "Parallel summaries",
        "Number of summaries that one compression may write at the same time.",
        default=4,
        ge=1,
        is_advanced=True,
    )
    share_across_branches: bool = _summary(
        "Share summaries between branches",
        "Use a summary on every branch that contains its cutoff, not only on the branch that "
        "created it.",
        default=False,
        is_advanced=True,
    )
    model: str = _general(
        "Model",
        "The model whose window applies if a session names none, as provider:model.",
        default=DEFAULT_MODEL,
        expected="provider:model",
    )
    default_profile: str | None = _general(
        "Default profile",
        "The profile that answers in sessions without a profile.",
        default=None,
        unset="the first profile",
    )
    model_titles: bool = _general(
        "Titles by the model",
        "Let the model that answers write the title of a conversation whose first message is too "
        "long for one. That is one short call.",
        default=True,
        is_advanced=True,
    )
    notifications: bool = _general(
        "Show compressions",
        "Show compressions while they run.",
        default=True,
    )
    audit_days: int = _general(
        "Audit log kept for",
        "Days for which a server keeps the log of changes; at most a hundred years.",
        default=400,
        ge=1,
        le=36_500,
        unit="days",
        is_advanced=True,
    )
    proxy_recall: Literal["tools", "always", "off"] = _proxy(
        "Recall",
        "When a model is offered the recall tool: if the request has other `tools`, `always`, or "
        "`off`.",
        default="tools",
        choices={
            "tools": "If the request has other tools",
            "always": "Always",
            "off": "Never",
        },
        is_advanced=True,
    )
    proxy_client_key: bool = _proxy(
        "Summaries with the client's key",
        "Write summaries with the client's model and key if no profile is set for them.",
        default=False,
        is_advanced=True,
    )
    strategy: str = _strategy("Strategy", "The strategy that condenses views.", default="native")
    strategy_config: Mapping[str, Any] = _strategy(
        "Strategy config",
        'Configs by strategy: `{"truncation": {"preserveRecentCount": 5}}`.',
        default={},
        expected='configs by strategy, such as {"truncation": {…}}',
    )
    profile_thresholds: Mapping[str, Any] = _strategy(
        "Thresholds by profile",
        'Percentages of the limit at which a compression is due, by profile: `{"fast": 80}`. '
        "-1 inherits. The threshold in a profile itself wins.",
        default={},
        expected='percentages by profile, such as {"fast": 80}',
        is_advanced=True,
    )
    preset: str | None = _strategy(
        "Preset",
        "The name of a preset: a strategy with its config. Values set on the same level win.",
        default=None,
        unset="not used",
    )
    sources: Mapping[str, str] = Field(default_factory=dict, exclude=True)
    """The level of every setting."""

    @field_validator("preset", "summarizer", "prompt", "trial_prompt", "model")
    @classmethod
    def _not_empty(cls, value: str | None) -> str | None:
        # The words of these errors are not shown: `check` says which values are valid.
        if value is not None and not value.strip():
            raise ValueError("empty")
        return value

    @field_validator("model")
    @classmethod
    def _with_provider(cls, value: str) -> str:
        provider, _, model = value.partition(":")
        if not (provider and model):
            raise ValueError("no provider")
        return value

    @field_validator("strategy_config")
    @classmethod
    def _by_strategy(cls, value: Mapping[str, Any]) -> Mapping[str, Any]:
        if not all(isinstance(config, Mapping) for config in value.values()):
            raise ValueError("not by strategy")
        return dict(value)

    @field_validator("profile_thresholds")
    @classmethod
    def _numbers_by_profile(cls, value: Mapping[str, Any]) -> Mapping[str, Any]:
        # A percentage out of bounds is accepted here: it is ignored with a note where it was
        # stored, so that it does not take the other profiles' thresholds with it.
        for each in value.values():
            if not isinstance(each, int | float) or isinstance(each, bool) or not isfinite(each):
                raise ValueError("no numbers")
        return dict(value)

    @field_validator("proxy_recall", mode="before")
    @classmethod
    def _yes_or_no(cls, value: Any) -> Any:
        """Read true and false too: older versions had a flag."""
        if value == "off" or not isinstance(value, bool | str):
            return value
        flag = _FLAGS.get(str(value).lower())
        return value if flag is None else "tools" if flag else "off"


def _number(text: str) -> Any:
    """Return the number that a text states, else the text, which is then refused."""
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        return int(number) if isinstance(number, float) and number.is_integer() else number
    return text


ALIASES: Mapping[str, str] = {
    "COMPRESSION_TRIGGER_RATIO": "trigger_ratio",
    "ENFOLD_PROXY_ON_FAILURE": "on_failure",
    "RECENT_MESSAGES_RATIO": "recent_ratio",
    "autoCondenseContext": "auto_compress",
    "condensingApiConfigId": "summarizer",
    "customCondensingPrompt": "prompt",
    "profileThresholds": "profile_thresholds",
    "provider": "strategy",
    "proxy.background": "background",
    "proxy_background": "background",
    "proxy.client_key": "proxy_client_key",
    "proxy.on_failure": "on_failure",
    "proxy_on_failure": "on_failure",
    "proxy.recall": "proxy_recall",
}
"""Names that other systems and older versions use for a setting."""

CONFIG_ALIASES: Mapping[str, str] = {
    "nativeConfig": "native",
    "losslessConfig": "lossless",
    "truncationConfig": "truncation",
    "smartConfig": "smart",
}
"""Names that other systems use for the config of one strategy."""

PERCENT_ALIAS = "autoCondenseContextPercent"
"""Another system's name for the threshold, as a percentage."""


@dataclass(frozen=True, slots=True)
class SettingValue:
    """A setting's value and the level that set it."""

    # The level has two names: the first is the API's, the second the command line's.
    JSON_FIELDS: ClassVar = ("value", "level", "source=level", "note")
    value: Any
    """The value; null is unset."""
    level: str
    """`call`, `session`, `profile`, `database`, `config file`, `environment` or `default`."""
    note: str = ""
    """Which name of another system a file or this call gave for it; empty if none did."""


def setting_values(
    settings: Settings,
    given: Iterable[str] = (),
    levels: Iterable[tuple[str, Mapping[str, Any]]] = (),
) -> dict[str, SettingValue]:
    """Return every setting by name, with the level that set it.

    A setting has a note if this call gave it by another system's name, or if that is its name in
    the level of `levels` that set it.
    """
    notes: dict[str, list[str]] = {}
    for level, names in ((None, given), *levels):
        for name in names:
            note = renaming_note(name)
            if note is None:
                continue
            setting, _ = check(name, None)
            # Each strategy has a config of its own, so that another level may have set one too.
            if level in (None, settings.sources[setting]) or setting == "strategy_config":
                notes.setdefault(setting, []).append(note)
    return {
        name: SettingValue(
            getattr(settings, name), settings.sources[name], "; ".join(notes.get(name, ()))
        )
        for name in fields()
    }


def fields() -> Mapping[str, FieldDescription]:
    """Return the descriptions of all settings by name, in the order in which they are shown."""
    return describe(Settings)


def check(name: str, value: Any) -> tuple[str, Any]:
    """Return a setting's name and its value, converted and checked; None means unset.

    Raises `ConfigError` that says which values are valid.
    """
    is_number = value is None or isinstance(value, int | float)
    return _check_number(name, value) if is_number else _check(name, value)


def change(stored: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that a level has after a change, by our names; None is unset.

    A name of one strategy's config leaves the configs of the other strategies.
    """
    values = dict(stored)
    for name, value in given.items():
        setting, checked = check(name, value)
        if name in CONFIG_ALIASES:
            others = dict(values.get(setting) or {})
            others.pop(CONFIG_ALIASES[name], None)
            checked = {**others, **(checked or {})} or None
        elif setting == "profile_thresholds":
            check_thresholds(checked or {})
        values[setting] = checked
    return values


def check_thresholds(thresholds: Mapping[str, float]) -> None:
    """Raise `ConfigError` that names the first profile whose threshold is out of bounds."""
    for profile, percent in thresholds.items():
        if percent == budget.INHERIT:
            continue
        try:
            budget.threshold_share(percent)
        except ConfigError as error:
            raise ConfigError(
                f"profile_thresholds.{profile}: {error}, nor {budget.INHERIT} to inherit"
            ) from None


def _check(name: str, value: Any) -> tuple[str, Any]:
    setting = ALIASES.get(name, name)
    given = value
    if setting == PERCENT_ALIAS:
        setting = "threshold"
        given = _number(value) if isinstance(value, str) else value
        given = given / 100 if isinstance(given, int | float) else given
    elif setting == "threshold":
        given = _number(value) if isinstance(value, str) else value
        try:
            given = budget.threshold_share(given)  # a percentage becomes a share
        except (ConfigError, TypeError):
            given = value
    elif setting in CONFIG_ALIASES:
        setting = "strategy_config"
        if value is not None:
            config = loads_or_text(value) if isinstance(value, str) else value
            given = {CONFIG_ALIASES[name]: config}
    if setting not in fields():
        close = get_close_matches(name, fields(), 1)
        guess = f"did you mean {close[0]}? " if close else ""
        raise ConfigError(f"no setting {name!r}; {guess}available: {', '.join(fields())}")
    if given is None:
        return setting, None
    if setting in {"prompt", "trial_prompt"} and isinstance(given, str) and given.strip():
        prompts.validate(given)
    try:
        return setting, getattr(Settings.model_validate({setting: given}), setting)
    except (ValidationError, InputError):
        allowed = fields()[setting].allowed
        raise ConfigError(f"{name} = {value!r}: expected {allowed}") from None


_check_number = lru_cache(maxsize=1_000, typed=True)(_check)
"""The settings of a session are checked in every turn, and few numbers and switches occur."""


def renaming_note(name: str) -> str | None:
    """Return which setting another system's name became; None for a name of ours."""
    if name in CONFIG_ALIASES:
        return f"{name} became the config of {CONFIG_ALIASES[name]} in strategy_config"
    if name == PERCENT_ALIAS:
        return f"{name} became threshold, as a share"
    return f"{name} became {ALIASES[name]}" if name in ALIASES else None


def resolve(
    levels: Iterable[tuple[str, Mapping[str, Any]]], notes: list[str] | None = None
) -> Settings:
    """Return the settings in force: for each the value of the strongest level that sets it.

    A wrong value is a `ConfigError`. With `notes` that holds for a call only: what another level
    has stored is ignored then, and a note says so.

    Configs are resolved per strategy, so that a level which configures one strategy does not hide
    the configs that another level has for the others.
    """
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    configs: dict[str, tuple[Any, str]] = {}
    for source, given in levels:
        for name, value in given.items():
            try:
                setting, checked = check(name, value)
            except ConfigError as error:
                if notes is None or source == "call":
                    raise ConfigError(f"{source}: {error}") from None
                notes.append(f"{source}: {error}; the value is ignored")
                continue
            if setting == "strategy_config":
                for strategy, config in (checked or {}).items():
                    configs.setdefault(strategy, (config, source))
            elif checked is not None and setting not in values:
                values[setting], sources[setting] = checked, source
    values["strategy_config"] = {strategy: config for strategy, (config, _) in configs.items()}
    strategy = values.get("strategy", fields()["strategy"].default)
    sources["strategy_config"] = configs.get(strategy, (None, "default"))[1]
    # Every value was checked above. Copying one instance costs a fifth of building another,
    # and this runs in every turn.
    default_sources, defaults = _defaults()
    return defaults.model_copy(update={**values, "sources": {**default_sources, **sources}})


@cache
def _defaults() -> tuple[dict[str, str], Settings]:
    """Return the source of every setting and the settings where no level sets anything."""
    sources = dict.fromkeys(fields(), "default")
    return sources, Settings.model_construct(sources=sources)


def from_environment(environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return the settings in the environment: `ENFOLD_` and the name in capitals, or an alias."""
    given = os.environ if environment is None else environment
    variables = {variable_of(name): name for name in fields()}
    aliases = {alias: alias for alias in ALIASES if alias.isupper()}
    return {name: given[key] for key, name in (variables | aliases).items() if given.get(key)}


def from_file(path: Path | None = None) -> dict[str, Any]:
    """Return the settings in the config file: `ENFOLD_CONFIG`, else the user's config.toml."""
    named = path or (Path(os.environ["ENFOLD_CONFIG"]) if "ENFOLD_CONFIG" in os.environ else None)
    file = named or user_folder("config", make=False) / "config.toml"
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        if named is None:
            return {}
        raise ConfigError(f"config file {file}: not found") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"config file {file}: {error}") from None


def database_url() -> str:
    """Return the store's address: `ENFOLD_DB`, else a SQLite file in the user's data folder."""
    given = os.environ.get("ENFOLD_DB")
    return given or f"sqlite:///{user_folder('data') / 'enfold.db'}"


def variable(name: str) -> str | None:
    """Return an environment variable that is not a setting, such as the key of a profile."""
    return os.environ.get(name)


def environment() -> dict[str, str]:
    """Return the environment of this process, for a program that is started from it."""
    return dict(os.environ)


def server_identity(db: str, environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the identity of a server: its version, store and upstreams.

    Addresses may contain passwords, so only their digests are returned.
    """
    path = db.removeprefix("sqlite:///")
    store = db if path == db else str(Path(path).resolve())
    addresses = sorted(upstreams(environment).items())
    return {
        "version": installed_version(),
        "store": _digest(store),
        "upstreams": _digest(dump_text(addresses)),
    }


def installed_version() -> str:
    """Return the version of the installed package, or `source`."""
    try:
        return metadata.version("enfold")
    except metadata.PackageNotFoundError:
        return "source"


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=8).hexdigest()


def quieten_libraries() -> None:
    """Turn off telemetry and progress bars of libraries; call this before they are imported."""
    os.environ.setdefault("DO_NOT_TRACK", "1")
    os.environ.setdefault("DAFT_PROGRESS_BAR", "0")


class ServerSettings(SettingsModel):
    """The environment variables of a server."""

    token: str | None = described(
        "Token",
        "The first access token. Required unless the server listens on loopback.",
        default=None,
    )
    hosts: tuple[str, ...] = described(
        "Host names",
        "Further names under which the server is reached, separated by commas.",
        default=(),
    )
    body_limit: int = described(
        "Body limit", "The largest request body, in bytes.", default=64 * 2**20, ge=1
    )
    rate_limit: int | None = described(
        "Rate limit",
        "Requests per minute from one token or address. Unset: no limit.",
        default=None,
        ge=1,
    )
    read_timeout: int = described(
        "Read timeout",
        "Seconds that a provider may send nothing before the proxy gives up.",
        default=600,
        ge=1,
    )

    @field_validator("hosts")
    @classmethod
    def _lower_case(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(host.lower() for host in value)


def variable_of(name: str) -> str:
    """Return the environment variable of a setting."""
    return f"ENFOLD_{name.upper()}"


def server_settings(environment: Mapping[str, str] | None = None) -> ServerSettings:
    """Return the server's settings from its environment variables."""
    given = os.environ if environment is None else environment
    values: dict[str, Any] = {}
    for name, field in describe(ServerSettings).items():
        text = given.get(variable_of(name))
        if not text:
            continue
        try:
            values[name] = getattr(ServerSettings.model_validate({name: text}), name)
        except ValidationError:
            raise ConfigError(
                f"environment: {variable_of(name)} = {text!r}: expected {field.allowed}"
            ) from None
    return ServerSettings(**values)


def upstreams(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the addresses that the proxy forwards to: `ENFOLD_<NAME>_BASE_URL`, or the public one.

    A version at the end, as client libraries want it, is removed: the forwarded path has it.
    """
    given = os.environ if environment is None else environment
    return {
        name: given.get(f"ENFOLD_{name.upper()}_BASE_URL", wire.address)
        .rstrip("/")
        .removesuffix("/v1")
        .removesuffix("/v1beta")
        for name, wire in UPSTREAMS.items()
    }


def local_servers(environment: Mapping[str, str] | None = None) -> tuple[str, ...] | None:
    """Return the base URLs in `ENFOLD_LOCAL_SERVERS`, separated by commas; None if it is unset."""
    given = os.environ if environment is None else environment
    if "ENFOLD_LOCAL_SERVERS" not in given:
        return None
    urls = (url.strip() for url in given["ENFOLD_LOCAL_SERVERS"].split(","))
    return tuple(filter(None, urls))


def key_folder() -> Path:
    """Return the folder of the user's key files."""
    return user_folder("config", make=False) / "keys"


def user_folder(kind: Literal["data", "log", "config"], *, make: bool = True) -> Path:
    """Return a folder of enfold in the user's home, made if it does not exist."""
    import platformdirs

    folder = getattr(platformdirs, f"user_{kind}_dir")
    return Path(folder("enfold", appauthor=False, ensure_exists=make))


def retention_policy(
    settings: Settings, usual: int, model: int | None = None
) -> retention.Retention:
    """Return the retention of the strongest level that sets tokens or a share, else `usual`.

    `model` is the model's own number of tokens, which beats everything that holds for all models.
    """
    tokens, share = settings.retention_tokens, settings.recent_ratio
    # The place of the level that set each; the strongest is 0.
    of_tokens, of_share = (
        LEVELS.index(settings.sources.get(name, "default"))
        for name in ("retention_tokens", "recent_ratio")
    )
    if model is not None and min(of_tokens, of_share) > _MODEL_LEVEL:
        return retention.Retention("tokens", model, settings.keep_first)
    if share is not None and (tokens is None or of_share < of_tokens):
        return retention.Retention("ratio", share, settings.keep_first)
    return retention.Retention("tokens", usual if tokens is None else tokens, settings.keep_first)


_MODEL_LEVEL = LEVELS.index("profile") + 0.5
"""The place of a model config among the levels."""
