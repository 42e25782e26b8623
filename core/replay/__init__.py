"""Traces of real agents and ranks, taken again: what differs, histories, timelines, lanes. `core/trace` has their lines.

from elastic.core import replay

chronicle = replay.told(traces)            # what came from outside, and how long things took

The names are imported when they are used: `elastic status` draws lanes, and starts a fifth sooner without the rest.
"""

TYPE_CHECKING = False  # type checkers take it for True; importing `typing` takes time

if TYPE_CHECKING:
    from .chronicle import Checkpoints, Chronicle, Incident, Outside, Program, Spans, Timing, told, told_of

__all__ = ["Checkpoints", "Chronicle", "Incident", "Outside", "Program", "Spans", "Timing", "told", "told_of"]

if not TYPE_CHECKING:  # pragma: no branch  (with it, a type checker would accept every name)

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from . import chronicle

        return getattr(chronicle, name)
