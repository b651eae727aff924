"""`enfold profiles`: models with their provider, key, prices and condensing profile."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from getpass import getpass
from typing import Annotated, TypeAlias

from cyclopts import App, Parameter

from enfold.amounts import dollars, duration, number
from enfold.cli.files import open_input
from enfold.cli.screen import Db, Json, put, put_json, put_table, say, working
from enfold.engine import Engine
from enfold.engine.activity import compare_costs
from enfold.engine.profiles import ListedProfile
from enfold.errors import ConfigError, GatewayError
from enfold.jsontext import loads_or_text
from enfold.llm.calls import Secret
from enfold.llm.costs import NAMES, Prices
from enfold.llm.providers import PROVIDERS
from enfold.wiring import open_engine

app = App(
    name="profiles",
    help_epilogue="""\
A profile is a model with its provider, its key source and the model that
condenses for it: the profile named with --condensing-profile, else the
provider's cheap model, else its own model. A key is never an argument: it comes
from a variable or a file, or is stored encrypted with `set-key`.

Examples:
  enfold profiles add work --provider openai --model gpt-4o
  enfold profiles add mine --provider compatible --model llama3 \\
      --base-url http://127.0.0.1:11434/v1
  enfold profiles set-key work < key.txt
  enfold profiles test work
  enfold profiles compare --input-tokens 50000""",
)

Name: TypeAlias = Annotated[str, Parameter(help="The profile's name.")]
ProviderName: TypeAlias = Annotated[
    str, Parameter(help=f"The provider: {', '.join(PROVIDERS)}.", metavar="NAME")
]
ModelName: TypeAlias = Annotated[
    str, Parameter(help="The model's name at the provider.", metavar="NAME")
]
BaseUrl: TypeAlias = Annotated[
    str | None, Parameter(help="The server's address, if not the public one.", metavar="URL")
]
Options: TypeAlias = Annotated[
    tuple[str, ...],
    Parameter(
        help="An option of the provider, such as region=eu-west-1.",
        metavar="NAME=VALUE",
        show_default=False,
    ),
]
KeySource: TypeAlias = Annotated[
    str | None,
    Parameter(
        help="The key's source: env:NAME, file:PATH, or stored. Default: the provider's usual "
        "variable.",
        metavar="PLACE",
    ),
]
Condensing: TypeAlias = Annotated[
    str | None, Parameter(help="The profile that condenses for this one.", metavar="NAME")
]
Threshold: TypeAlias = Annotated[
    float | None,
    Parameter(help="The percentage at which a compression is due, 5 to 100; -1 inherits."),
]
PromptFile: TypeAlias = Annotated[
    str | None,
    Parameter(help="A file with a prompt for summaries; - is standard input.", metavar="FILE"),
]
SettingsGiven: TypeAlias = Annotated[
    tuple[str, ...],
    Parameter(
        help="A setting for sessions with this profile, such as keep_first=2.",
        metavar="NAME=VALUE",
        show_default=False,
    ),
]
Price: TypeAlias = float | None
_SOURCES: Mapping[str, str] = {
    "api": "from the provider",
    "library": "from the price library",
    "manual": "set by hand",
    "default": "by default",
}
_PRICE = "US dollars per million tokens of {}, instead of the published price."


@app.default
@app.command(name="list")
async def list_profiles(*, db: Db = None, json: Json = False) -> None:
    """List all profiles with the prices of their models."""
    async with open_engine(db) as engine:
        found = await engine.profiles.all()
    _show(found, json=json)
    if not found:
        say("`enfold profiles add` adds one")


@app.command
async def add(
    name: Name,
    /,
    *,
    provider: ProviderName,
    model: ModelName,
    base_url: BaseUrl = None,
    option: Options = (),
    key: KeySource = None,
    condensing_profile: Condensing = None,
    threshold: Threshold = None,
    prompt: PromptFile = None,
    setting: SettingsGiven = (),
    input_price: Annotated[Price, Parameter(help=_PRICE.format("input"))] = None,
    output_price: Annotated[Price, Parameter(help=_PRICE.format("output"))] = None,
    cache_writes_price: Annotated[Price, Parameter(help=_PRICE.format("cache writes"))] = None,
    cache_reads_price: Annotated[Price, Parameter(help=_PRICE.format("cache reads"))] = None,
    replace: Annotated[bool, Parameter(help="Replace an existing profile.")] = False,
    db: Db = None,
    json: Json = False,
) -> None:
    """Add a profile."""
    costs = (input_price, output_price, cache_writes_price, cache_reads_price)
    priced = {kind: cost for kind, cost in zip(NAMES, costs, strict=True) if cost is not None}
    fields = {
        "provider": provider,
        "model": model,
        "base_url": base_url,
        "options": dict(_pairs(option, "--option")),
        "key": key,
        "prices": priced or None,
        "threshold": threshold,
        "prompt": None if prompt is None else open_input(prompt).text(),
        "condensing_profile": condensing_profile,
        "settings": {k: loads_or_text(v) for k, v in _pairs(setting, "--setting")},
    }
    async with open_engine(db) as engine:
        profile = await engine.profiles.save(name, fields, replace=replace)
        limits = await _limits(engine, name)
    _show([ListedProfile.of(profile)], json=json)
    if not json:
        say(f"{limits}\nTest it with `enfold profiles test {name}`")


@app.command
async def compare(
    *,
    input_tokens: Annotated[int, Parameter(help="The tokens that are summarized.")] = 100_000,
    output_tokens: Annotated[int, Parameter(help="The tokens of the summary.")] = 2_000,
    db: Db = None,
    json: Json = False,
) -> None:
    """Compare what a compression costs with each profile, by prices and as measured."""
    async with open_engine(db) as engine:
        found = await compare_costs(engine, "", input_tokens, output_tokens)
    if json:
        put_json(found)
        return
    columns = ("profile", "model", "cost", "saves", "measured per call", "calls")
    rows = [
        (
            f"{each.profile} (in use)" if each.is_current else each.profile,
            each.model,
            dollars(each.cost),
            "unknown" if each.saved_share is None else f"{each.saved_share:.0%}",
            dollars(each.measured_cost_per_call) if each.measured_calls else "",
            f"{each.measured_calls:,}",
        )
        for each in found
    ]
    put_table(number(len(found), "profile"), columns, rows)
    for each in found:
        if each.reason is not None:
            say(f"{each.reason}. Only costs are compared, not the quality of the models.")


@app.command
async def show(name: Name, /, *, db: Db = None) -> None:
    """Show a profile as JSON; its key is never shown."""
    async with open_engine(db) as engine:
        put_json(ListedProfile.of(await engine.profiles.get(name)))


@app.command(name="test")
async def try_out(name: Name, /, *, db: Db = None, json: Json = False) -> None:
    """Send one small question to the profile's model."""
    async with open_engine(db) as engine:
        with working(f"Asking {name}"):
            tried = await engine.profiles.test(name)
        limits = await _limits(engine, name)
    if json:
        put_json(tried)
        return
    read, written = (
        "an unknown number of" if tokens is None else f"{tokens:,}"
        for tokens in (tried.usage.input_tokens, tried.usage.output_tokens)
    )
    put(
        f"{tried.model} answered in {duration(tried.seconds)}; {read} tokens in, {written} out; "
        f"cost: {dollars(tried.cost)}"
    )
    say(limits)


