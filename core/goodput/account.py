"""The account of one agent, from its start: each microsecond of its time in one bucket, for one reason.

Whoever runs or reads the agent tells the account each step of the worker group and each answer of the store. An account is
continued, never computed anew: cut the steps anywhere, and what both parts enter is what the whole does. `closed` says what
is not entered yet, at any time. Several threads write steps down: a step that is earlier than the one before it counts as
late as that.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from ..group import Group, Phase
from ..group.state import Beaten, Closed, Command, Elapsed, End, Event, Over, Record, Refused, Start
from ..ranks import assign
from ..rendezvous import Input, Linked, Pushed, RendezvousState, Shown
from ..rendezvous.exchange import ANSWERS, UNANSWERED
from ..rendezvous.links import Says
from ..values import evolve, frozen
from ..work import Worked
from ..world import Ending, Node, Why, World
from .entries import KINDS, Arrival, Culprit, Death, Entry, Kind, Meeting, Piece, Reason, RoundEnd, micros
from .runs import Run, noted, pieces


@frozen
class Stretch:
    """This is what a node does until something changes."""

    bucket: str
    reason: Reason
    job: str = ""
    awaits: tuple[Node, ...] = ()


@frozen
class Account:
    """It holds what is known of a node, and what is not entered yet: its last run, and what it does since `since`."""

    node: Node
    at: int
    """Up to here the node is known."""
    since: int
    stretch: Stretch | None = Stretch("waiting", Kind.FIRST)
    """None: its workers run. All of a run is entered when the next one begins, or at the end."""
    run: Run | None = None
    group: Group | None = None
    is_cut: bool = False
    """Steps are missing, and nothing since tells what the node does."""
    reason: Reason = Kind.FIRST
    """Why it is not in a world, or its workers are started."""
    is_silent: bool = False
    """The store does not answer."""
    state: RendezvousState | None = None
    """The register as the node was shown it last."""
    jobs: int = 0
    """How many jobs it has met."""

    @property
    def job(self) -> str:
        return self.state.job if self.state else ""


Taken: TypeAlias = tuple[Account, tuple[Entry, ...]]

_CONTACTS = (*ANSWERS, *UNANSWERED)
_NEWS = (Linked, Shown, Pushed)
"""These may tell a node of others. A trace has few of them beside the heartbeats."""


def opened(node: Node, at: float) -> Account:
    """Return the account of an agent that begins."""
    return Account(node, micros(at), micros(at))


def stepped(
    account: Account, event: Event | None, group: Group | None, commands: tuple[Command, ...], at: float
) -> Taken:
    """Take a step of the worker group, after which it is this one; None: how it stands is not known."""
    before, now = account.group, _now(account, at)
    if isinstance(event, Beaten) and before and group and (before.phase, before.world) == (group.phase, group.world):
        return evolve(account, group=group, at=now), ()
    run, reason = _noting(account, commands), account.reason
    entries: list[Entry] = [*_ends(account, event, group), *_culprits(account, commands)]
    if start := next((each for each in commands if isinstance(each, Start)), None):
        entries += (*_of_run(account), *_arrivals(account))
        run = _begun(account, start.world, now)
    if run and run.end is None and not _runs(group):
        succeeds = group is not None and group.phase is Phase.BARRIER
        run = evolve(run, end=now, ended=before.world.round if before and before.world else None, succeeds=succeeds)
    if group is None:
        reason = Kind.UNKNOWN
    elif before and before.world and group.world is None:
        reason = before.world.round
    return _goes_on(evolve(account, run=run, group=group, is_cut=group is None, reason=reason), now, entries)


def heard(account: Account, fed: Input, at: float) -> Taken:
    """Take what the node's client was fed: the register, or another answer of the store, or none."""
    now, entries = _now(account, at), list[Entry]()
    is_silent = isinstance(fed, UNANSWERED) if isinstance(fed, _CONTACTS) else account.is_silent
    if is_silent is account.is_silent and not isinstance(fed, _NEWS):
        return evolve(account, at=now), ()
    account = evolve(account, is_silent=is_silent)
    if isinstance(fed, Linked) and fed.says is Says.GONE and account.state is not None:
        entries.append(Death(account.job, account.state.round, fed.node))
    state = fed.state if isinstance(fed, Shown | Pushed) else None
    if state is not None and state is not account.state:
        entries += _told(account, state)
        jobs = account.jobs + (account.state is None or state.job != account.job)
        account = evolve(account, state=state, jobs=jobs, reason=_called(account, state))
    return _goes_on(account, now, entries)


