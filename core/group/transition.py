"""The next step of a worker group: `transition(group, event) -> (group, commands)`.

The function is pure and total: every event is legal in every phase, and one without a meaning there changes nothing. The
order of the commands is part of the rule. The failure record is written before the round ends. The other nodes hear of the
end while this node still stops its workers. A node joins only when none of its workers lives. Only the register says that
the job has succeeded.
"""

from __future__ import annotations

from typing import Any, assert_never

from ..values import evolve
from ..world import Ending, Generation, Node, Origin, Why, World
from .state import (
    KILL_S,
    LATE_S,
    SIGKILL,
    SIGTERM,
    SPARED_S,
    Alone,
    Beat,
    Beaten,
    Cause,
    Check,
    Checked,
    Close,
    Closed,
    Command,
    Course,
    Deadline,
    Departure,
    Drain,
    Elapsed,
    End,
    Event,
    Exited,
    Exiting,
    Failures,
    Gone,
    Group,
    Heart,
    Join,
    Leave,
    LeaveReason,
    MarkDone,
    Move,
    Noticed,
    Over,
    Phase,
    Raised,
    Ready,
    ReadyToLeave,
    Reaped,
    Record,
    RecordUnfit,
    RecordUnstartable,
    Refused,
    Signal,
    Signalled,
    Start,
    StartAgain,
    Stop,
    Tell,
    Unstartable,
    Wait,
)

Step = tuple[Group, tuple[Command, ...]]


def begin(group: Group, at: float) -> Step:
    """Return the first step of a new agent. Before it, no node can have missed a heartbeat of this one."""
    group = evolve(group, heart=Heart(at))
    return _check(group) if group.settings.checks else (group, (Join(),))


def transition(group: Group, event: Event) -> Step:
    """Return the group after this event, and the commands in their order."""
    if isinstance(event, Raised) and not _counts(group, event):
        return group, ()
    if isinstance(event, Noticed) and event.unfit and group.phase is not Phase.ENDED:
        return _found_unfit(group, event)
    group = _noted(group, event)
    if isinstance(event, Beaten) and group.phase is not Phase.HELD:
        return group, ()  # by far the most; only a group that is HELD waits for one
    match group.phase:
        case Phase.CHECKING:
            return _checking(group, event)
        case Phase.JOINING:
            return _joining(group, event)
        case Phase.HELD:
            return _held(group, event)
        case Phase.RUNNING:
            return _running(group, event)
        case Phase.MOVING:
            return _moving(group, event)
        case Phase.STOPPING:
            return _stopping(group, event)
        case Phase.BARRIER:
            return _barrier(group, event)
        case Phase.LEAVING:
            return _leaving(group, event)
        case Phase.ENDED:
            return group, ()
        case other:
            assert_never(other)


def _found_unfit(group: Group, event: Noticed) -> Step:
    """Drain this node, and put on record why it is unfit, once."""
    was, reason = group.deadline, event.notice.source
    after, commands = transition(group, evolve(event, unfit=None))
    if was is not None and was.unfit:
        return after, commands
    assert after.deadline
    return evolve(after, deadline=evolve(after.deadline, unfit=reason)), (RecordUnfit(reason), *commands)


def _noted(group: Group, event: Event) -> Group:
    """Return the group with what it remembers of this event in every phase but the last."""
    match event:
        case _ if group.phase is Phase.ENDED:
            return group
        case Beaten(sent_at, at):
            last = sent_at if group.heart.acked_at is None else group.heart.acked_at
            heard_again_at = at if _is_stale(group, sent_at - last) else group.heart.heard_again_at
            return evolve(group, heart=Heart(max(sent_at, last), heard_again_at))
        case Closed(verdict):
            return evolve(group, verdict=group.verdict or verdict)
        case Refused():
            return evolve(group, refused=group.refused or event)
        case Ready() | Over() if group.joins and group.phase is not Phase.JOINING:
            return evolve(group, joins=False)
        case Exited(local_rank):
            return _without(group, local_rank)
        case Raised(local_rank):
            return _reported(group, raised=group.failures.raised | {local_rank})
        case Exiting(local_rank):
            return _reported(group, ending=group.failures.ending | {local_rank})
        case Reaped():
            return evolve(group, running=frozenset())
        case Noticed(notice, at) if group.deadline is None or at + notice.deadline_s < group.deadline.gone_by:
            unfit = group.deadline.unfit if group.deadline else ""
            return evolve(group, deadline=Deadline(notice, at + notice.deadline_s, unfit))
        case ReadyToLeave(local_rank):
            return _advanced(group, ready=group.course.ready | {local_rank})
        case _:
            return group


