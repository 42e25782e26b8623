"""elastic: a launcher for distributed PyTorch that keeps a job training. `elastic launch --help` is the manual.

Nothing is imported before it is used. `elastic.core` is the pure protocol, for authors of simulators. `elastic.inprocess` is
the wrapper that restarts a function inside its process.
"""

from __future__ import annotations

TYPE_CHECKING = False  # type checkers take it for True; importing `typing` takes time

if TYPE_CHECKING:
    from . import core, inprocess
    from .adapters.workers.messages.notices import Notice, notice, ready_to_leave
    from .adapters.workers.messages.progress import busy, progress, saved
    from .cli.api.exceptions import ChildFailedError, LaunchError, ProcessFailure, RendezvousError, SignalException
    from .cli.api.job import Job, WorkerFiles
    from .cli.api.launcher import Launch, Start, launch, start
    from .cli.api.program_settings import LaunchSettings

    __version__: str

__all__ = [
    "ChildFailedError",
    "Job",
    "Launch",
    "LaunchError",
    "LaunchSettings",
    "Notice",
    "ProcessFailure",
    "RendezvousError",
    "SignalException",
    "Start",
    "WorkerFiles",
    "busy",
    "core",
    "inprocess",
    "launch",
    "notice",
    "progress",
    "ready_to_leave",
    "saved",
    "start",
]

_HOMES = {
    "ChildFailedError": "cli.api.exceptions",
    "Job": "cli.api.job",
    "Launch": "cli.api.launcher",
    "LaunchError": "cli.api.exceptions",
    "LaunchSettings": "cli.api.program_settings",
    "Notice": "adapters.workers.messages.notices",
    "ProcessFailure": "cli.api.exceptions",
    "RendezvousError": "cli.api.exceptions",
    "SignalException": "cli.api.exceptions",
    "Start": "cli.api.launcher",
    "WorkerFiles": "cli.api.job",
    "busy": "adapters.workers.messages.progress",
    "launch": "cli.api.launcher",
    "notice": "adapters.workers.messages.notices",
    "progress": "adapters.workers.messages.progress",
    "ready_to_leave": "adapters.workers.messages.notices",
    "saved": "adapters.workers.messages.progress",
    "start": "cli.api.launcher",
}
"""The module that has the name."""

if not TYPE_CHECKING:  # with it, a type checker would accept every name

    def __getattr__(name: str) -> object:
        if name == "__version__":
            from importlib.metadata import version

            return version("elastic-launch")
        from importlib import import_module

        if name in ("core", "inprocess"):
            return import_module(f".{name}", __name__)
        if name in _HOMES:
            found = globals()[name] = getattr(import_module(f".{_HOMES[name]}", __name__), name)
            return found  # type: ignore[no-any-return]
        raise AttributeError(f"module 'elastic' has no attribute {name!r}")