def executed(account: Account, at: float) -> Taken:
    """Take that the processes of the workers are there."""
    now, run = _now(account, at), account.run
    if run and run.end is None and run.executed_at is None:
        account = evolve(account, run=evolve(run, executed_at=now))
    return _goes_on(account, now, [])


def worked(account: Account, work: Worked) -> Taken:
    """Take what a worker came to, after its end."""
    now, run = _now(account, work.at), account.run
    if run:
        account = evolve(account, run=noted(run, work))
    return _goes_on(account, now, [])


def hung(account: Account, rank: int, at: float) -> Taken:
    """Take that the hang watch has ended the worker of this rank."""
    now, run = _now(account, at), account.run
    if run:
        account = evolve(account, run=evolve(run, hung=run.hung | {rank}))
    return _goes_on(account, now, [])


def cut(account: Account) -> Taken:
    """Take that steps are missing from here on."""
    return stepped(account, None, None, (), 0.0)


def closed(account: Account) -> tuple[Piece, ...]:
    """Return the pieces that are not entered yet, as things stand. The account can be continued all the same."""
    return (*_of_run(account), *_piece(account, account.at))


def _now(account: Account, at: float) -> int:
    """Return the time of a step. Several threads write steps down, so one may be earlier than the step before it."""
    return max(micros(at), account.at)


def _goes_on(account: Account, now: int, entries: list[Entry]) -> Taken:
    """Return the account at this time, with the stretch entered that ends here."""
    stretch = _stretch(account)
    if stretch == account.stretch:
        return evolve(account, at=now), tuple(entries)
    return evolve(account, at=now, since=now, stretch=stretch), (*entries, *_piece(account, now))


def _piece(account: Account, end: int) -> Iterator[Piece]:
    if (its := account.stretch) and end > account.since:
        yield Piece(account.node, account.since, end, its.bucket, its.reason, its.job, its.awaits)


def _of_run(account: Account) -> Iterator[Piece]:
    return pieces(account.run, account.node, account.at) if account.run else iter(())


def _arrivals(account: Account) -> Iterator[Arrival]:
    """Yield that the node's first workers start, if it came for the end of a round."""
    if account.run is None and isinstance(account.reason, int):
        yield Arrival(account.job, account.reason, account.node)


def _begun(account: Account, world: World, now: int) -> Run:
    """Return the run of this world's workers, which begins after the account's last one."""
    last, size = account.run, world.profiles[world.nodes.index(account.node)].local_world_size
    says_steps = last is not None and (last.says_steps or last.speaks)
    return Run(now, account.reason, account.job, world.round, size, says_steps)


def _runs(group: Group | None) -> bool:
    return group is not None and group.phase in (Phase.RUNNING, Phase.MOVING) and bool(group.running)


# --- what a node does -------------------------------------------------------------------------------------------------


def _stretch(account: Account) -> Stretch | None:
    """Return what the node does now; None while its workers run."""
    group = account.group
    if account.is_cut:
        return _does(account, "unknown", Kind.UNKNOWN)
    if group is None or group.phase in (Phase.JOINING, Phase.HELD):
        return _waits(account)
    if _runs(group):
        return None
    match group.phase:
        case Phase.CHECKING:
            return _does(account, "checking", account.reason)
        case Phase.BARRIER:
            return _does(account, "finished", Kind.END)
        case Phase.RUNNING | Phase.MOVING:
            return _does(account, "waiting", _end_of(group, account.reason))
        case Phase.ENDED if group.is_unawaited or (group.verdict and group.verdict.ending is Ending.SUCCEEDED):
            return _does(account, "finished", Kind.END)
        case _:
            return _does(account, "stopping", _end_of(group, account.reason))


def _waits(account: Account) -> Stretch:
    """Return how a node waits for a world, or for the heartbeat that lets it start."""
    state, node = account.state, account.node
    joins = account.group is None or account.group.phase is Phase.JOINING
    if account.is_silent and state is not None:
        return _does(account, "waiting", Kind.STORE)
    if state is None or not joins:
        return _does(account, "waiting", account.reason)
    if state.is_spare(node):
        return _does(account, "spare", Kind.SPARE)
    awaits = tuple(each for each in state.expected if each != node)
    return _does(account, "waiting", account.reason, awaits)


