"""News: values by which the rendezvous' loop tells the agent, and the agent its observers, what happened."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol, TypeAlias

from ...core import group
from ...core.group import Group
from ...core.group.state import Command, Event
from ...core.rendezvous import Held
from ...core.rendezvous import Restored as Restored
from ...core.rendezvous import Seen as Seen
from ...core.rendezvous import StoreBack as StoreBack
from ...core.rendezvous import StoreSilent as StoreSilent
from ...core.rendezvous import Told as Told
from ...core.values import field, frozen
from ...core.world import Node, Stacks, World
from ..clock import Clock
from ..rendezvous.loop import LoopNotice as LoopNotice
from ..rendezvous.loop import Recorded as Recorded
from ..rendezvous.loop import StoodStill as StoodStill
from ..workers.start.attempts import Attempt
from ..workers.worker_port import Remark as Remark
from ..workers.worker_port import StandbyNews
from ..workers.worker_port import StandbysReady as StandbysReady

if TYPE_CHECKING:
    from ...core.goodput import NodeRecord


@frozen
class TraceLost:
    """The trace has ended early; the job goes on."""

    text: str


@frozen
class Step:
    """One step of the group. The log and the status lines are rendered from these."""

    event: Event | None
    before: Group
    after: Group
    commands: tuple[Command, ...]
    at: float


@frozen
class Started:
    """The workers of a world were started here, by these process ids; `attempts` tells by local rank as what."""

    world: World
    pids: tuple[int, ...]
    at: float
    attempts: Mapping[int, Attempt] = field(factory=dict)


@frozen
class StartedAgain:
    """A worker that had failed was started again alone, by this process id."""

    local_rank: int
    pid: int
    at: float
    attempt: Attempt


@frozen
class WatchdogTold:
    """The watchdog of file timers did something, under torch's name; `timer` has torch's fields of the timer, if any."""

    name: str
    timer: Mapping[str, str]
    at: float


@frozen
class SuspectedHang:
    """No worker of this node made progress for this long. `stacks` are those of the nodes that suspect the same, `missing`
    the others; `odd` is the rank that is elsewhere than all others, `overdue` the busy spans beyond their limits."""

    round: int
    silent_s: float
    stacks: tuple[Stacks, ...]
    odd: int | None = None
    missing: tuple[Node, ...] = ()
    overdue: Mapping[int, str] = field(factory=dict)


@frozen
class TimeTold:
    """The store has this record of where the node's time went."""

    record: NodeRecord


News: TypeAlias = (
    TimeTold
    | WatchdogTold
    | SuspectedHang
    | Step
    | Started
    | StartedAgain
    | Recorded
    | StoodStill
    | Seen
    | StoreSilent
    | StoreBack
    | Restored
    | TraceLost
    | StandbyNews
)
"""The news of the agent."""


class Observer(Protocol):
    """An observer of the agent: it shows or writes down what happens. The agent's thread alone calls it."""

    def saw(self, news: News) -> None:
        """The group took a step, workers were started, a failure is on record, the register or its store changed."""

    @property
    def until(self) -> float | None:
        """The time at which it wants to be called if there is no news."""

    def passed(self, now: float) -> None:
        """That point in time has passed."""


class Observers:
    """Several observers, told one after the other."""

    def __init__(self, *observers: Observer) -> None:
        self._observers = observers

    def saw(self, news: News) -> None:
        for observer in self._observers:
            observer.saw(news)

    @property
    def until(self) -> float | None:
        return min((until for observer in self._observers if (until := observer.until) is not None), default=None)

    def passed(self, now: float) -> None:
        for observer in self._observers:
            observer.passed(now)


class CannotTrace(Exception):
    """The trace cannot be written where it should; the text names the place and what to do."""


class Trace(Protocol):
    """A writer of every step, so that a replay can take it again. The thread that takes the step calls, and never waits."""

    def begin(
        self, held: Held, settings: group.Settings, clock: Clock, lost: Callable[[TraceLost | Remark], None]
    ) -> float:
        """The node as it is before its first step. Return when its time begins. Raises CannotTrace; what goes wrong later is
        told to `lost`, once."""

    def took(self, function: Callable[..., object], *given: object) -> None:
        """Write down a call of this function of the core: its arguments but for the node's memory, then its answer."""

    def end(self, patience_s: float | None = None) -> None:
        """No step follows. Idempotent. Raises TimeoutError if some could not be written in this time, if one is given."""


class NoTrace:
    """A trace that writes nothing. `began_at`: when the time of the node begins; None: with the trace."""

    def __init__(self, began_at: float | None = None) -> None:
        self._began_at = began_at

    def begin(
        self, held: Held, settings: group.Settings, clock: Clock, lost: Callable[[TraceLost | Remark], None]
    ) -> float:
        return clock.now() if self._began_at is None else self._began_at

    def took(self, function: Callable[..., object], *given: object) -> None:
        pass

    def end(self, patience_s: float | None = None) -> None:
        pass