@app.command
async def prompt(
    name: Annotated[
        str | None, Parameter(help="The profile's name. Default: the general prompt.")
    ] = None,
    /,
    *,
    db: Db = None,
    json: Json = False,
) -> None:
    """Show the prompt for summaries of sessions with this profile."""
    async with open_engine(db) as engine:
        texts = await engine.prompt(name)
    if json:
        put_json(texts)
        return
    put(f"system:\n\n{texts.system.strip()}\n\nuser:\n\n{texts.user.strip()}")


@app.command(name="set-key")
async def set_key(name: Name, /, *, db: Db = None) -> None:
    """Store a profile's key, encrypted; enter it, or pipe it into standard input.

    The encryption secret comes from ENFOLD_SECRET_KEY, else from the system's keyring.
    """
    async with open_engine(db) as engine:
        await engine.profiles.get(name)
        if sys.stdin is not None and sys.stdin.isatty():
            key = getpass(f"Key of {name}: ")  # without echo
        else:
            key = open_input("-").text()
        await engine.profiles.set_key(name, Secret(key.strip()))
    say(f"the key of {name} is stored, encrypted")


@app.command
async def delete(
    name: Name,
    /,
    *,
    force: Annotated[bool, Parameter(help="Delete it even if it is in use.")] = False,
    db: Db = None,
) -> None:
    """Delete a profile and its stored key."""
    async with open_engine(db) as engine:
        await engine.profiles.remove(name, force=force)
    say(f"{name} deleted")


app.command(delete, name="remove", show=False)  # its name in 0.1


async def _limits(engine: Engine, name: str) -> str:
    """Return the limits of the profile's model and their source; look them up if possible."""
    note = ""
    try:
        config = await engine.profiles.discover(name)
    except (ConfigError, GatewayError) as error:
        note = f" ({error})"
        config = await engine.models.get((await engine.profiles.get(name)).id)
    return (
        f"limits of {config.id}: {config.max_input:,} tokens in, {config.max_output:,} out, "
        f"{_SOURCES[config.source]}{note}"
    )


def _pairs(given: Iterable[str], option: str) -> Iterable[tuple[str, str]]:
    for pair in given:
        name, equals, value = pair.partition("=")
        if not (name and equals and value):
            raise ConfigError(f"{option}: expected name=value")
        yield name, value


def _show(found: Sequence[ListedProfile], *, json: bool) -> None:
    if json:
        put_json(found)
        return
    columns = ("profile", "model", "key", "condensed by", "threshold", "input", "output")
    put_table(number(len(found), "profile"), columns, map(_row, found))


def _row(listed: ListedProfile) -> tuple[str, ...]:
    profile = listed.profile
    if profile is None:
        return (listed.name, listed.fault, *[""] * 5)
    costs = profile.known_prices()
    inherits = profile.threshold in (None, -1)
    usual = PROVIDERS[profile.provider].key_variables
    return (
        profile.name,
        profile.id,
        profile.key or (f"env:{usual[0]}" if usual else "none"),
        profile.condensing_profile or profile.cheap_model or "itself",
        "inherited" if inherits else f"{profile.threshold:g} %",
        _price(costs, "input"),
        _price(costs, "output"),
    )


def _price(costs: Prices | None, kind: str) -> str:
    price = None if costs is None else getattr(costs, kind)
    return "unknown" if price is None else f"{dollars(price)} / 1M"
