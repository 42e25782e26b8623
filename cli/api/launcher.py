"""`elastic.launch(settings)(function, *arguments)`: the command's launch, called by a program.

A mistake in what a launch is called with is a ValueError of one line, before anything starts.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar, overload

import attrs
import click

from ...adapters.inprocess.wrapper.callables import misfit
from ...adapters.launch_settings import Function, Program
from ...adapters.report.launch_report import Report
from ...adapters.terminal import printed
from ...adapters.workers.start.function_call import calling, name_of
from ...adapters.workers.start.spawner import Spawner
from ...core.group.state import Unawaited
from ...core.values import frozen
from ...core.world import Ending, Verdict
from ..agent_settings import script_program
from ..launch import launched
from .exceptions import error, lost_values
from .program_settings import LaunchSettings, options_of, without_dashes

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
        """Run a function with these arguments, or a script, in every worker (for a script see `module` and `no_python`).

        Returns what this node's workers returned, by global rank; None for each worker of a script. Raises ValueError for
        a mistake in the settings or the arguments, `elastic.ChildFailedError` if workers failed, `elastic.SignalException`
        if this process was told to stop, `elastic.RendezvousError` if this node could not take part. All but the first are
        `elastic.LaunchError`.

        No process and no signal handler stays afterwards; outside the main thread no signal is handled. `${local_rank}` in
        an argument that is text becomes the worker's.
        """
        if callable(entrypoint):
            _check_function(entrypoint, arguments, named)
            if self.settings.standby is not None and self.settings.start_method != "spawn":
                raise ValueError("standby: workers that are forked have done their imports; write start_method='spawn'")
            with calling(self.settings.start_method, entrypoint, *arguments, **named) as called:
                report = self._run(called.program, name_of(entrypoint), called.spawner)
                values, lost = called.values(report.result.round, report.result.ranks)
            if lost:
                raise lost_values(values, lost, report)
            return values
        name, options = _script(entrypoint, arguments, named), options_of(self.settings)
        report = self._run(_with_value_errors(script_program, options, name, arguments, os.environ), name)
        return {worker.rank: None for worker in report.result.ranks.workers}

    def _run(self, program: Program | Function, name: str, spawner: Spawner | None = None) -> Report:
        options, environment = options_of(self.settings), dict(os.environ)
        report, lines = _with_value_errors(launched, options, program, environment, spawner, tells_failure=False)
        match report.result.outcome:
            case Verdict(Ending.SUCCEEDED) | Unawaited():
                return report
            case _:
                raise error(name, printed(*lines).rstrip("\n"), report)


def _check_function(function: Callable[..., Any], arguments: Sequence[Any], named: Mapping[str, Any]) -> None:
    """Raise ValueError if the function cannot be called so: every worker would fail at it."""
    if why := misfit(function, arguments, named):
        raise ValueError(f"{name_of(function)}: {why}")


def _script(entrypoint: object, arguments: Sequence[object], named: Mapping[str, object]) -> str:
    """Return the script's name. Raises ValueError if it is none, or if an argument is not text."""
    if not isinstance(entrypoint, str | os.PathLike):
        raise ValueError(f"{entrypoint!r}: neither a function nor the name of a script")
    name = os.fspath(entrypoint)
    fields = [field.name for field in attrs.fields(LaunchSettings)]
    for key, value in named.items():
        where = f"LaunchSettings({key}={value!r})" if key in fields else f"'--{key.replace('_', '-')}', {str(value)!r}"
        raise ValueError(f"{key}={value!r}: a script has no named arguments; write {where}")
    for each in arguments:
        if not isinstance(each, str):
            raise ValueError(f"{each!r}: a script's arguments are text; write {str(each)!r}")
    return name


def _with_value_errors(function: Callable[Given, Returned], /, *given: Given.args, **named: Given.kwargs) -> Returned:
    """Call the function; a user's mistake is a ValueError in the words of a program."""
    try:
        return function(*given, **named)
    except click.ClickException as mistake:
        raise ValueError(without_dashes(mistake)) from None


def launch(settings: LaunchSettings | None = None) -> Launch:
    """Return a launch to call: `launch(settings)(function, *arguments)` or `launch(settings)("train.py", *arguments)`.

    See `Launch.__call__`.
    """
    if settings is not None and not isinstance(settings, LaunchSettings):
        raise ValueError(f"{settings!r}: no settings; write elastic.launch(elastic.LaunchSettings(...))(function, ...)")
    return Launch(settings or LaunchSettings())
