"""The decisions of the monitor process: a pure function of what it sees, what it has done, and the time.

The monitor stands beside one wrapped process and sees its page, its death and the register. While the driver of that process
is at work, the monitor does nothing. It acts where the driver has not acted in time: on a hang that holds the interpreter's
lock, on a process that stands still, on a death. It may ask for a thing twice, and the driver may have asked for it too. So
an end names its round, and a `Want` names its span.

All times and spans are in seconds, on the monotonic clock of one host.
"""

from __future__ import annotations

import math
from enum import Enum, IntEnum
from typing import TypeAlias, assert_never

from ..backoff import pause_s
from ..values import evolve, frozen
from .progress_limits import stood_still
from .settings import Settings
from .state import FIRST_PAUSE_S, LONGEST_PAUSE_S, Call


@frozen
class Rules:
    """How long the monitor waits for the driver, and for others."""

    patience_s: float = 0.02
    """How long a driver that is due may take to act."""
    leave_patience_s: float = 1.0
    """The same for a leave, which takes the store some time."""
    unwind_s: float = 30.0
    """From a `Want` of the monitor's own to the end of that span."""
    grace_s: float = 5.0
    """From SIGTERM to SIGKILL."""
    leave_s: float = 5.0
    """How long the monitor tries to tell the register."""
    replace_s: float = 0.0
    """How long the seat of a process that was killed is kept for the process that replaces it."""


def rules_of(settings: Settings) -> Rules:
    """Return the rules of the monitor beside a call with these settings."""
    return Rules(
        unwind_s=settings.unwind_timeout,
        grace_s=settings.termination_grace_time,
        leave_s=settings.leave_timeout,
        replace_s=settings.replace_wait,
    )


class Bye(IntEnum):
    """How the wrapped call ended, as its process says."""

    NOT_YET = 0
    SETTLED = 1
    """The register knows: this rank has left, or the job is closed."""
    UNSETTLED = 2
    """The register may still count on this rank."""
    REPLACED = 3
    """The launcher replaces this process once it has ended: its seat is kept."""


def bye(call: Call) -> Bye:
    """Return what the process of this call says of its end."""
    if call.outcome is None:
        return Bye.NOT_YET
    if call.left or call.verdict:
        return Bye.SETTLED
    return Bye.REPLACED if call.replaced else Bye.UNSETTLED


@frozen
class Sight:
    """What one look shows. A token of 0 means that no user code runs. Limits are spans from `stamp`; inf means none."""

    token: int = 0
    round: int = 0
    guarded: bool = False
    """The span is one whose progress counts: initialize or the function."""
    active: bool = True
    stamp: float = 0.0
    soft_s: float = math.inf
    hard_s: float = math.inf
    wanted: bool = False
    """The driver has asked for the end of that span."""
    leaving: bool = False
    replaced: bool = False
    """It leaves, and the launcher replaces its process."""
    bye: Bye = Bye.NOT_YET
    unwind_at: float = math.inf
    """The driver's own limit. A time in the past means that the driver wants the process killed now."""
    dead: bool = False
    """The process has died. A zombie counts as dead."""
    over: bool = False
    """The register shows that this round, or the job, is over."""
    settled: bool = False
    """The register no longer counts on this rank."""


class Phase(Enum):
    WATCH = "watch"
    KILL = "kill"
    """The process is past help and must be killed."""
    SPEAK = "speak"
    """The process no longer speaks, so the monitor tells the register."""
    QUIT = "quit"


@frozen
class Monitor:
    """What the monitor has done so far."""

    phase: Phase = Phase.WATCH
    over_since: tuple[int, float] | None = None
    """A span's token, and since when the monitor has seen that the round of this span is over. A store that forgot may show
    that, and then the round's own world again."""
    leaving_since: float | None = None
    bye_since: float | None = None
    """Since when the monitor has seen that the call of a process that is to be replaced is over."""
    said: int = 0
    """The last span for which the monitor ended the round or left."""
    left: bool = False
    want: int = 0
    """The span that the monitor wants to end."""
    wanted_at: float = math.inf
    tries: int = 0
    again_at: float = math.inf
    next_at: float = math.inf
    """In KILL: when the next signal is due. In SPEAK: when the monitor gives up."""
    awake_since: float = -math.inf
    """When the monitor last woke after it had stood still."""
    forgave: float | None = None
    """The last mark of progress that the process had left by then."""
    seen: int | None = None
    """The span that the last look showed; None before the first look."""
    unwind_at: float = math.inf
    """The driver's own limit that the last look showed."""


