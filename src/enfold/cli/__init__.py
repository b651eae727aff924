"""The command line: `enfold`. Commands parse their options, call one function, and show the result.

Results go to standard output, everything said to a person to standard error. An error is one line
that names the place, and an exit code from the table in `enfold.errors`; nothing is written then.

A command's module is imported when the command runs: nobody who counts waits for the database.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from types import FrameType
from typing import NoReturn

from cyclopts import (
    App,
    CycloptsError,
    Group,
    Parameter,
    UnknownCommandError,
    UnusedCliTokensError,
)

from enfold.cli.help import HelpPage
from enfold.cli.screen import abandon_output, complain, flush
from enfold.errors import EnfoldError, facts

_USAGE = 2
_INTERRUPTED = 130

COMMANDS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "Conversations in files": {
        "count": ("count", "Count tokens, exactly and offline."),
        "condense": ("condense", "Make conversations smaller, with ledgers to restore them from."),
        "restore": ("restore", "Give back conversations that were condensed."),
        "eval": ("evaluate", "Measure what survives a compression."),
    },
    "Stored sessions": {
        "import": ("import_command", "Store the conversations of a file as sessions."),
        "export": ("export_command", "Write the full history of a session, folded or not."),
        "sessions": ("sessions", "List, look at, compress and delete sessions."),
        "chat": ("chat", "Talk with a model; long talks are folded as they grow."),
        "search": ("search", "Search everything that was ever said, folded or not."),
        "serve": (
            "serve",
            "Serve the web UI, the API and the proxy; Ctrl+C stops it.",
        ),
    },
    "Setting up": {
        "models": ("models", "The limits of models."),
        "profiles": ("profiles", "Which models are asked, with whose key, and who condenses."),
        "settings": ("settings", "What is set, where it comes from, and setting it."),
        "presets": ("presets", "Strategies with their configs under a name."),
        "demo": ("demo", "See what enfold does, in a minute, without a key or a network."),
    },
}
"""Group -> command -> the module that has it as `app`, and what it does in a line."""


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return f"enfold {version('enfold')}"
    except PackageNotFoundError:
        return "enfold, run from its source without being installed"


app = App(
    name="enfold",
    help="Keeps long conversations with language models inside the model's window; "
    "nothing is lost.",
    help_format="plaintext",
    help_formatter=HelpPage(),
    version=_version,
    default_parameter=Parameter(negative=()),
    suppress_keyboard_interrupt=False,
)


def _register() -> None:
    """Tell the app of every command, by the place where it can be loaded from."""
    for place, (title, commands) in enumerate(COMMANDS.items()):
        group = Group(title, sort_key=place)
        for order, (name, (module, summary)) in enumerate(commands.items()):
            path = f"enfold.cli.{module}:app"
            app.command(path, name=name, help=summary, group=group, sort_key=order)
    app["--help"].group = app["--version"].group = (Group("Help", sort_key=len(COMMANDS)),)


_register()


def main() -> None:
    """Run the command that the program was called with, and exit with its code."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # With that one asyncio only cancels the task, which is too late for one that computes.
        signal.signal(signal.SIGINT, _interrupt)
    sys.exit(run(sys.argv[1:]))


def _interrupt(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def run(arguments: Sequence[str]) -> int:
    """Run one command; its exit code."""
    try:
        app(
            _hyphens_last(arguments),
            exit_on_error=False,
            print_error=False,
            result_action="return_value",
        )
        flush()
    except EnfoldError as error:
        abandon_output()
        complain(str(error))
        return facts(error).exit_code
    except CycloptsError as error:
        complain(" ".join(_usage_error(error)))
        return _USAGE
    except KeyboardInterrupt:
        complain("stopped")
        return _INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has seen enough.
        abandon_output()
    return 0


def _hyphens_last(arguments: Sequence[str]) -> list[str]:
    """A lone `-` is a file's name; cyclopts takes it for an option unless it comes after `--`."""
    if "-" not in arguments or "--" in arguments:
        return list(arguments)
    others = [argument for argument in arguments if argument != "-"]
    return [*others, "--", *(["-"] * (len(arguments) - len(others)))]


def _usage_error(error: CycloptsError) -> Iterator[str]:
    """What is wrong with the words after `enfold`, and where it is said how they should be."""
    known = [name for name in error.app or () if not name.startswith("-")]
    match error:
        case UnknownCommandError(unused_tokens=[word, *_]):
            # Cyclopts would say it too, but loads every command for it.
            yield f"no command {word!r}; there are {', '.join(known)}."
        case UnusedCliTokensError(unused_tokens=[word, *_]):
            yield f"one argument too many: {word!r}."
        case _:
            word = ""
            yield str(error)
    yield from (f"Did you mean {name!r}?" for name in get_close_matches(word, known, 1))
    yield f"See '{' '.join(('enfold', *(error.command_chain or ()), '--help'))}'."
