"""The coding agents that can be wrapped: their programs, and how their requests are redirected.

Requests are redirected with environment variables and command-line options only, so that an agent
that is started without enfold works as before. An agent runs in the foreground, with the signals
of this process.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from enfold.errors import ConfigError, InputError
from enfold.jsontext import dump_text, loads

_LOOPBACK = "127.0.0.1"
_PROXY_VARIABLES = ("http_proxy", "https_proxy", "all_proxy")


@dataclass(frozen=True, slots=True)
class Launch:
    """The environment variables and the arguments that an agent is started with."""

    variables: Mapping[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    """Arguments before those of the user."""
    files: Mapping[Path, str] = field(default_factory=dict)
    """Files of enfold, not of the agent, that a variable points to."""


@dataclass(frozen=True, slots=True)
class Agent:
    """A coding agent."""

    name: str
    """The name on the command line and of its program."""
    title: str
    install: str
    """The command that installs it."""
    launch: Callable[[str, Mapping[str, str], Path], Launch]
    """Takes the server's address, the environment and a folder of enfold."""
    upstreams: Mapping[str, str]
    """Its variables for base URLs -> the upstream whose address they replace."""
    bypasses: tuple[str, ...] = ()
    """Variables with which it sends requests elsewhere, so that they would not reach enfold."""

    def check(self, environment: Mapping[str, str]) -> None:
        """Raise `ConfigError` if the environment sends the agent's requests elsewhere."""
        for name in self.bypasses:
            if environment.get(name, "").lower() not in {"", "0", "false"}:
                raise ConfigError(
                    f"{name} is set: {self.title} would send its requests to another service, "
                    f"not through enfold; unset {name}, or start {self.name} without enfold"
                )

    def upstream_variables(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Return the server's variables for base URLs that the agent's environment sets."""
        found: dict[str, str] = {}
        for variable, upstream in self.upstreams.items():
            ours = f"ENFOLD_{upstream.upper()}_BASE_URL"
            if environment.get(variable) and not environment.get(ours):
                found.setdefault(ours, environment[variable])
        return found


def find_program(agent: Agent, environment: Mapping[str, str]) -> str:
    """Return the path of the agent's program; raise `ConfigError` if it is not installed."""
    found = shutil.which(agent.name, path=environment.get("PATH"))
    if found is None:
        raise ConfigError(
            f"{agent.title} is not installed: no program {agent.name!r} on PATH. "
            f"Install it with: {agent.install}"
        )
    return found


def direct_loopback(environment: Mapping[str, str]) -> dict[str, str]:
    """Return variables that keep requests to this machine away from an HTTP proxy."""
    if not any(environment.get(n) or environment.get(n.upper()) for n in _PROXY_VARIABLES):
        return {}
    excluded = environment.get("no_proxy") or environment.get("NO_PROXY") or ""
    names = [*filter(None, excluded.split(",")), _LOOPBACK, "localhost"]
    return dict.fromkeys(("no_proxy", "NO_PROXY"), ",".join(dict.fromkeys(names)))


def _launch_gemini(address: str, environment: Mapping[str, str], folder: Path) -> Launch:
    variables = {"GOOGLE_GEMINI_BASE_URL": address}
    # With a base URL and no configured method the program selects one that it then refuses.
    # Defaults are the weakest of its settings, so a method that the user has chosen still wins.
    name = "GEMINI_CLI_SYSTEM_DEFAULTS_PATH"
    if environment.get(name) or not environment.get("GEMINI_API_KEY"):
        return Launch(variables)
    file = folder / "gemini-defaults.json"
    defaults = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    return Launch({**variables, name: str(file)}, files={file: dump_text(defaults)})


def _launch_opencode(address: str, environment: Mapping[str, str], _folder: Path) -> Launch:
    name = "OPENCODE_CONFIG_CONTENT"
    try:
        config = loads(environment.get(name) or "{}")
    except InputError as error:
        raise ConfigError(f"{name} is not JSON: {error}") from None
    if not isinstance(config, dict):
        raise ConfigError(f"{name} is not a JSON object")
    addresses = {"openai": "/v1", "anthropic": "/v1", "google": "/v1beta"}
    for provider, path in addresses.items():
        options = _member(_member(_member(config, "provider"), provider), "options")
        options["baseURL"] = f"{address}{path}"
    return Launch({name: dump_text(config)})


def _member(config: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a member that is an object; add it if it is missing."""
    member = config.setdefault(name, {})
    if not isinstance(member, dict):
        raise ConfigError(f"OPENCODE_CONFIG_CONTENT: {name!r} is not a JSON object")
    return member


def _launch_aider(address: str, _environment: Mapping[str, str], _folder: Path) -> Launch:
    return Launch(
        {
            "OPENAI_API_BASE": f"{address}/v1",
            "ANTHROPIC_API_BASE": address,
            "GEMINI_API_BASE": f"{address}/v1beta",
        }
    )


AGENTS: Mapping[str, Agent] = {
    agent.name: agent
    for agent in (
        Agent(
            "claude",
            "Claude Code",
            "npm install -g @anthropic-ai/claude-code",
            lambda address, *_: Launch({"ANTHROPIC_BASE_URL": address}),
            {"ANTHROPIC_BASE_URL": "anthropic"},
            ("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY"),
        ),
        Agent(
            "codex",
            "Codex",
            "npm install -g @openai/codex",
            # The value is TOML, hence the quotes.
            lambda address, *_: Launch(arguments=("-c", f'openai_base_url="{address}/v1"')),
            {"OPENAI_BASE_URL": "openai"},
        ),
        Agent(
            "gemini",
            "Gemini CLI",
            "npm install -g @google/gemini-cli",
            _launch_gemini,
            {"GOOGLE_GEMINI_BASE_URL": "gemini"},
            ("GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_GCA"),
        ),
        Agent("opencode", "opencode", "npm install -g opencode-ai", _launch_opencode, {}),
        Agent(
            "aider",
            "aider",
            "python -m pip install aider-install && aider-install",
            _launch_aider,
            {
                "OPENAI_API_BASE": "openai",
                "OPENAI_BASE_URL": "openai",
                "ANTHROPIC_API_BASE": "anthropic",
                "ANTHROPIC_BASE_URL": "anthropic",
                "GEMINI_API_BASE": "gemini",
            },
        ),
    )
}
"""Agents by name."""


_SIGNALS_EXIT = 128
"""Shells report a program that a signal ended with this number plus the signal's."""
_NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGWINCH", "SIGUSR1", "SIGUSR2", "SIGCONT")


def run_in_foreground(
    program: str, arguments: Sequence[str], environment: Mapping[str, str]
) -> int:
    """Run the program to its end; return its exit code, 128 + N if signal N ended it."""
    if sys.platform == "win32":
        raise ConfigError(
            "enfold wrap needs Linux or macOS; use enfold wrap --print and set the variables"
        )
    passed_on = {getattr(signal, name) for name in _NAMES}
    with _blocked({*passed_on, signal.SIGCHLD}) as mask:
        # The signals are blocked here and taken from the queue below; the program must not
        # inherit that.
        pid = os.posix_spawn(
            program, [program, *arguments], environment, setsigmask=mask, setsigdef=[signal.SIGPIPE]
        )
        while True:
            number, is_from_terminal = _wait_for_signal({*passed_on, signal.SIGCHLD})
            if number == signal.SIGCHLD:
                code = _reap(pid)
                if code is not None:
                    return code
            elif not is_from_terminal:
                _send(pid, number)


@contextmanager
def _blocked(signals: set[signal.Signals]) -> Iterator[set[int]]:
    """Block signals; yield the mask before."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield {int(each) for each in mask}
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _wait_for_signal(signals: set[signal.Signals]) -> tuple[int, bool]:
    """Return the next signal, and True if the program got it from the terminal too."""
    if hasattr(signal, "sigwaitinfo"):
        info = signal.sigwaitinfo(signals)
        # The kernel sends the terminal's signals, with a positive code, to the whole group. The
        # shell sends SIGCONT to the whole group as well.
        return info.si_signo, info.si_code > 0 or info.si_signo == signal.SIGCONT
    number = signal.sigwait(signals)
    to_group = {signal.SIGINT, signal.SIGQUIT, signal.SIGWINCH, signal.SIGCONT}
    return number, number in to_group and os.isatty(0)


def _reap(pid: int) -> int | None:
    """Return the program's exit code; None while it runs. Stop with it when it is stopped."""
    ended, status = os.waitpid(pid, os.WNOHANG | os.WUNTRACED)
    if ended == 0:
        return None
    if os.WIFSTOPPED(status):
        if os.isatty(0):
            # The shell takes the terminal back only if this process stops too.
            os.kill(os.getpid(), signal.SIGSTOP)
            _send(pid, signal.SIGCONT)
        return None
    code = os.waitstatus_to_exitcode(status)
    return _SIGNALS_EXIT - code if code < 0 else code


def _send(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):  # it has just ended: its exit code comes next
        os.kill(pid, number)
