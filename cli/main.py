"""The `elastic` command: runs the sub-command, and turns a user's mistake into one line and exit code 2."""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
from importlib import import_module

began_at: float | None = None
"""When this program began, on the monotonic clock; None: another program runs its commands."""


def main() -> None:
    """Run the command line. Until the agent handles signals, SIGINT ends this program without a traceback."""
    global began_at
    began_at = time.monotonic()
    _fill_standard_streams()
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    _load()
    code = run(sys.argv[1:])
    _let_go()
    sys.exit(code)


def _load() -> None:
    """Import the program while nothing collects garbage, and freeze it: saves 8 ms at the start and 12 ms at the end."""
    gc.disable()
    _load_msgspec()
    import_module(".root", __package__)
    if sys.argv[1:2] == ["launch"]:  # the others need no agent
        import_module(".launch", __package__)
    gc.freeze()
    gc.enable()


def _load_msgspec() -> None:
    """Import msgspec without typing_extensions, which it takes in place of typing where it finds it, as beside torch: saves
    a tenth of the imports. Our types need nothing of it. No other thread runs yet that could miss it."""
    if "typing_extensions" in sys.modules:
        return
    sys.modules["typing_extensions"] = None  # type: ignore[assignment]  # so its import fails
    try:
        import_module("msgspec")
    finally:
        del sys.modules["typing_extensions"]


def _fill_standard_streams() -> None:
    """Open /dev/null for a stream that was closed (`2>&-`), or the next file to be opened would take its number."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            os.dup2(nowhere, number)
            os.set_inheritable(number, True)
            if nowhere != number:
                os.close(nowhere)
            setattr(sys, name, os.fdopen(number, "r" if number == 0 else "w", closefd=False))


def _let_go() -> None:
    """Flush the streams. One that nobody reads is replaced by /dev/null, or Python would exit with 120."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def run(arguments: list[str]) -> int:
    """Run one command line; return its exit code."""
    import click

    from .mistakes import USAGE, one_line
    from .render.text import CannotPrint, say
    from .root import root

    try:
        return root.main(arguments, prog_name="elastic", standalone_mode=False) or 0
    except click.exceptions.Exit as exit:
        return exit.exit_code
    except CannotPrint as reason:
        say(f"elastic: standard output: {reason}", err=True)
        return os.EX_IOERR
    except click.ClickException as mistake:
        line = one_line(mistake)
        say(line, err=True)
        if arguments[:1] == ["launch"]:
            from .launch import leave_reply

            leave_reply({"message": {"message": line.removeprefix("elastic: "), "errorCode": USAGE}})
        return USAGE
