"""What the monitor process does: a pure function of what it sees, what it has done, and now.

It stands beside one wrapped process and sees its page, its death and the register. As long as T, the thread that decides in
that process, is at work, the monitor does nothing; it acts where T has not acted though it was due: on a hang that holds
the interpreter's lock, a process that stands still, a death. What it asks for can be asked for twice, and T may have asked
for it too: an end names its round, a wish its span.

All points and spans in seconds, on one host's monotonic clock.
"""

from __future__ import annotations

import math
from enum import Enum
from typing import TypeAlias, assert_never

from attrs import frozen

from ..evolving import evolve
from .progress_limits import stood_still

FIRST_PAUSE_S = 0.001
LONGEST_PAUSE_S = 1.0
"""Between two signals for one wish; each pause is twice the last."""


@frozen
class Rules:
    """How long it waits for T, and for the others."""

    patience_s: float = 0.02
    """T is due to act and has not: so long it is given."""
    leave_patience_s: float = 1.0
    """The same for a leave, which takes the store some time."""
    unwind_s: float = 30.0
    """From a wish of the monitor's own to the end of that span."""
    grace_s: float = 5.0
    """From SIGTERM to SIGKILL."""
    leave_s: float = 5.0
    """How long it tries to tell the register."""


class Bye(Enum):
    """How the wrapped call ended, as its process says."""

    NOT_YET = "not yet"
    SETTLED = "settled"
    UNSETTLED = "unsettled"


@frozen
class Sight:
    """What one look shows. `token` 0: no user code runs. Limits are spans since `stamp`, inf: none."""

    token: int = 0
    round: int = 0
    guarded: bool = False
    """That span is one whose progress counts: initialize, or the function."""
    active: bool = True
    stamp: float = 0.0
    soft_s: float = math.inf
    hard_s: float = math.inf
    wanted: bool = False
    """T has asked for the end of that span."""
    leaving: bool = False
    bye: Bye = Bye.NOT_YET
    unwind_at: float = math.inf
    """T's own limit; past: T wants the process killed now."""
    dead: bool = False
    """Zombies count."""
    over: bool = False
    """The register: that round is over, or the job is."""
    settled: bool = False
    """The register counts on this rank no longer."""


class Phase(Enum):
    WATCH = "watch"
    KILL = "kill"
    """The process is past help: it is being killed."""
    SPEAK = "speak"
    """The process speaks no longer: the register is told."""
    QUIT = "quit"


@frozen
class Monitor:
    """What it has done so far."""

    phase: Phase = Phase.WATCH
    over_since: tuple[int, float] | None = None
    """Since when it has known that the round of that span is over."""
    leaving_since: float | None = None
    said: int = 0
    """The last span whose round it has ended, or which it has left."""
    left: bool = False
    wish: int = 0
    wished_at: float = math.inf
    tries: int = 0
    again_at: float = math.inf
    next_at: float = math.inf
    """In KILL: of the next signal. In SPEAK: of giving up."""
    awake_since: float = -math.inf
    """When it last went on after it had stood still."""
    forgave: float | None = None
    """The mark of progress that the process had left last by then."""


@frozen
class Wish:
    """Write the wish for this span, and send the signal."""

    token: int


@frozen
class SayEnd:
    """The register: this rank has failed in this round."""

    round: int


@frozen
class SayLeave:
    """The register: this rank leaves."""


@frozen
class SayDead:
    """The register: this rank is gone, whatever its heartbeats have said."""


@frozen
class Terminate:
    """SIGTERM, then SIGCONT, so that a process which stands still meets it at once."""


@frozen
class Kill:
    """SIGKILL."""


@frozen
class Quit:
    """Nothing is left to do."""


Act: TypeAlias = Wish | SayEnd | SayLeave | SayDead | Terminate | Kill | Quit
Step: TypeAlias = tuple[Monitor, tuple[Act, ...]]


def step(monitor: Monitor, sight: Sight, now: float, rules: Rules) -> Step:
    """One look."""
    if monitor.phase is Phase.QUIT:
        return monitor, ()
    if sight.bye is Bye.SETTLED or (monitor.phase is Phase.SPEAK and (sight.settled or now >= monitor.next_at)):
        return evolve(monitor, phase=Phase.QUIT), (Quit(),)
    if monitor.phase is Phase.SPEAK:
        return monitor, ()
    if sight.dead or sight.bye is Bye.UNSETTLED:
        return evolve(monitor, phase=Phase.SPEAK, next_at=now + rules.leave_s), (SayDead(),)
    if monitor.phase is Phase.KILL:
        due = now >= monitor.next_at
        return (evolve(monitor, next_at=now + LONGEST_PAUSE_S), (Kill(),)) if due else (monitor, ())
    if now >= _kill_at(monitor, sight, rules):
        return evolve(monitor, phase=Phase.KILL, next_at=now + rules.grace_s), (Terminate(),)
    return _watch(_noted(monitor, sight, now), sight, now, rules)


