"""elastic: a launcher for distributed PyTorch that keeps a job training. `elastic launch --help` is the manual.

Nothing is imported until it is asked for: `from elastic import core` is the pure protocol, for simulators,
`from elastic import inprocess` the wrapper that restarts a function inside its process.
"""

from __future__ import annotations

TYPE_CHECKING = False  # type checkers hold it for true; `typing` itself takes its time to import

if TYPE_CHECKING:
    from . import inprocess
    from .cli.api.errors import ChildFailedError, LaunchError, ProcessFailure, RendezvousError, SignalException
    from .cli.api.launch import Launch, launch
    from .cli.api.settings import LaunchSettings

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
    "ChildFailedError": "errors",
    "Launch": "launch",
    "LaunchError": "errors",
    "LaunchSettings": "settings",
    "ProcessFailure": "errors",
    "RendezvousError": "errors",
    "SignalException": "errors",
    "launch": "launch",
}
"""In which module of `cli.api` a name is."""

if not TYPE_CHECKING:  # or every name would be right for a type checker

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
