"""A trace and the core, compared step by step. The first step that differs is told; nothing after it can be judged."""

from __future__ import annotations

from .. import inprocess
from ..group import Phase
from ..trace.steps import Calling, Step, Trace, step_at
from ..values import frozen
from .difference import Differs
from .replica import Replica, newborn, taken


@frozen
class Moment:
    """A step that was taken again: the line of its file, and the agent's clock."""

    line: int
    at: float
    step: Step
    before: Replica
    after: Replica


@frozen
class Replayed:
    """A trace, its moments up to the end or to the first step that differs, and that step."""

    trace: Trace
    moments: tuple[Moment, ...]
    differs: tuple[int, Differs] | None = None
    """The line of the step that differs, and the difference."""

    @property
    def ended(self) -> bool:
        """Return True if the agent came to its end, and its trace tells."""
        return bool(self.moments) and self.moments[-1].after.phase in (Phase.ENDED, inprocess.Phase.ENDED)

    @property
    def calls(self) -> bool:
        """Return True for the trace of a rank that calls a wrapped function."""
        return isinstance(self.trace.header.machine, Calling)

    @property
    def ended_at(self) -> float:
        """Return the agent's clock at the last of the moments."""
        return self.moments[-1].at if self.moments else self.trace.header.now


def replayed(trace: Trace) -> Replayed:
    """Take all steps again, up to the first that differs."""
    replica, moments = newborn(trace.header), list[Moment]()
    for line, step in zip(trace.lines, trace.steps, strict=True):
        try:
            after = taken(replica, step)
        except Differs as differs:
            return Replayed(trace, tuple(moments), (line, differs))
        moments.append(Moment(line, step_at(step), step, replica, after))
        replica = after
    return Replayed(trace, tuple(moments))
