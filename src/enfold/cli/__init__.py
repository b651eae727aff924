"""The command line: `enfold`. Commands parse their options, call one function, and show the result.

Results go to standard output, everything said to a person to standard error. An error is one line
that names the place, and an exit code from the table in `enfold.errors`; nothing is written then.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from cyclopts import App, CycloptsError

from enfold.cli import condense, count, demo, models, search, sessions, settings, transfer
from enfold.cli.screen import complain
from enfold.errors import EnfoldError, facts

_USAGE = 2
_INTERRUPTED = 130

app = App(
    name="enfold",
    help="Keeps long conversations with language models inside the model's window; "
    "nothing is lost.",
    help_format="plaintext",
)
for command in (count.count, condense.condense, condense.restore, search.search, demo.demo):
    app.command(command)
app.command(transfer.import_file, name="import")
app.command(transfer.export_session, name="export")
for group in (sessions.app, models.app, settings.app):
    app.command(group)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit with its code."""
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: Sequence[str]) -> int:
    """Run one command; its exit code."""
    try:
        app(arguments, exit_on_error=False, print_error=False, result_action="return_value")
    except EnfoldError as error:
        complain(str(error))
        return facts(error).exit_code
    except CycloptsError as error:
        complain(f"{error} See 'enfold {' '.join(error.command_chain or ())} --help'.")
        return _USAGE
    except KeyboardInterrupt:
        complain("stopped")
        return _INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has seen enough; closing it here keeps Python from complaining.
        sys.stdout = None  # type: ignore[assignment]  # the interpreter then skips the last flush
    return 0
