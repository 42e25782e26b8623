"""The laws of the worker group: what one step of it may do (G, F).

G4 and G6 say most: a failure in a running world ends the round, which waits only where the failure reads like an echo of a
peer's, for `ECHO_S` at most. A worker that raised has time to end by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..group import MOVES, Group, Phase
from ..group.state import (
    ECHO_S,
    KILL_S,
    SIGKILL,
    SIGTERM,
    SPARED_S,
    Beat,
    Cause,
    Check,
    Checked,
    Close,
    Command,
    Drain,
    Elapsed,
    End,
    Event,
    Exited,
    Join,
    Leave,
    MarkDone,
    Move,
    Noticed,
    Over,
    Raised,
    Ready,
    ReadyToLeave,
    Record,
    RecordUnfit,
    RecordUnstartable,
    Signal,
    Signalled,
    Start,
    StartAgain,
    Unstartable,
)
from ..world import Ending, Why
from .facts import Stepped
from .law import ARMED, Answers, law

if TYPE_CHECKING:
    from .judge import Judge


@law("a group moves", Stepped)
def G1(judge: Judge, it: Stepped) -> Answers:
    """The group moves by its table, workers start only into RUNNING, a drained group leaves when its round is over, and one
    that waits for a heartbeat, or tries once more, asks for one."""
    before, event, after, kinds = it.before, it.event, it.after, it.kinds
    if it.moves or Start in kinds:
        yield ARMED
    if it.moves and after.phase not in MOVES.get((before.phase, type(event)), ()):
        yield "not in the table"
    if before.deadline and isinstance(event, Over) and (before.phase, after.phase) == (Phase.RUNNING, Phase.STOPPING):
        yield "stops, and does not leave, though it is drained and its round is over"
    tries = it.moves or after.wait != before.wait
    if after.phase is Phase.HELD and tries and Beat not in kinds:
        yield "waits for a heartbeat that nobody asks for"
    if Start in kinds and (after.phase is not Phase.RUNNING or not after.running):
        yield "workers start outside RUNNING"
    if Move in kinds and before.phase is not Phase.MOVING:
        yield "workers move that wait for no world"


@law("a group joins", Stepped)
def G2(judge: Judge, it: Stepped) -> Answers:
    """No node joins with a worker alive, except into MOVING, and none that is drained, or knows the verdict."""
    after, kinds = it.after, it.kinds
    if Join in kinds:
        yield ARMED
    if (Join in kinds or Check in kinds) and after.running and after.phase is not Phase.MOVING:
        yield f"joins while workers {sorted(after.running)} live"
    if Join in kinds and after.deadline:
        yield "joins though it is drained"
    if Join in kinds and after.verdict:
        yield "joins a job that is over"


@law("a group with a check joins, or is checked again", Stepped)
def G7(judge: Judge, it: Stepped) -> Answers:
    """Only a group with a check is checked: it joins after a check that found its node fit, or after a round that no
    failure of its node ended, and is checked again only after a failure of its own."""
    kinds = it.kinds
    if not kinds & {Join, Check}:
        return
    if not it.before.settings.checks:
        if Check in kinds:
            yield "is checked, and has no check"
        return
    yield ARMED
    if Join in kinds and not _may_join(it.before, it.event):
        yield "joins without the word of its check"
    past = judge.past(it.after.node)
    is_due = past.asks_whose or not past.is_checked
    if is_due and Join in kinds:
        yield f"{it.after.node} joins, and no check has found it fit since a failure of its own"
    if not is_due and Check in kinds:
        yield f"{it.after.node} is checked again, and no failure of its own has ended a round"


def _may_join(before: Group, event: Event) -> bool:
    """Return True if a group with a check may join: the check found its node fit, or no failure of it ended the round."""
    match event:
        case Checked(is_fit):
            return is_fit
        case Over(by=by) if before.failures.cause is Cause.UNKNOWN:
            return by not in (None, before.node)
        case _:
            return before.failures.cause in (Cause.ELSEWHERE, Cause.OPEN) and before.phase is not Phase.CHECKING


@law("a round ends, or begins, around workers that restart alone", Stepped)
def G8(judge: Judge, it: Stepped) -> Answers:
    """Where workers restart alone, the end or the beginning of a round of their generation signals no living worker of a
    node that is not drained, and no worker lives on into another generation; elsewhere none lives on at all."""
    before, event, after = it.before, it.event, it.after
    if before.settings.alone is None:
        if after.phase is Phase.MOVING:
            yield "workers live on that restart with all others"
        return
    if isinstance(event, Over | Ready):
        yield ARMED
    if before.world is None or not before.running:
        return
    ended = isinstance(event, Over) and event.round == before.world.round and event.generation
    entered = before.phase is Phase.MOVING and isinstance(event, Ready) and event.world.generation
    stays = before.world.generation in (ended, entered)
    if stays and Signal in it.kinds and not (before.failures.on_the_way or before.deadline):
        yield "a change of nodes stops living workers"
    if not stays and (ended or entered) and after.phase in (Phase.RUNNING, Phase.MOVING):
        yield "workers live on though a round has failed since they started"


_ORDER: tuple[type[Command], ...] = (Record, RecordUnstartable, RecordUnfit, End, Close, Leave, Signal)
"""The order of commands: what other nodes must know comes before this node's workers are stopped."""


