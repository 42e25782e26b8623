"""Clean-up that runs to its end whatever fails in it."""

from __future__ import annotations

from collections.abc import Callable


def failures_of(*steps: Callable[[], object]) -> list[Exception]:
    """Run all steps in this order, each whatever has failed before; return what they raised."""
    failures = []
    for step in steps:
        try:
            step()
        except Exception as error:  # noqa: BLE001 the caller gets it
            failures.append(error)
    return failures


def run_all(*steps: Callable[[], object]) -> None:
    """Run all steps in this order, each whatever has failed before. Raises what the first one that failed has raised."""
    if failures := failures_of(*steps):
        raise failures[0]
