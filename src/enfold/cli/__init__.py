"""The command line: `enfold`. Commands parse their options, call one function, and show the result.

Results go to standard output, messages to the user to standard error. An error is one line that
names the place, with an exit code from the table in `enfold.errors`; nothing is written then.

A command's module is imported when the command runs, so that `enfold count` does not load the
database and optional parts are loaded by name only.
"""

from __future__ import annotations

import signal
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

from cyclopts import App, CycloptsError, Group, Parameter, UnknownCommandError, UnusedCliTokensError

from enfold.cli.screen import abandon_output, complain, flush, put
from enfold.errors import EnfoldError, facts

if TYPE_CHECKING:
    from cyclopts.help import HelpEntry, HelpPanel
    from rich.console import Console


_WIDEST = 100
"""Columns. Longer lines are hard to read on any terminal."""
_WIDEST_NAME = 24
"""A longer name is printed on a separate line."""


class HelpPage:
    """The help formatter for cyclopts: prints the parts that cyclopts passes in."""

    # The names of the parameters are cyclopts', which passes some of them by name.

    def render_usage(self, console: Console, options: Any, usage: Any) -> None:  # noqa: ARG002
        """Print the usage line."""
        _print(console, f"Usage: {str(usage).strip()}")

    def render_description(self, console: Console, options: Any, description: Any) -> None:  # noqa: ARG002
        """Print the description of the command."""
        _print(console, "")
        for line in textwrap.wrap(_plain(description), _width(console)):
            _print(console, line)

    def __call__(self, console: Console, options: Any, panel: HelpPanel) -> None:  # noqa: ARG002
        """Print commands or options with their help."""
        if not panel.entries:
            return
        title = "Options" if panel.title == "Parameters" else panel.title
        _print(console, f"\n{title}:")
        named = [(" ".join(entry.display_labels_with_metavar), entry) for entry in panel.entries]
        column = min(max(len(name) for name, _ in named), _WIDEST_NAME)
        indent = " " * (column + 4)
        for name, entry in named:
            start = f"  {name:{column}}  "
            if len(name) > column:
                _print(console, start.rstrip())
                start = indent
            words = " ".join(_words(entry))
            for line in textwrap.wrap(
                words, _width(console), initial_indent=start, subsequent_indent=indent
            ):
                _print(console, line)


def _words(entry: HelpEntry) -> Iterator[str]:
    yield _plain(entry.description)
    if entry.default not in {None, "False", '""', "()"}:
        yield f"[default: {entry.default}]"
    if entry.required:
        yield "[required]"


def _plain(description: Any) -> str:
    """Return the text that cyclopts wraps for rich."""
    return str(getattr(description, "primary_renderable", description))


def _width(console: Console) -> int:
    return min(console.width, _WIDEST)


def _print(console: Console, line: str) -> None:
    console.print(line, markup=False, highlight=False, soft_wrap=True)


_USAGE = 2
_INTERRUPTED = 130
_WRAP_OPTIONS_WITH_VALUE = ("--port", "--db")