def _reported(group: Group, **changes: Any) -> Group:
    """Return the group with these changes to what is known of its workers' failures."""
    return evolve(group, failures=evolve(group.failures, **changes))


def _advanced(group: Group, **changes: Any) -> Group:
    """Return the group with these changes to the course of its workers."""
    return evolve(group, course=evolve(group.course, **changes))


def _due(group: Group, **changes: Any) -> Group:
    """Return the group with these changes to its stop, which goes on: to its times, and to whom it spares."""
    return evolve(group, stop=evolve(group.stop, **changes))


def _without(group: Group, local_rank: int) -> Group:
    """Return the group without this worker. While the others run, no signal is due when none that raised is left."""
    left = evolve(group, running=group.running - {local_rank})
    runs = group.phase in (Phase.RUNNING, Phase.MOVING)
    return evolve(left, stop=Stop()) if runs and not left.failures.raised & left.running else left


def _counts(group: Group, event: Raised) -> bool:
    """Return True if this is news: a worker that lives raised for the first time, and not because this node stops it."""
    lives = event.local_rank in group.running - group.failures.raised
    return lives and group.phase in _WORKING and _by_itself(group, event.raised_at)


_WORKING = (Phase.RUNNING, Phase.MOVING, Phase.STOPPING)


def _checking(group: Group, event: Event) -> Step:
    """Wait for the check; before it, after a failure here, for the register's word on where the first failure was."""
    match event:
        case Over(by=by) if group.failures.cause is Cause.UNKNOWN:
            return _join_again(_told(group, by))
        case Checked(is_fit=True):
            return evolve(group, phase=Phase.JOINING), (Join(),)
        case Checked(text=text, at=at):
            return _unfit(group, text, at, at + group.settings.leave_timeout), (RecordUnfit(text), Leave())
        case _:
            return _idle(group, event)


def _unfit(group: Group, text: str, at: float, leave_by: float | None = None) -> Group:
    """Return the group of a node that stays out, and says why if the job goes on."""
    departure, refused = Departure(LeaveReason.UNFIT, leave_by), group.refused or Refused(Why.UNFIT, text, at)
    return evolve(group, phase=Phase.LEAVING, departure=departure, refused=refused)


def _stay_out(group: Group, event: Unstartable) -> Step:
    """Let the job go on without this node, or end if it cannot: the register tells which, and nothing else ends the wait."""
    out = evolve(_unfit(group, event.text, event.at), running=frozenset(), joins=False, stop=Stop(group.stop.at))
    return out, (RecordUnfit(event.text), Close(Ending.FAILED, Why.CANNOT_START))


def _join_again(group: Group) -> Step:
    """Join the next world; a node on which a worker failed first is checked before."""
    group = evolve(group, world=None, stop=Stop(group.stop.at))
    match group.failures.cause:
        case Cause.ELSEWHERE | Cause.OPEN:
            joining = evolve(_reported(group, cause=Cause.ELSEWHERE), phase=Phase.JOINING)
            return joining, () if group.joins else (Join(),)
        case Cause.UNKNOWN:
            return evolve(group, phase=Phase.CHECKING), ()
        case Cause.HERE:
            return _check(group)
        case other:
            assert_never(other)


def _told(group: Group, by: Node | None) -> Group:
    """Return the group that was told whose write ended the round; None: the register tells that no longer."""
    return _reported(group, cause=Cause.HERE if by in (group.node, None) else Cause.ELSEWHERE)