def woke(monitor: Monitor, sight: Sight, meant_at: float, now: float) -> Monitor:
    """It meant to look at `meant_at`, at the latest. If it has stood still since, the process has all its time again; once
    for each mark, or one that hangs would live on for as long as its host is slow."""
    if not stood_still(meant_at, now) or monitor.forgave == sight.stamp:
        return monitor
    return evolve(monitor, awake_since=now, forgave=sight.stamp)


def until(monitor: Monitor, sight: Sight, rules: Rules) -> float:
    """When to look again if nothing is heard before; what was just looked at is `sight`."""
    match monitor.phase:
        case Phase.QUIT:
            return math.inf
        case Phase.SPEAK if sight.settled:
            return 0.0
        case Phase.KILL | Phase.SPEAK:
            return monitor.next_at
        case Phase.WATCH:
            again_at = monitor.again_at if monitor.wish == sight.token else math.inf
            due = (_soft_at(monitor, sight, rules), _over_at(monitor, sight, rules), again_at)
            return min(_kill_at(monitor, sight, rules), _leave_at(monitor, rules), *due)
        case other:
            assert_never(other)


def _noted(monitor: Monitor, sight: Sight, now: float) -> Monitor:
    """Since when it has known what it sees."""
    over = sight.over and sight.guarded and sight.token
    since = monitor.over_since
    if over and (since is None or since[0] != sight.token):
        monitor = evolve(monitor, over_since=(sight.token, now))
    if sight.leaving and monitor.leaving_since is None:
        monitor = evolve(monitor, leaving_since=now)
    return monitor


def _watch(monitor: Monitor, sight: Sight, now: float, rules: Rules) -> Step:
    acts: list[Act] = []
    if now >= _leave_at(monitor, rules):
        monitor = evolve(monitor, left=True)
        acts.append(SayLeave())
    if now >= _soft_at(monitor, sight, rules):
        monitor = evolve(monitor, said=sight.token)
        acts.append(SayEnd(sight.round) if sight.active else SayLeave())
    if now >= _over_at(monitor, sight, rules):
        monitor = evolve(monitor, wish=sight.token, wished_at=now, tries=0, again_at=now)
    if sight.token and monitor.wish == sight.token and now >= monitor.again_at:
        pause = min(FIRST_PAUSE_S * 2.0**monitor.tries, LONGEST_PAUSE_S)
        monitor = evolve(monitor, tries=monitor.tries + 1, again_at=now + pause)
        acts.append(Wish(sight.token))
    return monitor, tuple(acts)


def _soft_at(monitor: Monitor, sight: Sight, rules: Rules) -> float:
    """When T would have ended the round; a leaving rank is charged with nothing."""
    asked = sight.wanted or sight.leaving or sight.over or monitor.said == sight.token
    if not sight.token or not sight.guarded or asked:
        return math.inf
    return max(sight.stamp, monitor.awake_since) + sight.soft_s + rules.patience_s


def _over_at(monitor: Monitor, sight: Sight, rules: Rules) -> float:
    """When the span under way is to be ended from here, its round being over: at once if that was said from here, else T has
    its time first. inf: not yet, or it was asked to."""
    since = monitor.over_since
    if since is None or since[0] != sight.token or monitor.wish == sight.token:
        return math.inf
    return since[1] if monitor.said == sight.token else since[1] + rules.patience_s


def _leave_at(monitor: Monitor, rules: Rules) -> float:
    if monitor.leaving_since is None or monitor.left:
        return math.inf
    return monitor.leaving_since + rules.leave_patience_s


def _kill_at(monitor: Monitor, sight: Sight, rules: Rules) -> float:
    awake_since, wished = monitor.awake_since, sight.token and monitor.wish == sight.token
    hard_at = max(sight.stamp, awake_since) + sight.hard_s if sight.token else math.inf
    mine_at = max(monitor.wished_at, awake_since) + rules.unwind_s if wished else math.inf
    return min(hard_at, mine_at, sight.unwind_at if sight.unwind_at >= awake_since else awake_since + rules.unwind_s)
