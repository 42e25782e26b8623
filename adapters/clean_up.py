"""Clean-up that runs to its end whatever fails in it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from contextlib import ExitStack, suppress

END_TIMEOUT_S = 5.0


def failures_of(*steps: Callable[[], object]) -> list[Exception]:
    """Run all steps in this order, each whatever has failed before; return what they raised."""
    failures = []
    for step in steps:
        try:
            step()
        except Exception as error:  # noqa: BLE001 the caller gets it
            failures.append(error)
    return failures


class CleanUp(ExitStack):
    """A stack that closes first what was opened last. What a step raises is added to the failures, and stops no other."""

    def __init__(self, failures: list[Exception]) -> None:
        super().__init__()
        self._failures = failures

    def closes(self, step: Callable[[], object]) -> None:
        """Run this step at the end."""
        self.callback(lambda: self._failures.extend(failures_of(step)))


def run_all(*steps: Callable[[], object]) -> None:
    """Run all steps in this order, each whatever has failed before. Raises what the first one that failed has raised."""
    if failures := failures_of(*steps):
        raise failures[0]


def end_process(process: subprocess.Popen[bytes]) -> None:
    """Kill and reap a helper process. One that the kernel or a debugger holds is left behind after END_TIMEOUT_S."""
    process.kill()
    await_end(process)


def await_end(process: subprocess.Popen[bytes]) -> None:
    """Reap a helper process that ends now, or leave it behind."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(END_TIMEOUT_S)