@law("workers are signalled", Stepped)
def G3(judge: Judge, it: Stepped) -> Answers:
    """What the others must know comes before the signal to the own workers, and no dead worker is signalled."""
    if len(it.commands) < 2 and Signal not in it.kinds:
        return
    ranked = [_ORDER.index(kind) for command in it.commands if (kind := type(command)) in _ORDER]
    if Signal in it.kinds:
        yield ARMED
    if ranked != sorted(ranked):
        yield "in the wrong order"
    if Signal in it.kinds and not it.before.running:
        yield "signals workers that are dead"


@law("a failure is recorded, or a success marked", Stepped)
def G4(judge: Judge, it: Stepped) -> Answers:
    """Success is marked only when all workers are gone, and a failure in a running world (not what a worker raises because
    it is stopped) ends the round, an echo (one more is a worker that began to end after one of its node) after 0.5 s,
    unless workers restart alone; there that of a worker does which is not started again and never entered a wrapped call; a
    drained node of which a worker was ready to leave marks none, and no node cancels the job after a success."""
    after, kinds = it.after, it.kinds
    if Record in kinds or MarkDone in kinds:
        yield ARMED
    yield from _of_ends(it)
    if isinstance(it.event, Raised) and it.commands and not _raises_by_itself(it.before, it.event):
        yield "takes what a worker raises because it is stopped for a failure"
    if _is_missed(it.before, it.event) and StartAgain not in kinds and not (End in kinds or after.failures.on_the_way):
        yield "a worker is missing that never entered a call, and no round ends for it"
    if MarkDone in kinds and after.running:
        yield f"done while workers {sorted(after.running)} live"
    if Close(Ending.CANCELLED, Why.ASKED) in it.commands and it.before.course.succeeded:
        yield "cancels a job in which a worker has succeeded"
    if MarkDone in kinds and after.deadline and after.course.ready and after.settings.alone is None:
        yield f"done though workers {sorted(after.course.ready)} were ready to leave, and had work left"


def _of_ends(it: Stepped) -> Iterator[str]:
    """Yield what is wrong with the end of the round by this step, or without it."""
    before, event = it.before, it.event
    end = next((command for command in it.commands if isinstance(command, End)), None)
    waits = before.phase is Phase.STOPPING and before.failures.echo_at is not None
    if end is None and Record in it.kinds and _must_end(before, event, waits):
        yield "a failure that ends no round"
    if end and waits and isinstance(event, Elapsed) is not bool(end.is_open):
        yield "does not know if the cause is open"
    if end is not None and (_echoes(before, event) or (end.is_open and not waits)):
        yield "ends the round before others that failed are heard"
    since = before.stop.at if waits else None
    is_late = since is not None and isinstance(event, Elapsed) and event.at >= since + ECHO_S
    if is_late and end is None and Signal not in it.kinds:
        yield "an echo that ends no round"


def _raises_by_itself(before: Group, event: Raised) -> bool:
    """Return True if the worker raised before this node stopped it."""
    return before.stop.at is None or event.raised_at <= before.stop.at