def _check(group: Group) -> Step:
    return evolve(_reported(group, cause=Cause.ELSEWHERE), phase=Phase.CHECKING), (Check(),)


def _joining(group: Group, event: Event) -> Step:
    match event:
        case Ready(world, at):
            wait = Wait(at, at + group.settings.start_timeout)
            return evolve(group, phase=Phase.HELD, world=world, wait=wait, joins=False), (Beat(),)
        case Over() if group.joins:  # that join was for workers that lived then: it comes to nothing
            return evolve(group, joins=False), (Join(),)
        case Unstartable():
            return _stay_out(group, event)
        case _:
            return _idle(group, event)


def _held(group: Group, event: Event) -> Step:
    """Start at a fresh heartbeat, unless this node may be missing from the world that stands.

    After a silence longer than the fence, the other nodes may hold this node for dead, and a write that evicts it may be
    under way. A node that heard of its world longer ago than the fence may have no seat in the next one. So it joins again
    instead. That ends the round, if the round still stands, and voids the eviction.

    When the wait has lasted for too long, the node tries once more: it may have slept through it.
    """
    match event:
        case Beaten(sent_at, at) if group.world and at - sent_at <= group.settings.fresh:
            if _may_be_missing(group, at):
                heart = evolve(group.heart, heard_again_at=None)
                return evolve(group, phase=Phase.JOINING, world=None, heart=heart), (Join(),)
            return _start(group, group.world)
        case Over(round) if _is_mine(group, round):
            return evolve(group, phase=Phase.JOINING, world=None), (Join(),)
        case Elapsed(at) if group.wait and at >= group.wait.until and not group.wait.is_last_try:
            wait = evolve(group.wait, until=at + group.settings.ttl, is_last_try=True)
            return evolve(group, wait=wait), (Beat(),)
        case Elapsed(at) if group.wait and at >= group.wait.until:
            silent = Refused(Why.UNCONFIRMED, "no heartbeat was acknowledged", at)
            return _ended(evolve(group, refused=group.refused or silent))
        case _:
            return _idle(group, event)


def _idle(group: Group, event: Event) -> Step:
    """Answer what ends the wait for a world, while this node has no workers."""
    match event:
        case Closed() | Refused():
            return _ended(group)
        case Signalled():
            return _leave(group, event)
        case Noticed(at=at):
            return _go(group, at)
        case _:
            return group, ()


def _may_be_missing(group: Group, at: float) -> bool:
    """Return True if this node may be missing from the world that stands.

    The others may hold it for dead by what they saw up to a TTL before this node heard of its world.
    """
    told_at = group.wait.since if group.wait else at
    heard_again_at = group.heart.heard_again_at
    heard_again = heard_again_at is not None and heard_again_at > told_at - group.settings.ttl
    return heard_again or _is_stale(group, at - told_at)


def _is_stale(group: Group, age: float) -> bool:
    return group.settings.fence is not None and age > group.settings.fence


def _start(group: Group, world: World) -> Step:
    size = world.profiles[world.nodes.index(group.node)].local_world_size
    fresh = evolve(group, course=Course(), failures=Failures(), stop=Stop())
    return evolve(fresh, phase=Phase.RUNNING, running=frozenset(range(size))), (Start(world),)


