"""`elastic.launch(settings)(function, *arguments)`: the command's launch, from and for a program."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, overload

import click
from attrs import frozen

from ...adapters.launch_settings import Function, Program
from ...adapters.report.launch_report import Report
from ...adapters.workers.function_call import calling, name_of
from ...adapters.workers.spawner import Spawner
from ...core.world import Ending, Verdict
from ..launch import launched
from ..program import script_program
from .entrypoint import check_function, check_script, check_settings
from .errors import error
from .settings import LaunchSettings, options, without_dashes

Given = ParamSpec("Given")
Returned = TypeVar("Returned")


@frozen
class Launch:
    """A launch that is ready to be called, any number of times."""

    settings: LaunchSettings

    @overload
    def __call__(self, entrypoint: str | os.PathLike[str], /, *arguments: str) -> dict[int, None]: ...

    @overload
    def __call__(
        self, entrypoint: Callable[Given, Returned], /, *arguments: Given.args, **named: Given.kwargs
    ) -> dict[int, Returned]: ...

    def __call__(self, entrypoint: Any, /, *arguments: Any, **named: Any) -> dict[int, Any]:
        """Run it in every worker: a function with these arguments, or a script (`module` and `no_python` of the settings
        say how).

        What this node's workers returned, by global rank; None for a script's. Raises ValueError for a mistake in the
        settings or the arguments, `elastic.ChildFailedError` if workers failed, `elastic.SignalException` if this process
        was told to stop, `elastic.RendezvousError` if it could not take part; all but the first are `elastic.LaunchError`.

        Nothing of it lives afterwards, and signal handlers are what they were; in another thread than the main one there
        are none. `${local_rank}` in an argument that is text becomes the worker's.
        """
        if callable(entrypoint):
            check_function(entrypoint, arguments, named)
            with calling(self.settings.start_method, entrypoint, *arguments, **named) as called:
                report = self._run(called.program, name_of(entrypoint), called.spawner)
                return dict(called.values(report.result.round, report.result.ranks))
        name = check_script(entrypoint, arguments, named)
        given = {**options(self.settings), "script": name, "arguments": arguments}
        report = self._run(_unless_mistaken(script_program, given, os.environ), name)
        return {worker.rank: None for worker in report.result.ranks.workers}

    def _run(self, program: Program | Function, name: str, spawner: Spawner | None = None) -> Report:
        given, environment = options(self.settings), dict(os.environ)
        report, lines = _unless_mistaken(launched, given, program, environment, spawner, tells_failure=False)
        match report.result.outcome:
            case Verdict(Ending.SUCCEEDED):
                return report
            case _:
                raise error(name, "\n".join(lines), report)


def _unless_mistaken(function: Callable[Given, Returned], /, *given: Given.args, **named: Given.kwargs) -> Returned:
    try:
        return function(*given, **named)
    except click.ClickException as mistake:
        raise ValueError(without_dashes(mistake)) from None


def launch(settings: LaunchSettings | None = None) -> Launch:
    """`launch(settings)(function, *arguments)` or `launch(settings)("train.py", *arguments)`: see `Launch.__call__`."""
    if settings is not None:
        check_settings(settings)
    return Launch(settings or LaunchSettings())
