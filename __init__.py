"""elastic: a launcher for distributed PyTorch that keeps a job training. `elastic launch --help` is the manual.

Nothing is imported before it is used. `from elastic import core` is the pure protocol, for authors of simulators.
`from elastic import inprocess` is the wrapper that restarts a function inside its process.
"""

from __future__ import annotations

TYPE_CHECKING = False  # type checkers take it for True; importing `typing` takes time

if TYPE_CHECKING:
    from . import inprocess
    from .cli.api.exceptions import ChildFailedError, LaunchError, ProcessFailure, RendezvousError, SignalException
    from .cli.api.launcher import Launch, launch
    from .cli.api.program_settings import LaunchSettings

    __version__: str

__all__ = [
    "ChildFailedError",
    "Launch",
    "LaunchError",
    "LaunchSettings",
    "ProcessFailure",
    "RendezvousError",
    "SignalException",
    "inprocess",
    "launch",
]

_HOMES = {
    "ChildFailedError": "exceptions",
    "Launch": "launcher",
    "LaunchError": "exceptions",
    "LaunchSettings": "program_settings",
    "ProcessFailure": "exceptions",
    "RendezvousError": "exceptions",
    "SignalException": "exceptions",
    "launch": "launcher",
}
"""The module of `cli.api` that has the name."""

if not TYPE_CHECKING:  # with it, a type checker would accept every name

    def __getattr__(name: str) -> object:
        if name == "__version__":
            from importlib.metadata import version

            return version("elastic-launch")
        from importlib import import_module

        if name == "inprocess":
            return import_module(".inprocess", __name__)
        if name in _HOMES:
            return getattr(import_module(f".cli.api.{_HOMES[name]}", __name__), name)
        raise AttributeError(f"module 'elastic' has no attribute {name!r}")