def _does(account: Account, bucket: str, reason: Reason, awaits: tuple[Node, ...] = ()) -> Stretch:
    return Stretch(bucket, reason, account.job if isinstance(reason, int) or awaits else "", awaits)


def _end_of(group: Group, reason: Reason) -> Reason:
    """Return why a node is at its end in this world, or outside of any."""
    if group.is_unawaited:
        return Kind.END
    if group.world:
        return group.world.round
    if group.verdict:
        return group.verdict.round
    if group.is_drained:
        return Kind.DRAIN
    if group.signum is not None:
        return Kind.OPERATOR
    return KINDS[group.refused.why] if group.refused else reason


def _called(account: Account, state: RendezvousState) -> Reason:
    """Return why this node joins, after it was shown this register. A node that was in no world comes for itself, unless the
    round that it comes into is open because another one ended."""
    if account.state and account.job != state.job:
        return Kind.FIRST
    was_in = account.run or account.reason is Kind.UNKNOWN or (account.group and account.group.world)
    if was_in or state.complete or state.closed:
        return account.reason
    return state.ended.round if state.ended and state.ended.round == state.round - 1 else Kind.FIRST


# --- what a node knows of the ends of rounds --------------------------------------------------------------------------


def _told(account: Account, state: RendezvousState) -> Iterator[Entry]:
    """Yield what this register tells that the last one did not."""
    last, known_at = account.state, (state.life.epoch, state.version)
    if last is None or last.job != state.job:
        yield Meeting(account.node, state.job, account.jobs + 1)
    ended = state.ended
    if ended and not (last and last.ended == ended and last.ended.lost == ended.lost):
        is_drain = ended.by in state.noticed or (last is not None and ended.by in last.noticed)
        yield RoundEnd(state.job, ended.round, ended.why, ended.by, ended.lost, is_drain, known_at)
    if (verdict := state.closed) and not (last and last.closed == verdict):
        yield RoundEnd(state.job, verdict.round, verdict.why, verdict.by, known_at=known_at)


def _ends(account: Account, event: Event | None, after: Group | None) -> Iterator[RoundEnd]:
    """Yield what the node itself knows of the end of its world: the register may never tell."""
    before, node, job = account.group, account.node, account.job
    if before is None or before.world is None or after is None:
        return
    round = before.world.round
    match event:
        case Over(ended, why, by):
            yield from () if why is None else (RoundEnd(job, ended, why, by),)
        case Closed(verdict):
            yield from (RoundEnd(job, each, verdict.why, verdict.by) for each in dict.fromkeys((verdict.round, round)))
        case Refused(why):
            yield RoundEnd(job, round, why, None)
        case _ if after.phase is before.phase or after.phase not in (Phase.STOPPING, Phase.LEAVING):
            return
        case _ if after.signum is not None or after.is_drained:
            yield RoundEnd(job, round, Why.LEFT, node, is_drain=after.signum is None)
        case Elapsed() if after.stop.kill_at is None and after.phase is Phase.STOPPING:
            yield RoundEnd(job, round, Why.FENCED, node)
        case _:
            yield RoundEnd(job, round, Why.FAILED, node)


def _noting(account: Account, commands: tuple[Command, ...]) -> Run | None:
    """Return the run with the first of its workers that has failed."""
    run, world = account.run, account.group.world if account.group else None
    first = next((each.local_rank for each in commands if isinstance(each, Record)), None)
    if run is None or world is None or first is None or run.failed is not None:
        return run
    return evolve(run, failed=_rank(world, account.node, first))


def _culprits(account: Account, commands: tuple[Command, ...]) -> Iterator[Culprit]:
    """Yield the worker for whose failure this node ends its round: the one that it puts on record with that, else the first
    that failed."""
    world = account.group.world if account.group else None
    if world is None or not any(isinstance(each, End) and each.why is Why.FAILED for each in commands):
        return
    first = next((each.local_rank for each in commands if isinstance(each, Record)), None)
    known = account.run.failed if account.run else None
    rank = known if first is None else _rank(world, account.node, first)
    hung = account.run.hung if account.run else frozenset()
    yield Culprit(account.job, world.round, account.node, rank, is_hang=rank in hung)


def _rank(world: World, node: Node, local_rank: int) -> int:
    return assign(world)[node].workers[local_rank].rank
