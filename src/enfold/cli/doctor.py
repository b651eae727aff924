"""`enfold doctor` and `enfold verify`: check the setup, and check that what is stored is whole."""

from __future__ import annotations

import asyncio
import platform
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Annotated, Literal, TypeAlias

from cyclopts import App, Parameter

from enfold.amounts import duration, number
from enfold.cli.screen import Db, Json, put, put_json, say, working
from enfold.engine import Engine
from enfold.engine.profiles import ListedProfile
from enfold.engine.state import check_strategies
from enfold.engine.verification import verify
from enfold.errors import ConfigError, EnfoldError, InputError, UnavailableError
from enfold.settings import (
    database_url,
    environment,
    from_environment,
    from_file,
    installed_version,
    renaming_note,
    resolve,
    server_identity,
    server_settings,
)
from enfold.wiring import open_engine
from enfold.wrap.agents import AGENTS, Agent, find_program
from enfold.wrap.local_server import DEFAULT_PORT, HOST, is_port_free, read_server_state

app = App(
    name="doctor",
    help_epilogue="""\
Examples:
  enfold doctor
  enfold doctor --call
  enfold doctor --json""",
)

State: TypeAlias = Literal["ok", "note", "broken"]

EXTRAS: Mapping[str, tuple[str, str]] = {
    "ui": ("nicegui", "the web UI"),
    "models": ("pydantic_ai", "calls to models"),
    "keys": ("cryptography", "stored keys"),
    "chat": ("textual", "enfold chat"),
    "postgres": ("psycopg", "PostgreSQL"),
    "claude": ("ctok", "exact counts for Claude, with Python 3.12 or newer"),
    "mcp": ("mcp", "the MCP server"),
    "langgraph": ("langgraph", "LangGraph"),
    "langchain": ("langchain", "LangChain"),
    "openai-agents": ("agents", "the OpenAI Agents SDK"),
    "pydantic-ai": ("pydantic_ai", "Pydantic AI"),
    "llama-index": ("llama_index", "LlamaIndex"),
    "bulk": ("daft", "very many files"),
    "brotli": ("brotli", "brotli-compressed requests"),
    "vectors": ("wordllama", "recall by similar words"),
}
"""Extra -> a module that it installs, and its purpose."""
_OLDEST_PYTHON = (3, 11)
_VERSION_SECONDS = 20.0
_VERSION = re.compile(r"\d+(?:\.\d+)+\S*")
_SIGNS: Mapping[State, str] = {"ok": "ok", "note": "-", "broken": "BROKEN"}


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was checked."""

    area: str
    """`python`, `settings`, `store`, `extra`, `profile`, `port` or `agent`."""
    name: str
    state: State
    """A `note` is about something optional; only `broken` is an error."""
    detail: str
    remedy: str = ""
    """Instructions to fix or install it."""


@app.default
async def doctor(
    *,
    call: Annotated[
        bool, Parameter(help="Call the model of each profile once, with a tiny question.")
    ] = False,
    db: Db = None,
    json: Json = False,
) -> int:
    """Check the setup, and tell how to fix each problem."""
    checks = [*_check_python(), _check_settings()]
    checks += [check async for check in _check_store(db, call=call)]
    checks += _check_extras()
    checks.append(_check_port(db))
    checks += await asyncio.gather(*map(_check_agent, AGENTS.values()))
    broken = sum(check.state == "broken" for check in checks)
    if json:
        put_json({"ok": not broken, "checks": checks})
        return int(broken > 0)
    width = max(len(f"{check.area} {check.name}") for check in checks)
    for check in checks:
        title = f"{check.area} {check.name}"
        put(f"{_SIGNS[check.state]:6}  {title:{width}}  {check.detail}".rstrip())
        if check.remedy:
            label = "fix" if check.state == "broken" else "optional"
            put(f"{'':6}  {'':{width}}  {label}: {check.remedy}")
    say(f"{broken} broken" if broken else "Everything that is set up works.")
    return int(broken > 0)


def _check_python() -> Iterator[Check]:
    version = platform.python_version()
    if sys.version_info >= _OLDEST_PYTHON:
        yield Check("python", version, "ok", sys.executable)
    else:
        remedy = "enfold needs Python 3.11 or later; install it, then enfold again"
        yield Check("python", version, "broken", sys.executable, remedy)
    yield Check("python", "enfold", "ok", installed_version())


def _check_settings() -> Check:
    try:
        file = from_file()
        found = resolve((("config file", file), ("environment", from_environment())))
        check_strategies({"strategy": found.strategy, "strategy_config": found.strategy_config})
        server_settings()
    except ConfigError as error:
        return Check("settings", "levels", "broken", str(error), "correct or remove this setting")
    notes = (note for name in file if (note := renaming_note(name)))
    found_valid = "; ".join(("config file and environment are valid", *notes))
    return Check("settings", "levels", "ok", found_valid)


async def _check_store(db: str | None, *, call: bool) -> AsyncIterator[Check]:
    """Yield the check of the store, and those of the profiles in it."""
    address = re.sub(r"//([^/@:]*):[^/@]*@", r"//\1:…@", db or database_url())
    try:
        async with open_engine(db) as engine:
            queue = await engine.queue.state()
            sessions = await engine.sessions(limit=1)
            detail = f"{address} works" if sessions else f"{address} works and is empty"
            if queue.failing:
                failed = f"{queue.failing} entries of the outbox have failed"
                remedy = "see the server's log; they are tried again"
                yield Check("store", "database", "broken", failed, remedy)
            else:
                yield Check("store", "database", "ok", detail)
            for profile in await engine.profiles.all():
                yield await _check_profile(engine, profile, call=call)
    except EnfoldError as error:
        remedy = "check ENFOLD_DB or --db, and that the folder or server can be reached"
        yield Check("store", "database", "broken", f"{address}: {error}", remedy)


async def _check_profile(engine: Engine, listed: ListedProfile, *, call: bool) -> Check:
    """Check that the profile has a key and, with `call`, that its model answers."""
    if listed.fault:
        remedy = f"enfold profiles show {listed.name}, then add it again"
        return Check("profile", listed.name, "broken", listed.fault, remedy)
    try:
        if not call:
            connection = await engine.profiles.connection(listed.name)
            return Check("profile", listed.name, "ok", f"{connection.name}, not called")
        tested = await engine.profiles.test(listed.name)
    except EnfoldError as error:
        remedy = f"enfold profiles test {listed.name} tries it again"
        return Check("profile", listed.name, "broken", str(error), remedy)
    detail = f"{tested.model} answered in {duration(tested.seconds)}"
    return Check("profile", listed.name, "ok", detail)


def _check_extras() -> Iterator[Check]:
    for extra, (module, purpose) in EXTRAS.items():
        if find_spec(module) is not None:
            yield Check("extra", extra, "ok", purpose)
        else:
            yield Check("extra", extra, "note", purpose, f"pip install 'enfold[{extra}]'")


def _check_port(db: str | None) -> Check:
    """Check the port of `enfold serve`: free, or the server of this store."""
    name = str(DEFAULT_PORT)
    if is_port_free(DEFAULT_PORT):
        return Check("port", name, "ok", "free")
    remedy = "choose another with enfold serve --port; enfold wrap takes a free one"
    try:
        state = read_server_state(f"http://{HOST}:{DEFAULT_PORT}")
    except (UnavailableError, InputError):
        return Check("port", name, "note", "another program listens there", remedy)
    found, ours = state.get("server", {}), server_identity(db or database_url())
    differences = [key for key, value in ours.items() if found.get(key) != value]
    if not differences:
        return Check("port", name, "ok", "enfold serves this store there")
    detail = f"an enfold server with another {', '.join(differences)} listens there"
    return Check("port", name, "note", detail, f"restart it, or {remedy}")


async def _check_agent(agent: Agent) -> Check:
    """Check that the agent's program is found and reports a version."""
    given = environment()
    try:
        program = find_program(agent, given)
    except ConfigError:
        return Check("agent", agent.name, "note", "not on PATH", agent.install)
    remedy = f"install it again: {agent.install}"
    try:
        done = await asyncio.to_thread(
            subprocess.run,
            [program, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_VERSION_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Check("agent", agent.name, "broken", f"{program} does not run: {error}", remedy)
    found = _VERSION.search(done.stdout)
    if done.returncode or found is None:
        detail = f"{program} --version ends with {done.returncode} and reports no version"
        return Check("agent", agent.name, "broken", detail, remedy)
    try:
        agent.check(given)
    except ConfigError as error:
        return Check("agent", agent.name, "broken", str(error), "unset that variable")
    return Check("agent", agent.name, "ok", f"{found[0]} at {program}")


verify_app = App(
    name="verify",
    help_epilogue="""\
Every message is hashed again and compared with the message before it. Branches,
compressions, shortened messages and search rows are checked too. Nothing is
changed. The exit code is 1 if a row is missing or changed.

Examples:
  enfold verify
  enfold verify --session holiday --json""",
)


@verify_app.default
async def verify_store(
    *,
    session: Annotated[
        str | None, Parameter(help="Check one session only.", metavar="NAME")
    ] = None,
    db: Db = None,
    json: Json = False,
) -> int:
    """Check that everything that is stored is whole and unchanged."""
    with working("Verifying") as progress:
        async with open_engine(db) as engine:
            found = await verify(
                engine.store,
                session=session,
                progress=lambda done: progress(number(done, "session")),
            )
    if json:
        put_json(found)
        return int(not found.ok)
    for problem in found.problems:
        place = "" if problem.session is None else f"session {problem.session}, "
        put(f"{place}{problem.area} {problem.id}: {problem.detail}")
    counts = {
        "session": found.sessions,
        "message": found.messages,
        "compression": found.snapshots,
        "shortened message": found.edits,
        "search row": found.search_rows,
    }
    counted = ", ".join(number(count, noun) for noun, count in counts.items())
    if found.ok:
        say(f"{counted}: everything is whole.")
    else:
        say(f"{counted}: {number(len(found.problems), 'problem')}. Restore them from a backup.")
    return int(not found.ok)