def _running(group: Group, event: Event) -> Step:
    match event:
        case Exited() if not _fails(group, event) and group.deadline and group.course.ready:
            return _go_if_ready(group, event.at)
        case Exited() if not _fails(group, event):
            succeeded = _advanced(group, succeeded=True) if group.settings.alone else group
            return (succeeded, ()) if group.running else _done(succeeded, event.at)
        case Exited(code=code) if (alone := group.settings.alone) and code not in alone.job_over:
            return _failed_alone(group, alone, event)
        case Raised() if group.settings.alone:
            return _raised_alone(group, event)
        case Exited(at=at) | Raised(at=at) if _is_echo(group, event):
            recorded = _record(group, event)
            return _stop(_reported(group, echo_at=recorded.died_at), at, recorded)
        case Exited(at=at) | Raised(at=at):
            return _stop(_failed(group), at, _record(group, event), End(Why.FAILED))
        case Unstartable(text, at, passes=True):
            words = RecordUnstartable(text), End(Why.FAILED)
            return _stop(evolve(_failed(group), running=frozenset()), at, *words)
        case Unstartable():
            return _stay_out(group, event)
        case Over(round) if _is_mine(group, round) and _lives_on(group, event.generation):
            return _move(group)
        case Over(round, at=at) if _is_mine(group, round):
            return _go(group, at) if group.deadline else _stop(group, at)
        case Closed(at=at) | Refused(at=at):
            return _stop(group, at)
        case Elapsed(at) if group.fence_at is not None and at >= group.fence_at:
            return _stop(group, at, signum=SIGKILL)
        case Elapsed(at) if group.heard_by is not None and at >= group.heard_by:
            return _stop(_failed(group), at, End(Why.FAILED))
        case Elapsed(at) | Noticed(at=at) if _is_time_to_go(group, at):
            return _go(group, at)
        case Elapsed(at) if group.alone_by is not None and at >= group.alone_by:
            return _hurry_raised(group, at)
        case Signalled():
            return _leave(group, event)
        case Noticed():
            return _tell(group, event)
        case ReadyToLeave(at=at) if group.deadline:
            return _go_if_ready(group, at)
        case _:
            return group, ()


def _fails(group: Group, event: Exited) -> bool:
    """Return True if this is the end of a worker that failed: one that raised has failed whatever its exit code says."""
    return event.code != 0 or event.local_rank in group.failures.raised


def _record(group: Group, event: Exited | Raised) -> Record:
    """Return the command that puts this failure on record, or that completes the record of a raise."""
    match event:
        case Raised(local_rank, raised_at):
            return Record(local_rank, None, raised_at, Origin.RAISE)
        case Exited(local_rank, code, died_at) if local_rank in group.failures.raised:
            return Record(local_rank, code, died_at, Origin.RAISE)
        case Exited(local_rank, code, began_at=float() as began_at):
            return Record(local_rank, code, began_at, Origin.ENDING)
        case Exited(local_rank, code, died_at):
            return Record(local_rank, code, died_at)
        case other:
            assert_never(other)


def _is_echo(group: Group, event: Exited | Raised) -> bool:
    """Return True if this failure reads like an echo of a peer's. A worker without peers hears no echo. A worker that began
    to end before the first echo has decided that by itself."""
    if isinstance(event, Exited) and event.began_at is not None:
        echo_at = group.failures.echo_at
        return echo_at is not None and event.began_at > echo_at
    profiles = group.world.profiles if group.world else ()
    return bool(event.is_echo) and sum(each.local_world_size for each in profiles) > 1


def _raised_alone(group: Group, event: Raised) -> Step:
    """Put it on record. What follows is decided when the worker has ended, which it does soon, or is told to."""
    due = Stop(ask_at=event.at + SPARED_S, kill_at=event.at + max(group.settings.grace, SPARED_S))
    return evolve(group, stop=due), (_record(group, event),)


def _hurry_raised(group: Group, at: float) -> Step:
    """Tell the workers that raised to end, while the others run on; or kill them, when they have had their grace."""
    others = group.running - group.failures.raised or None
    if group.stop.kill_at is not None and at >= group.stop.kill_at:
        return evolve(group, stop=Stop()), (Signal(SIGKILL, others),)
    return _due(group, ask_at=None), (Signal(SIGTERM, others),)


def _failed_alone(group: Group, alone: Alone, event: Exited) -> Step:
    """Start a failed worker again, or leave it missing. When no worker is left, the success of any other one counts. If one
    has heard that another ended the job, the round ends for that one's failure, or when nobody has told of it for long. If
    the last one says that the job was cancelled, the job ends. A
    missing worker that the others would wait for ends the round."""
    recorded = _record(group, event)
    if again := _again(group, alone, event):
        return again, (recorded, StartAgain(event.local_rank))
    if _is_missed(alone, event):
        return _stop(_failed(group), event.at, recorded, End(Why.FAILED))
    group = _hears(group, alone, event)
    if group.running:
        return group, (recorded,)
    if group.course.succeeded:
        return _done(group, event.at, recorded)
    if event.code in alone.cancelled:
        return _stop(group, event.at, recorded, Close(Ending.CANCELLED, Why.ASKED))
    if group.course.heard_at is not None:
        return evolve(group, phase=Phase.BARRIER), (recorded,)
    return _stop(_failed(group), event.at, recorded, End(Why.FAILED))