def _echoes(before: Group, event: Event) -> bool:
    """Return True if this failure is held for an echo of a peer's, in a world that has others."""
    if before.settings.alone is not None or before.world is None:
        return False
    return _reads_like_echo(before, event) and sum(each.local_world_size for each in before.world.profiles) > 1


def _reads_like_echo(before: Group, event: Event) -> bool:
    """Return True if this failure reads like an echo. Of a worker that began to end its time decides: it is one more echo if
    it began after the first one of its node."""
    if isinstance(event, Exited) and event.began_at is not None:
        echo_at = before.failures.echo_at
        return echo_at is not None and event.began_at > echo_at
    return isinstance(event, Exited | Raised) and bool(event.is_echo)


def _must_end(before: Group, event: Event, waits: bool) -> bool:
    """Return True if a failure that this event brings ends the round at once."""
    runs = before.phase is Phase.RUNNING and before.settings.alone is None
    completes = isinstance(event, Exited) and event.local_rank in before.failures.raised
    return (runs or waits) and not completes and not _reads_like_echo(before, event)


def _is_missed(before: Group, event: Event) -> bool:
    """Return True if a worker failed that other ranks wait for: it has never entered a wrapped call."""
    alone, runs = before.settings.alone, before.phase in (Phase.RUNNING, Phase.MOVING)
    if alone is None or not runs or not isinstance(event, Exited) or event.entered is not False:
        return False
    return event.code != 0 and event.code not in alone.final


@law("a group has ended", Stepped)
def G5(judge: Judge, it: Stepped) -> Answers:
    """ENDED is final, and nothing lives then."""
    if it.after.phase is Phase.ENDED:
        yield ARMED
        if it.after.running:
            yield f"ended while workers {sorted(it.after.running)} live"
    if it.before.phase is Phase.ENDED and (it.commands or it.after != it.before):
        yield "after the end"


@law("a group stops, leaves or is signalled", Stepped)
def G6(judge: Judge, it: Stepped) -> Answers:
    """A group that stops or leaves has a timer, unless the register is to say if it leaves, and heeds every signal; it kills
    its workers only when they have had their grace, at the fence, 1 s before its node must be gone, or at a second signal,
    and gives them no more than that, nor once more; a worker that raised has 2 s to end by itself."""
    before, event, after, commands = it.before, it.event, it.after, it.commands
    if after.phase in (Phase.STOPPING, Phase.LEAVING) or isinstance(event, Signalled):
        yield ARMED
    if stopped := [each for each in commands if isinstance(each, Signal) and _hits(each, it)]:
        yield f"sends {stopped} to workers that raised before they had time to end"
    if isinstance(event, Signalled) and after.phase not in (Phase.LEAVING, Phase.ENDED):
        yield "a signal that is not heeded"
    kills = [command for command in commands if isinstance(command, Signal) and command.signum == SIGKILL]
    if (
        isinstance(event, Signalled)
        and before.phase is Phase.LEAVING
        and before.running
        and Signal(SIGKILL) not in commands
    ):
        yield "a second signal that does not kill"
    if not all(_may_kill(before, event, before.running - (each.spared or frozenset())) for each in kills):
        yield "kills workers that have time left"
    kill_at = after.stop.kill_at
    raised = isinstance(event, Raised) and after.phase in _AT_WORK and kill_at != before.stop.kill_at
    if raised and kill_at is not None and kill_at < event.at + after.settings.grace:
        yield "gives a worker that raised less than its grace"
    if after.phase in (Phase.STOPPING, Phase.LEAVING) and _outlasts(after):
        yield "gives its workers more than their grace"
    if after.running and _oversleeps(after):
        yield "looks at its workers later than they are to be signalled"
    if before.phase in (Phase.STOPPING, Phase.LEAVING) and before.running and _begins_anew(it):
        yield "begins to stop its workers once more"
    asks = before.until is None if before.phase is Phase.LEAVING else isinstance(event, Unstartable)
    if after.phase is Phase.LEAVING and not (_is_shown(after) or asks) and after.until is None:
        yield "leaves without end"
    stops = after.phase is Phase.STOPPING and before.phase is not Phase.STOPPING
    if stops and after.running and after.until is None and Signal(SIGKILL) not in commands:
        yield "stops without end"