@frozen
class Want:
    """Write at the gate that this span must end, and send the signal."""

    token: int


@frozen
class SayEnd:
    """Tell the register that this rank has failed in this round. The failure goes on record first."""

    round: int


@frozen
class SayLeave:
    """Tell the register that this rank leaves."""


@frozen
class SayDead:
    """Tell the register that this rank is dead, whatever its heartbeats say."""

    replace_s: float = 0.0
    """How long its seat is kept for the process that replaces it."""
    failed: bool = False
    """It died in the middle of its call: that is a failure, and goes on record first. Its peers may have failed since, and
    their records are echoes of this one."""


@frozen
class Terminate:
    """Send SIGTERM, then SIGCONT: a stopped process gets the first only when it goes on."""


@frozen
class Kill:
    """Send SIGKILL."""


@frozen
class Quit:
    """End the monitor: nothing is left to do."""


Act: TypeAlias = Want | SayEnd | SayLeave | SayDead | Terminate | Kill | Quit
Step: TypeAlias = tuple[Monitor, tuple[Act, ...]]


def step(monitor: Monitor, sight: Sight, now: float, rules: Rules) -> Step:
    """Return the monitor after this look, and what it must do."""
    if monitor.phase is Phase.QUIT:
        return monitor, ()
    if sight.bye is Bye.SETTLED or (monitor.phase is Phase.SPEAK and (sight.settled or now >= monitor.next_at)):
        return evolve(monitor, phase=Phase.QUIT), (Quit(),)
    if monitor.phase is Phase.SPEAK:
        return monitor, ()
    if sight.dead or sight.bye is Bye.UNSETTLED or now >= _awaited_until(monitor, rules):
        replace_s = _replace_s(sight, rules)
        return evolve(monitor, phase=Phase.SPEAK, next_at=now + replace_s + rules.leave_s), (
            SayDead(replace_s, _has_failed(sight)),
        )
    if monitor.phase is Phase.KILL:
        due = now >= monitor.next_at
        return (evolve(monitor, next_at=now + LONGEST_PAUSE_S), (Kill(),)) if due else (monitor, ())
    if now >= _kill_at(monitor, sight, rules):
        return evolve(monitor, phase=Phase.KILL, next_at=now + rules.grace_s), (Terminate(),)
    return _watch(_noted(monitor, sight, now), sight, now, rules)


def woke(monitor: Monitor, sight: Sight, meant_at: float, now: float) -> Monitor:
    """Return the monitor as it looks again, after it meant to look by `meant_at`.

    If it has stood still since then, the process has all its time again. That happens once for each mark of progress, or a
    process that hangs would live on for as long as its host is slow. A standstill that was over when the mark came does not
    count. A span's beginning calls the monitor, and so does the driver's own limit. So one that looks long after a span
    began, or after that limit, for the first time since, has stood still too. Or it was started in the place of one that
    died, and does not know if the host stood still before: a pause of its own time is still to be forgiven.
    """
    is_new = monitor.seen is None
    began = sight.token not in (0, monitor.seen)
    asked = sight.unwind_at != monitor.unwind_at
    late = stood_still(meant_at, now) or (began and stood_still(sight.stamp, now))
    late = late or (asked and stood_still(sight.unwind_at, now))
    if asked or monitor.seen != sight.token:
        monitor = evolve(monitor, seen=sight.token, unwind_at=sight.unwind_at)
    if not late or monitor.forgave == sight.stamp:
        return monitor
    counts = not is_new and stood_still(sight.stamp, now)
    return evolve(monitor, awake_since=now, forgave=sight.stamp if counts else None)