def _is_missed(alone: Alone, event: Exited) -> bool:
    """Return True if other ranks would wait for this worker, which does not start again: in no wrapped call have they met
    it, so none can go on without it."""
    return event.entered is False and not _is_final(alone, event)


def _hears(group: Group, alone: Alone, event: Exited) -> Group:
    """Return the group that notes if this worker ended because another one, perhaps elsewhere, had ended the job."""
    first = event.code in alone.heard and group.course.heard_at is None
    return _advanced(group, heard_at=event.at) if first else group


def _failed(group: Group) -> Group:
    """Return the group of a node whose failure is to end the round. The register tells if another one came first."""
    return _reported(group, cause=Cause.UNKNOWN) if group.settings.checks else group


def _again(group: Group, alone: Alone, event: Exited) -> Group | None:
    """Return the group in which this worker starts again; None if it stays missing."""
    if _is_final(alone, event) or group.course.restarted >= alone.restarts_max:
        return None
    rank = frozenset((event.local_rank,))
    return evolve(
        group,
        running=group.running | rank,
        course=evolve(group.course, ready=group.course.ready - rank, restarted=group.course.restarted + 1),
        failures=evolve(group.failures, raised=group.failures.raised - rank, ending=group.failures.ending - rank),
    )


def _is_final(alone: Alone, event: Exited) -> bool:
    """Return True if this worker said, by its exit code, that it must not start again. 0 says nothing: it raised."""
    return event.code != 0 and event.code in alone.final


def _lives_on(group: Group, generation: Generation | None) -> bool:
    """Return True if a change of nodes stops no worker of this node: workers restart alone, the node is not drained, and
    no round has failed since they were started. (The reason of the last end is not asked: a failure may have been refunded
    since, when others have stopped their workers for it.)"""
    if group.settings.alone is None or group.deadline:
        return False
    return group.world is not None and group.world.generation == generation


def _move(group: Group) -> Step:
    """Go on into the next world with the workers that run."""
    alive = group.world.generation if group.world else None
    return evolve(_advanced(group, done_at=None), phase=Phase.MOVING, joins=True), (Join(alive),)


def _moving(group: Group, event: Event) -> Step:
    """Wait for the next world while the workers run. Of their ends no world can be told before it stands."""
    match event:
        case Ready(world, at) if _lives_on(group, world.generation):
            return _moved(group, world, at)
        case Ready(at=at) | Over(at=at):
            return _left_behind(evolve(group, joins=False), at)
        case Exited() if not _fails(group, event):
            return _advanced(group, succeeded=True), ()
        case Exited():
            return _failed_on_the_way(group, event)
        case Raised():
            return _raised_alone(group, event)
        case Unstartable(text, passes=True):
            return _reported(evolve(group, running=frozenset()), on_the_way=True), (RecordUnstartable(text),)
        case Unstartable():
            return _stay_out(group, event)
        case Closed(at=at) | Refused(at=at):
            return _stop(evolve(group, joins=False), at) if group.running else _ended(group)
        case Elapsed(at) if group.fence_at is not None and at >= group.fence_at and group.running:
            return _stop(group, at, signum=SIGKILL)
        case Elapsed(at) if group.alone_by is not None and at >= group.alone_by and group.running:
            return _hurry_raised(group, at)
        case Signalled():
            return _leave(group, event)
        case Noticed(at=at):
            return _go(group, at)
        case _:
            return group, ()