def _is_shown(group: Group) -> bool:
    """Return True if the register shows that this node has left, or is no longer waited for."""
    return group.departure is not None and group.departure.is_shown


def _hits(signal: Signal, it: Stepped) -> bool:
    """Return True if this asks a worker that raised to end, too early."""
    hit = (it.after.failures.raised & it.after.running) - (signal.spared or frozenset())
    return signal.signum == SIGTERM and not signal.children and bool(hit) and not _may_ask(it.before, it.event)


def _may_ask(before: Group, event: Event) -> bool:
    """Return True if workers that raised may be sent SIGTERM: they had their time, or the node is to leave."""
    if before.deadline or isinstance(event, Signalled | Noticed | ReadyToLeave):
        return True
    if not isinstance(event, Elapsed):
        return False
    if before.phase in (Phase.RUNNING, Phase.MOVING):  # they restart alone: each has its time since it raised
        return before.stop.ask_at is not None and event.at >= before.stop.ask_at
    others = before.running - before.failures.raised - before.failures.ending
    return before.stop.at is not None and event.at >= before.stop.at + SPARED_S and not others


_AT_WORK = (Phase.RUNNING, Phase.MOVING)
"""In these phases a worker that raised has a grace of its own, where workers restart alone."""


def _may_kill(before: Group, event: Event, those: frozenset[int]) -> bool:
    """Return True if a second signal came, those workers have had their grace, the fence falls or the node must be gone."""
    if not isinstance(event, Elapsed):
        return isinstance(event, Signalled) and before.phase is Phase.LEAVING
    ends = (
        (before.stop.at, _grace(before)),
        (before.stop.kill_at if before.phase in _AT_WORK and those <= before.failures.raised else None, 0.0),
        (before.fence_at, 0.0),
        (before.deadline.gone_by if before.deadline else None, -KILL_S),
    )
    return any(since is not None and event.at >= since + span for since, span in ends)


def _grace(group: Group) -> float:
    """Return how long the workers of a group that stops or leaves may take to end."""
    is_told = group.phase is Phase.LEAVING and not group.is_drained
    return group.settings.shutdown_timeout if is_told else group.settings.grace


def _outlasts(group: Group) -> bool:
    """Return True if the workers of this group, which are told to end, are killed later than they must have ended."""
    stop = group.stop
    return stop.kill_at is not None and stop.at is not None and stop.kill_at > stop.at + _grace(group)


def _oversleeps(group: Group) -> bool:
    """Return True if the timer of this group is later than the next signal that is due for workers of its own. (Those that
    are spared at a stop get theirs when the others are gone.)"""
    due = (group.stop.kill_at, group.stop.ask_at if group.phase in _AT_WORK else None)
    return any(at is not None and (group.until is None or group.until > at) for at in due)


def _begins_anew(it: Stepped) -> bool:
    """Return True if workers that are being stopped have a new grace without a signal from outside."""
    began_at = it.before.stop.at
    return began_at is not None and it.after.stop.at != began_at and not isinstance(it.event, Signalled)


@law("workers are being stopped", Stepped)
def G13(judge: Judge, it: Stepped) -> Answers:
    """Workers that are stopped are asked to end once, and what they started hears of it 1 s before they are killed, if they
    have longer than that; at the fence they are killed; and a node that has left waits for the register no more."""
    before, event, after = it.before, it.event, it.after
    if after.phase in _ENDS and after.running:
        yield ARMED
    if fences(before, event, after) and Signal(SIGKILL) not in it.commands:
        yield "does not kill its workers at the fence"
    if before.phase in _ENDS and isinstance(event, Elapsed) and any(_asks_again(before, each) for each in it.commands):
        yield "asks workers to end that were asked before"
    if after.running and any(after.until is None or after.until > due for due in _dues(after)):
        yield "looks at its workers too late for the fence, or for what they started"
    if before.phase is after.phase is Phase.LEAVING and _is_shown(before) and not _is_shown(after):
        yield "forgets that it has left"


