"""`elastic.launch(settings)(function, *arguments)` and `elastic.start`: the command's launch, called by a program.

`launch` runs it in the calling thread: the kernel ties the workers to that thread, and signals reach the main thread only.
`start` runs the same in a thread of the job's own.

A mistake in what a launch is called with is a ValueError of one line, before anything starts.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, ParamSpec, TypeVar, overload

import attrs
import click

from ...adapters.inprocess.wrapper.callables import misfit
from ...adapters.launch_settings import Function, Program
from ...adapters.report.launch_report import Report
from ...adapters.terminal import printed
from ...adapters.threads import NoThread
from ...adapters.workers.start.function_call import Calling, calling, name_of
from ...adapters.workers.start.spawner import Spawner
from ...core.group.state import Unawaited
from ...core.values import frozen
from ...core.world import Ending, Verdict
from ..agent_settings import script_program
from ..launch import Handle, launched, no_agent
from .exceptions import error, lost_values
from .job import Job, Run
from .program_settings import LaunchSettings, options_of, variables_of, without_dashes

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
        return _checked(self.settings, entrypoint, arguments, named)(None)


@frozen
class Start:
    """A launch that is ready to be started beside the program, any number of times."""

    settings: LaunchSettings

    @overload
    def __call__(self, entrypoint: str | os.PathLike[str], /, *arguments: str) -> Job[None]: ...

    @overload
    def __call__(
        self, entrypoint: Callable[Given, Returned], /, *arguments: Given.args, **named: Given.kwargs
    ) -> Job[Returned]: ...

    def __call__(self, entrypoint: Any, /, *arguments: Any, **named: Any) -> Job[Any]:
        """Begin to run a function or a script, as `elastic.launch` does, and return the job.

        Raises ValueError for a mistake in the settings or the arguments; then nothing has started. All else is raised by the
        job's `wait`. The job runs in a thread of this process, and several jobs may run at once. It ends with this process,
        however that ends.
        """
        run, options = _checked(self.settings, entrypoint, arguments, named), options_of(self.settings)
        return _with_value_errors(_started, run, options.signals_to_handle, options.grace)


def _checked(settings: LaunchSettings, entrypoint: Any, arguments: Sequence[Any], named: Mapping[str, Any]) -> Run:
    """Return the launch, to be run in any thread. Raises ValueError."""
    if callable(entrypoint):
        _check_function(entrypoint, arguments, named)
        if settings.standby is not None and settings.start_method != "spawn":
            raise ValueError("standby: workers that are forked have done their imports; write start_method='spawn'")
        called = calling(settings.start_method, entrypoint, *arguments, **named)
        return partial(_call, settings, name_of(entrypoint), called)
    name, options = _script(entrypoint, arguments, named), options_of(settings)
    program = _with_value_errors(script_program, options, name, arguments, os.environ)
    return partial(_execute, settings, name, program)


def _started(run: Run, signals: tuple[signal.Signals, ...], grace_s: float) -> Job[Any]:
    try:
        return Job(run, signals, grace_s)
    except NoThread as error:
        raise no_agent(error) from None


def _call(
    settings: LaunchSettings, name: str, ready: Callable[[], AbstractContextManager[Calling]], handle: Handle | None
) -> dict[int, Any]:
    with ready() as called:
        report = _run(settings, called.program, name, handle, called.spawner)
        values, lost = called.values(report.result.round, report.result.ranks)
    if lost:
        raise lost_values(values, lost, report)
    return values


def _execute(settings: LaunchSettings, name: str, program: Program, handle: Handle | None) -> dict[int, None]:
    report = _run(settings, program, name, handle)
    return {worker.rank: None for worker in report.result.ranks.workers}


def _run(
    settings: LaunchSettings,
    program: Program | Function,
    name: str,
    handle: Handle | None,
    spawner: Spawner | None = None,
) -> Report:
    options, environment = options_of(settings), {**os.environ, **variables_of(settings)}
    report, lines = _with_value_errors(
        launched, options, program, environment, spawner, tells_failure=False, handle=handle
    )
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
    return Launch(_settings("launch", settings))


def start(settings: LaunchSettings | None = None) -> Start:
    """Return a launch to start: `start(settings)(function, *arguments)` or `start(settings)("train.py", *arguments)`.

    It returns a `Job`. See `Start.__call__`.
    """
    return Start(_settings("start", settings))


def _settings(name: str, given: LaunchSettings | None) -> LaunchSettings:
    if given is not None and not isinstance(given, LaunchSettings):
        raise ValueError(f"{given!r}: no settings; write elastic.{name}(elastic.LaunchSettings(...))(function, ...)")
    return given or LaunchSettings()