def _moved(group: Group, world: World, at: float) -> Step:
    """Enter the next world."""
    into, course = evolve(group, world=world), group.course
    if group.failures.on_the_way or not (group.running or course.succeeded or course.heard_at is not None):
        return _failed_before(_reported(into, on_the_way=False), world, at)
    into = _advanced(into, restarted=0, heard_at=None if course.heard_at is None else at)
    if group.running:
        return evolve(into, phase=Phase.RUNNING), (Move(world),)
    if course.succeeded:
        return _done(into, at, Move(world))
    return evolve(into, phase=Phase.BARRIER), (Move(world),)


def _left_behind(group: Group, at: float) -> Step:
    """Stop the workers: a round has failed meanwhile, so the generation is another."""
    if group.running:
        return _stop(group, at)
    return evolve(group, phase=Phase.JOINING, world=None, stop=Stop()), (Join(),)


def _failed_before(group: Group, world: World, at: float) -> Step:
    """End a world as it begins: this node's part in it had failed on the way."""
    words = Move(world), End(Why.FAILED)
    if group.running:
        return _stop(_failed(group), at, *words)
    again, more = _join_again(_failed(group))
    return again, (*words, *more)


def _failed_on_the_way(group: Group, event: Exited) -> Step:
    recorded, alone = _record(group, event), group.settings.alone
    if alone is None or event.code in alone.job_over:
        return _reported(group, on_the_way=True), (recorded,)
    if again := _again(group, alone, event):
        return again, (recorded, StartAgain(event.local_rank))
    if _is_missed(alone, event):
        return _reported(group, on_the_way=True), (recorded,)
    return _hears(group, alone, event), (recorded,)


def _stopping(group: Group, event: Event) -> Step:
    match event:
        case Exited(local_rank) if local_rank in group.failures.raised:
            return group, (_record(group, event),)
        case Raised():
            return _failed_too(group, event)
        case Exited(code=code) if code and _ended_by_itself(group, event):
            return _failed_too(group, event)
        case Over(by=by) if group.failures.cause is Cause.UNKNOWN:
            return _told(group, by), ()
        case Over(round, at=at) if group.failures.echo_at is not None and _is_mine(group, round):
            return _reaped_if(_reported(group, echo_at=None), at)
        case Closed(at=at) | Refused(at=at) if group.failures.echo_at is not None:
            return _reaped_if(_reported(group, echo_at=None), at)
        case Elapsed(at) if group.decide_by is not None and at >= group.decide_by:
            opened = _reported(group, echo_at=None, cause=Cause.OPEN)
            return _reaped_if(opened, at, End(Why.FAILED, is_open=True))
        case Elapsed(at) if group.kill_by is not None and at >= group.kill_by:
            return _due(group, kill_at=None, ask_at=None), _signal(group, SIGKILL)
        case Elapsed(at) if group.ask_by is not None and at >= group.ask_by:
            return _due(group, ask_at=None), _signal(group, SIGTERM)
        case Elapsed(at) if group.children_by is not None and at >= group.children_by:
            return _due(group, spares_children=False), (Signal(SIGTERM, children=True),)
        case Reaped(at) if group.failures.echo_at is None:
            return _reaped(group, at)
        case Noticed():
            return _go_on(group, event.at)
        case Signalled():
            return _leave(group, event)
        case _:
            return group, ()


def _failed_too(group: Group, event: Exited | Raised) -> Step:
    """Put one more failure on record. If the end of the round waits for its cause, this may be it: an echo is none."""
    recorded = _record(group, event)
    if group.failures.echo_at is None or _is_echo(group, event):
        return group, (recorded,)
    return _reported(_failed(group), echo_at=None), (recorded, End(Why.FAILED))


def _reaped(group: Group, at: float) -> Step:
    """Go on when no worker lives."""
    if group.verdict or group.refused:
        return _ended(group)
    return _go(group, at) if group.deadline else _join_again(group)


def _reaped_if(group: Group, at: float, *first: Command) -> Step:
    """Go on if no worker lives; else when the last one is reaped."""
    after, more = (group, ()) if group.running else _reaped(group, at)
    return after, (*first, *more)


def _done(group: Group, at: float, *first: Command) -> Step:
    return evolve(_advanced(group, done_at=at, heard_at=None), phase=Phase.BARRIER), (*first, MarkDone())


