"""The phases of a recovery, as an agent sees them: it stops the workers, rejoins, and starts them again."""

from __future__ import annotations

from ...core.group import Phase
from ...core.values import frozen
from .news import News, Started, Step

PHASES = ("stop", "rejoin", "start")


@frozen
class Passed:
    """A phase of a recovery is over. `began_at` and `ended_at` are in seconds of the agent's clock."""

    phase: str
    began_at: float
    ended_at: float


class Recoveries:
    """It follows the recoveries of one agent. A recovery begins when its workers stop, and ends when they run again."""

    def __init__(self) -> None:
        self._since: float | None = None
        """When the present phase of a recovery began; None: there is none."""
        self.passed: tuple[Passed, ...] = ()
        """The phases of the present recovery that are over; after `start` those of the last one."""

    def saw(self, news: News) -> Passed | None:
        """Return the phase that this news ends."""
        match news:
            case Step():
                return self._moved(news)
            case Started(at=at):
                passed, self._since = self._ends("start", at), None
                return passed
            case _:
                return None

    def _moved(self, step: Step) -> Passed | None:
        match step.before.phase, step.after.phase:
            case ((Phase.RUNNING | Phase.BARRIER | Phase.MOVING), (Phase.STOPPING | Phase.JOINING | Phase.CHECKING)):
                self._since, self.passed = step.at, ()
                return None
            case Phase.STOPPING, (Phase.JOINING | Phase.CHECKING):
                return self._ends("stop", step.at)
            case Phase.JOINING, Phase.HELD:
                return self._ends("rejoin", step.at)
            case _:
                return None

    def _ends(self, phase: str, at: float) -> Passed | None:
        """Note the end of a phase; the next one begins."""
        if self._since is None:
            return None
        passed, self._since = Passed(phase, self._since, at), at
        self.passed = (*self.passed, passed)
        return passed
