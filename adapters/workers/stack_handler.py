"""The request to a worker's start-up code (startup/sitecustomize.py) to write the stacks of its threads when a signal comes.

Python's own faulthandler writes them, from the signal's handler in C, so also while C code holds Python's lock. The program
can find out about two things: the signal is caught, and one descriptor is open, as high a one as 1023. Its children inherit
neither when they execute a program.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from attrs import frozen

from ..launch_settings import Function, Kind, LaunchSettings, Program

HOOK = Path(__file__).with_name("startup")
"""The folder of the start-up code, first in PYTHONPATH."""
_VARIABLE = "ELASTIC_STACKS"
_DESCRIPTORS_MAX = 1024
"""The descriptor is below this: the kernel copies the table of descriptors at each fork."""


@frozen
class StackHandler:
    """The signal at which a worker writes its stacks, and the descriptor to which it writes them."""

    signum: int
    descriptor: int

    def environment(self, base: Mapping[str, str]) -> dict[str, str]:
        """Return the environment with what the start-up code takes out of it again."""
        path = base.get("PYTHONPATH")
        return {
            **base,
            "PYTHONPATH": os.pathsep.join(filter(None, (str(HOOK), path))),
            _VARIABLE: f"{self.signum}:{self.descriptor}:{0 if path is None else 1}",
        }


def stack_handler(settings: LaunchSettings) -> StackHandler | None:
    """Return the handler that workers get; None if none is wanted, or if they are not run by this very Python."""
    if settings.stacks_signal is None or not _runs_here(settings.program) or os.pathsep in str(HOOK):
        return None
    return StackHandler(settings.stacks_signal, min(os.sysconf("SC_OPEN_MAX"), _DESCRIPTORS_MAX) - 1)


def _runs_here(program: Program | Function) -> bool:
    is_binary = isinstance(program, Program) and program.kind is Kind.BINARY
    return not is_binary and program.python == sys.executable