def until(monitor: Monitor, sight: Sight, rules: Rules) -> float:
    """Return when to look again if nothing happens before. `sight` is what the last look showed."""
    match monitor.phase:
        case Phase.QUIT:
            return math.inf
        case Phase.SPEAK if sight.settled:
            return 0.0
        case Phase.KILL | Phase.SPEAK:
            return monitor.next_at
        case Phase.WATCH:
            again_at = monitor.again_at if monitor.want == sight.token else math.inf
            due = (_soft_at(monitor, sight, rules), _over_at(monitor, sight, rules), again_at)
            gone = _leave_at(monitor, rules), _awaited_until(monitor, rules)
            return min(_kill_at(monitor, sight, rules), *gone, *due)
        case other:
            assert_never(other)


def _replace_s(sight: Sight, rules: Rules) -> float:
    """Return how long the seat is kept. A rank that leaves for good is not waited for, nor one whose process lives."""
    return rules.replace_s if _has_failed(sight) or (sight.dead and sight.replaced) else 0.0


def _has_failed(sight: Sight) -> bool:
    """Return True if the process died in the middle of its call."""
    return sight.dead and not sight.leaving and sight.bye is Bye.NOT_YET


def _awaited_until(monitor: Monitor, rules: Rules) -> float:
    """Return how long the monitor waits for the end of a process that is to be replaced. A program may go on after its
    call."""
    return math.inf if monitor.bye_since is None else monitor.bye_since + rules.leave_s


def _noted(monitor: Monitor, sight: Sight, now: float) -> Monitor:
    """Return the monitor with the time since which it has known what it sees."""
    over = sight.over and sight.guarded and sight.token
    since = monitor.over_since if over else None
    if over and (since is None or since[0] != sight.token):
        since = sight.token, now
    if since is not monitor.over_since:
        monitor = evolve(monitor, over_since=since)
    if sight.leaving and not sight.replaced and monitor.leaving_since is None:
        monitor = evolve(monitor, leaving_since=now)
    if sight.bye is Bye.REPLACED and monitor.bye_since is None:
        monitor = evolve(monitor, bye_since=now)
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
        monitor = evolve(monitor, want=sight.token, wanted_at=now, tries=0, again_at=now)
    if sight.token and monitor.want == sight.token and now >= monitor.again_at:
        pause = pause_s(monitor.tries + 1, FIRST_PAUSE_S, LONGEST_PAUSE_S)
        monitor = evolve(monitor, tries=monitor.tries + 1, again_at=now + pause)
        acts.append(Want(sight.token))
    return monitor, tuple(acts)


def _soft_at(monitor: Monitor, sight: Sight, rules: Rules) -> float:
    """Return when the driver should have ended the round. A leaving rank is charged with nothing."""
    asked = sight.wanted or sight.leaving or sight.over or monitor.said == sight.token
    if not sight.token or not sight.guarded or asked:
        return math.inf
    return max(sight.stamp, monitor.awake_since) + sight.soft_s + rules.patience_s


def _over_at(monitor: Monitor, sight: Sight, rules: Rules) -> float:
    """Return when the monitor must end the present span, because its round is over; inf: not yet, or it already did.

    That is at once if the monitor itself ended the round. Else the driver has its time first.
    """
    since = monitor.over_since
    if since is None or monitor.want == sight.token:
        return math.inf
    return since[1] if monitor.said == sight.token else since[1] + rules.patience_s


def _leave_at(monitor: Monitor, rules: Rules) -> float:
    if monitor.leaving_since is None or monitor.left:
        return math.inf
    return monitor.leaving_since + rules.leave_patience_s


def _kill_at(monitor: Monitor, sight: Sight, rules: Rules) -> float:
    awake_since, wanted = monitor.awake_since, sight.token and monitor.want == sight.token
    hard_at = max(sight.stamp, awake_since) + sight.hard_s if sight.token else math.inf
    mine_at = max(monitor.wanted_at, awake_since) + rules.unwind_s if wanted else math.inf
    return min(hard_at, mine_at, sight.unwind_at if sight.unwind_at >= awake_since else awake_since + rules.unwind_s)
