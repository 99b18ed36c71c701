"""The command `attnmove` itself: its version, its errors, its exit status."""

from __future__ import annotations

import signal
import sys
from typing import Annotated

import typer
from rich.markup import escape

from attnmove.cli.render import err, out
from attnmove.errors import AttnMoveError
from attnmove.version import __version__

app = typer.Typer(
    name="attnmove",
    help="Fill the gaps in people's daily trajectories.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_INTERRUPTED = 130


def main() -> None:
    """Run the command line; our own errors are one sentence on standard error and exit status 1."""
    # What ends a job politely must clean up as Ctrl-C does.
    for name in ("SIGTERM", "SIGHUP"):  # there is no SIGHUP on Windows, and nohup has it ignored
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)
    try:
        app()
    except AttnMoveError as error:
        _fail(str(error))
    except OSError as error:
        _fail(f"{error.filename or 'the system'}: {error.strerror or error}")
    except Stopped:
        raise
    except SystemExit as stop:
        if stop.code == _INTERRUPTED:
            err.print("stopped; no unfinished file was left behind")
        raise


class Stopped(SystemExit):
    """The end of a command that was interrupted and has said itself what it left."""

    def __init__(self) -> None:
        super().__init__(_INTERRUPTED)


def _fail(sentence: str) -> None:
    err.print(f"[bold red]error:[/] {escape(sentence)}", soft_wrap=True, highlight=False)
    sys.exit(1)


def _version(asked: bool) -> None:
    if asked:
        out.print(f"attnmove {__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Fill the gaps in people's daily trajectories."""
