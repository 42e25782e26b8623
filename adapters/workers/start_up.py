"""The tasks of a worker's start-up code (startup/sitecustomize.py): write stacks, and report an uncaught exception.

The program can find out about it: the signal of the stacks is caught; two descriptors are open, as high ones as 1023 and
1022; sys.excepthook, `threading._shutdown` and a handler of atexit are ours. Its children inherit neither descriptor when
they execute a program.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from ...core.values import frozen
from ..launch_settings import Function, Kind, LaunchSettings, Program

HOOK = Path(__file__).with_name("startup")
"""The folder of the start-up code, first in PYTHONPATH."""
_VARIABLE = "ELASTIC_START_UP"
_DESCRIPTORS_MAX = 1024
"""The descriptors are below this: the kernel copies the table of descriptors at each fork."""


@frozen
class StackHandler:
    """The signal at which a worker writes its stacks, and the descriptor to which it writes them."""

    signum: int
    descriptor: int


@frozen
class StartUp:
    """The jobs of the start-up code. A worker reports over the descriptor `reports`."""

    stacks: StackHandler | None
    reports: int

    @property
    def numbers(self) -> tuple[int, int, int]:
        """Return the signal (0: none) and the descriptor of the stacks, and the descriptor of the reports."""
        return (self.stacks.signum, self.stacks.descriptor, self.reports) if self.stacks else (0, 0, self.reports)

    def environment(self, base: Mapping[str, str], given: int = 0) -> dict[str, str]:
        """Return the environment with what the start-up code takes out of it again. `given` is the descriptor, inherited by
        the worker, over which it reports; 0: it reports nothing."""
        return {**base, **self.variables(base.get("PYTHONPATH"), given)}

    def variables(self, path: str | None, given: int) -> dict[str, str]:
        """Return what the environment gets besides, where PYTHONPATH is this."""
        signum, stacks, number = self.numbers
        return {
            "PYTHONPATH": os.pathsep.join(filter(None, (str(HOOK), path))),
            _VARIABLE: f"{signum}:{stacks}:{given}:{number}:{0 if path is None else 1}",
        }


def start_up(settings: LaunchSettings) -> StartUp | None:
    """Return what the workers' start-up code does; None if they are not run by this very Python."""
    if not _runs_here(settings.program) or os.pathsep in str(HOOK):
        return None
    last = min(os.sysconf("SC_OPEN_MAX"), _DESCRIPTORS_MAX) - 1
    signum = settings.stacks_signal
    return StartUp(StackHandler(signum, last) if signum is not None else None, last - 1)


def _runs_here(program: Program | Function) -> bool:
    is_binary = isinstance(program, Program) and program.kind is Kind.BINARY
    return not is_binary and program.python == sys.executable