COMMANDS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "Conversations in files": {
        "count": ("count", "Count tokens, exactly and offline."),
        "condense": ("condense", "Condense conversations, with ledgers to restore them."),
        "restore": ("condense:restore_app", "Restore condensed conversations."),
        "eval": ("evaluate", "Measure which content survives a compression."),
    },
    "Stored sessions": {
        "import": ("transfer:import_app", "Store the conversations of a file as sessions."),
        "export": ("transfer:export_app", "Write the full history of a session."),
        "sessions": ("sessions", "List, show, compress and delete sessions; pin messages."),
        "chat": ("chat", "Chat with a model; old messages are summarized as the chat grows."),
        "search": ("search", "Search all messages, summarized or not."),
        "recall": ("search:recall_app", "Show the messages of a session that answer a question."),
        "serve": ("serve", "Serve the web UI, the API and the proxy; Ctrl+C stops it."),
    },
    "Coding agents": {
        "wrap": ("wrap", "Run a coding agent with its requests going through enfold."),
        "hook": ("search:hook_app", "Answer a hook of a coding agent: tell it what it may recall."),
    },
    "Setup": {
        "models": ("models", "Show and set the limits of models."),
        "profiles": ("profiles", "Set up models: provider, key, prices and condensing profile."),
        "settings": ("settings", "Show and change settings."),
        "presets": ("settings:presets_app", "Manage named strategy configs."),
        "verify": (
            "doctor:verify_app",
            "Check that everything that is stored is whole and unchanged.",
        ),
        "doctor": ("doctor", "Check the setup, and tell how to fix each problem."),
        "demo": ("demo", "Show what enfold does, without a key or a network."),
    },
}
"""Group -> command -> its module and help line. The app is `app`, or the name after a colon."""


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return f"enfold {version('enfold')}"
    except PackageNotFoundError:
        return "enfold, running from source"


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
    """Register every command by its import path."""
    for place, (title, commands) in enumerate(COMMANDS.items()):
        group = Group(title, sort_key=place)
        for order, (name, (module, summary)) in enumerate(commands.items()):
            path = module if ":" in module else f"{module}:app"
            app.command(f"enfold.cli.{path}", name=name, help=summary, group=group, sort_key=order)
    app["--help"].group = app["--version"].group = (Group("Help", sort_key=len(COMMANDS)),)


_register()

NEXT_STEPS = """\
enfold keeps long conversations inside the model's window; nothing is lost.

Start with one of these:
  enfold wrap claude                            a coding agent, its requests going through enfold
  enfold serve                                  the web UI, the API and the proxy
  enfold condense chat.json --window 128000     one conversation in a file
  enfold demo                                   see what it does, without a key or a network

`enfold doctor` checks the setup. `enfold --help` lists all commands."""


@app.default
def show_next_steps() -> None:
    """Print ways to start."""
    put(NEXT_STEPS)


def main() -> None:
    """Run the command of this process's arguments and exit with its code."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # The default handler only cancels the task; one that computes would not stop.
        signal.signal(signal.SIGINT, _interrupt)
    sys.exit(run(sys.argv[1:]))


def _interrupt(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code."""
    try:
        result = app(
            _hyphens_last(_agent_arguments_last(arguments)),
            exit_on_error=False,
            print_error=False,
            result_action="return_value",
        )
        flush()
        return result if isinstance(result, int) else 0
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
        # The reader of our output has closed the pipe.
        abandon_output()
    return 0


def _agent_arguments_last(arguments: Sequence[str]) -> list[str]:
    """Move the agent's name and its arguments after `--`: none of them is an option of enfold."""
    if list(arguments[:1]) != ["wrap"] or "--" in arguments[:2]:
        return list(arguments)
    place = 1
    while place < len(arguments) and arguments[place].startswith("-"):
        place += 1 + (arguments[place] in _WRAP_OPTIONS_WITH_VALUE)
    return [*arguments[:place], "--", *arguments[place:]]


def _hyphens_last(arguments: Sequence[str]) -> list[str]:
    """Move `-`, the name of standard input, after `--`: cyclopts would read it as an option."""
    if "-" not in arguments or "--" in arguments:
        return list(arguments)
    others = [argument for argument in arguments if argument != "-"]
    return [*others, "--", *(["-"] * (len(arguments) - len(others)))]


def _usage_error(error: CycloptsError) -> Iterator[str]:
    """Explain wrong arguments and point to the help."""
    names = [name for name in error.app or () if not name.startswith("-")]
    match error:
        case UnusedCliTokensError(unused_tokens=[word, *_]) if not names:
            yield f"one argument too many: {word!r}."
        case UnknownCommandError() | UnusedCliTokensError() if error.unused_tokens:
            word = error.unused_tokens[0]
            # Cyclopts has such a message too, but loads every command for it.
            yield f"no command {word!r}; available: {', '.join(names)}."
        case _:
            word = ""
            yield str(error)
    yield from (f"Did you mean {name!r}?" for name in get_close_matches(word, names, 1))
    yield f"See '{' '.join(('enfold', *(error.command_chain or ()), '--help'))}'."