def _barrier(group: Group, event: Event) -> Step:
    match event:
        case Over(round) if _is_mine(group, round) and _lives_on(group, event.generation):
            return _move(group)
        case Over(round, at=at) if _is_mine(group, round):
            again = evolve(_advanced(group, done_at=None), phase=Phase.JOINING, world=None)
            return _go(group, at) if group.deadline else (again, (Join(),))
        case Elapsed(at) | Noticed(at=at) if _is_time_to_go(group, at):
            return _go(group, at)
        case Noticed():
            return _tell(group, event)
        case Elapsed(at) if group.heard_by is not None and at >= group.heard_by:
            if group.deadline:  # the end of its round lets it go
                return _advanced(group, heard_at=None), (End(Why.FAILED),)
            again, more = _join_again(_failed(group))
            return again, (End(Why.FAILED), *more)
        case Elapsed(at) if group.barrier_by is not None and at >= group.barrier_by:
            departure = Departure(LeaveReason.UNAWAITED, at + group.settings.leave_timeout)
            return evolve(group, phase=Phase.LEAVING, departure=departure), (Leave(),)
        case Closed() | Refused():
            return _ended(group)
        case Signalled():
            return _leave(group, event)
        case _:
            return group, ()


def _leaving(group: Group, event: Event) -> Step:
    departure = group.departure
    assert departure is not None
    match event:
        case Gone() | Closed() | Refused():
            return _gone_if(evolve(group, departure=evolve(departure, is_shown=True)))
        case Exited(local_rank) if local_rank in group.failures.raised:
            return group, (_record(group, event),)
        case Signalled(signum):
            departure = evolve(departure, is_shown=True, signum=departure.signum or signum)
            killed = _due(evolve(group, departure=departure), kill_at=None, ask_at=None)
            return _gone_if(killed, *_signal(group, SIGKILL))
        case Elapsed(at):
            killing = group.kill_by is not None and at >= group.kill_by
            asking = group.ask_by is not None and at >= group.ask_by
            warning = group.children_by is not None and at >= group.children_by and not killing
            late = departure.until is not None and at >= departure.until
            signal = _signal(group, SIGKILL if killing else SIGTERM) if killing or asking else ()
            signal += (Signal(SIGTERM, children=True),) if warning else ()
            stop = evolve(
                group.stop,
                kill_at=None if killing else group.stop.kill_at,
                ask_at=None if killing or asking else group.stop.ask_at,
                spares_children=group.stop.spares_children and not warning,
            )
            departure = evolve(departure, is_shown=departure.is_shown or late)
            return _gone_if(evolve(group, departure=departure, stop=stop), *signal)
        case Reaped():
            return _gone_if(group)
        case Noticed(at=at):
            return _hurried(group, at), ()
        case _:
            return group, ()


def _is_time_to_go(group: Group, at: float) -> bool:
    return group.goes_at is not None and at >= group.goes_at


def _tell(group: Group, event: Noticed) -> Step:
    """Tell the workers, and the register if it does not know. A later notice changes nothing."""
    deadline, goes_at = group.deadline, group.goes_at
    if deadline is None or goes_at is None or deadline.notice is not event.notice:
        return group, ()
    told = Tell(event.notice, goes_at, deadline.gone_by)
    return group, ((told,) if event.known else (Drain(group.node, event.notice), told))


def _go_if_ready(group: Group, at: float) -> Step:
    """Leave when all workers that live are ready. Those that ended well after they said so have not done all their work."""
    return _go(group, at) if group.running <= group.course.ready else (group, ())


def _go(group: Group, at: float) -> Step:
    """Leave, because this node is drained. The others hear of it at once, and the workers have their grace."""
    kill_at = at + group.settings.grace if group.running else None
    leaving, commands = _go_on(evolve(group, stop=_begun(at, kill_at)), at)
    return leaving, (*commands, *_signal(group, SIGTERM))


def _go_on(group: Group, at: float) -> Step:
    """Leave, with workers that are being stopped already."""
    departure = Departure(LeaveReason.DRAINED, at + group.settings.leave_timeout)
    leaving = evolve(_reported(group, echo_at=None), phase=Phase.LEAVING, departure=departure)
    return _hurried(leaving, at), (Leave(),)