_ENDS = (Phase.STOPPING, Phase.LEAVING)


def _asks_again(before: Group, command: Command) -> bool:
    """Return True if this asks workers to end that were not spared when the others were."""
    if not isinstance(command, Signal) or command.signum != SIGTERM or command.children:
        return False
    return bool(before.running - (command.spared or frozenset()) - before.spared)


def _dues(group: Group) -> Iterator[float]:
    """Yield when the workers of this group are to be killed for the fence, and when what they started is to hear of it."""
    stop, fence_at = group.stop, group.fence_at
    if fence_at is not None and (group.phase in _AT_WORK or stop.kill_at is not None):
        yield fence_at
    if stop.spares_children and stop.kill_at is not None:
        yield min(stop.kill_at, stop.kill_at if fence_at is None else fence_at) - KILL_S


@law("a node is given notice", Stepped)
def G12(judge: Judge, it: Stepped) -> Answers:
    """A node tells the register of no notice that the register has told it, and puts on record once that a notice finds it
    unfit."""
    event, known = it.event, it.before.deadline
    if not isinstance(event, Noticed):
        return
    yield ARMED
    if event.known and Drain in it.kinds:
        yield "tells the register of the notice that it has told"
    if RecordUnfit in it.kinds and known and known.unfit:
        yield "puts on record again that it is unfit"


@law("a group sets out for a world, or runs workers from now on", Stepped)
def G10(judge: Judge, it: Stepped) -> Answers:
    """On its way into a world a group without workers remembers no world, no success and no timer of a stop, and workers
    that begin a world were sent no signal, and have all their restarts."""
    after = it.after
    if after.phase is Phase.RUNNING and it.moves:
        yield ARMED
        if after.stop.at is not None:
            yield f"runs workers that were stopped at {after.stop.at:g}"
        if after.course.restarted:
            yield f"begins a world with {after.course.restarted} restarts"
    if after.phase in (Phase.JOINING, Phase.CHECKING) and it.moves:
        yield ARMED
        of_old = after.world, after.course.done_at, after.stop.kill_at
        if after.running or of_old != (None, None, None):
            yield f"sets out with {of_old}, and workers {sorted(after.running)}"


@law("a worker starts again alone, or workers start where some were ready to leave", Stepped)
def G11(judge: Judge, it: Stepped) -> Answers:
    """A worker that starts is not ready to leave, whatever the one before it said."""
    if StartAgain in it.kinds or (Start in it.kinds and it.before.course.ready):
        yield ARMED
        if others := it.after.course.ready - judge.past(it.after.node).ready:
            yield f"workers {sorted(others)} are ready to leave as they start"


@law("workers start with the fence on", Stepped)
def F1(judge: Judge, it: Stepped) -> Answers:
    """No worker starts less than a quarter of the TTL before its node would be fenced."""
    fence_at = it.after.fence_at
    if Start in it.kinds and fence_at is not None:
        yield ARMED
        if fence_at - it.at < it.after.settings.ttl / 4:
            yield f"started at {it.at:g}, to be fenced at {fence_at:g}"


@law("workers start with the fence on", Stepped)
def F2(judge: Judge, it: Stepped) -> Answers:
    """With the fence on no worker starts whose node was unheard for longer than the fence, up to a TTL before it was told of
    its world or since, or was told of it longer ago than the fence."""
    settings, gap = it.after.settings, it.after.heart.heard_again_at
    if Start not in it.kinds or settings.fence is None:
        return
    yield ARMED
    told_at = judge.past(it.after.node).ready_at
    if gap is not None and gap > told_at - settings.ttl:
        yield f"workers start at {it.at:g}, though their node was unheard until {gap:g}"
    if it.at - told_at > settings.fence:
        yield f"workers start at {it.at:g} in a world that their node was told of at {told_at:g}"


def fences(before: Group, event: Event, after: Group) -> bool:
    """Return True if this node stops its workers in this step because no heartbeat was acknowledged."""
    runs = before.phase in (Phase.RUNNING, Phase.MOVING)
    stops = runs and after.phase is Phase.STOPPING and isinstance(event, Elapsed)
    return stops and before.fence_at is not None and event.at >= before.fence_at
