"""elastic: a launcher for distributed PyTorch that keeps a job training. `elastic launch --help` is the manual.

Nothing is imported until it is asked for: `from elastic import core` is the pure protocol, for simulators,
`from elastic import inprocess` the wrapper that restarts a function inside its process.
"""

from __future__ import annotations


def __getattr__(name: str) -> object:
    if name == "inprocess":
        from importlib import import_module

        return import_module(".inprocess", __name__)
    if name == "__version__":
        from importlib.metadata import version

        return version("elastic-launch")
    raise AttributeError(f"module 'elastic' has no attribute {name!r}")