def _hurried(group: Group, at: float) -> Group:
    """Return a group that leaves, and is gone when its notice says so."""
    assert group.deadline and group.departure
    departure, gone_by = group.departure, group.deadline.gone_by
    last, gone_by = max(gone_by - KILL_S, at), max(gone_by, at)
    kill_at = None if group.stop.kill_at is None else min(group.stop.kill_at, last)
    until = None if departure.until is None else min(departure.until, gone_by)
    return _due(evolve(group, departure=evolve(departure, until=until)), kill_at=kill_at)


def _stop(group: Group, at: float, *first: Command, signum: int = SIGTERM) -> Step:
    """Begin to stop the workers: a signal, the grace, SIGKILL. The commands in `first` come before the signal. Workers that
    end by themselves are spared at first."""
    kill_at = None if signum == SIGKILL else at + group.settings.grace
    spared = frozenset[int]() if signum == SIGKILL else group.spared
    ask_at = at + SPARED_S if spared else None
    stopping = evolve(group, phase=Phase.STOPPING, stop=_begun(at, kill_at, ask_at))
    return stopping, (*first, *_signal(group, signum, spared))


def _leave(group: Group, event: Signalled) -> Step:
    """Leave, and forward the signal. The workers have the shutdown timeout, the register has the leave timeout."""
    settings = group.settings
    kill_at = event.at + settings.shutdown_timeout if group.running else None
    leaving = evolve(
        _reported(group, echo_at=None),
        phase=Phase.LEAVING,
        stop=_begun(event.at, kill_at),
        departure=Departure(LeaveReason.SIGNAL, event.at + settings.leave_timeout, signum=event.signum),
    )
    return leaving, (Leave(), *_signal(group, event.signum))


def _begun(at: float, kill_at: float | None, ask_at: float | None = None) -> Stop:
    """Return a stop that begins at this time, in the place of any other. The workers' children are spared if the grace
    leaves them time of their own."""
    return Stop(at, kill_at, ask_at, spares_children=kill_at is not None and kill_at - at > KILL_S)


def _signal(group: Group, signum: int, spared: frozenset[int] = frozenset()) -> tuple[Command, ...]:
    return (Signal(signum, spared or None),) if group.running - spared else ()


def _gone_if(group: Group, *commands: Command) -> Step:
    """End once the register shows that this node left, or had its time, and no worker lives."""
    is_over = group.departure is not None and group.departure.is_shown and not group.running
    return (evolve(group, phase=Phase.ENDED), commands) if is_over else (group, commands)


def _ended(group: Group) -> Step:
    return evolve(group, phase=Phase.ENDED, stop=Stop(group.stop.at)), ()


def _is_mine(group: Group, round: int) -> bool:
    return group.world is not None and group.world.round == round


def _by_itself(group: Group, at: float) -> bool:
    """Return True if what a worker did at this time was not because of our signal: none was sent before."""
    return group.stop.at is None or at <= group.stop.at


def _ended_by_itself(group: Group, event: Exited) -> bool:
    """Return True if a worker died before our first signal, or had begun to end before it. One that was told to end since
    counts only if no other worker can be the cause."""
    began = event.began_at is not None and _by_itself(group, event.began_at)
    told = (began and (group.stop.ask_at is not None or group.failures.cause is Cause.OPEN)) or _was_killed(
        group, event
    )
    return told or _by_itself(group, event.died_at)


def _was_killed(group: Group, event: Exited) -> bool:
    """Return True if somebody else has killed a worker and only echoes are known: this node sends SIGKILL later. The kernel
    closes the sockets of a dead process before it reports the death, so its peers may be heard first; not by much."""
    is_open = group.failures.echo_at is not None or group.failures.cause is Cause.OPEN
    is_soon = group.stop.at is not None and event.died_at <= group.stop.at + LATE_S
    return is_open and is_soon and event.code == -SIGKILL and group.stop.kill_at is not None
