"""Runs a recorded job once more, with the settings that it had or with others: the same core, in virtual time, under what
came from outside (`replay.told`).

    chronicle = replay.told(traces)
    as_it_was = sim.what_if(chronicle)
    with_spare = sim.what_if(chronicle, setting=sim.Supposition(spares=1))

Each seed draws the times of messages, starts and stops anew, from those that were seen. All laws judge these runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import reduce

from attrs import define, field

from .. import goodput, group
from ..goodput import Account, Book, Entry, added, booked, by_kind, closed, opened, took
from ..group import Group
from ..rendezvous import Errand, Limits, Observe, Settings
from ..replay.chronicle import Chronicle, Incident, Outside, round_ends
from ..trace.steps import Header, Step, Trace
from ..values import evolve, frozen
from ..world import Node, Notice
from .chance import mixed, seeded
from .kinds import Kind
from .own import Own
from .process import Process
from .programs import Follows, Programs
from .recording import Recording, header
from .simulation import World
from .story import Backend, Operation, Setting

SEEDS = 20
HOP_S = 1.0
LASTS_MAX = 4
"""A job that does not end lasts this many times as long as the recorded one, at most."""
TTL_BEAT_LEAST_S, TTL_BEAT_MOST_S = 0.01, 3_600.0
"""From one supposed heartbeat to the next, as in any simulated world."""
SAVE_EVERY_LEAST_S = 0.001
"""From one save to the next, recorded or supposed."""
SPARES_AFTER_S = 0.1
"""A spare asks for a place when a round is complete, or this much later than it would have."""
LOOK_S = 0.001
"""From one look whether one is to the next."""
KNOWN_LEAST = 0.01
"""A bucket with a smaller share of the time is not compared."""
GOOD, BAD = 0.02, 0.1
"""A bucket that is off by less is as recorded; one that is off by more cannot be supposed anything of."""

VERBS = {kind.value: kind for kind in Kind}

Spent = Mapping[tuple[str, goodput.Kind], int]


@frozen
class Supposition:
    """What is to be otherwise than it was. None: nothing of that."""

    spares: int = 0
    """This many more nodes come with the first, and stay."""
    standby_s: float | None = None
    """Every start but the first of an agent takes this long to its first progress, as from a standby."""
    links: bool | None = None
    ttl: float | None = None
    """After this silence a node is dead: as many heartbeats are missed as the recorded job let be missed."""
    max_restarts: int | None = None
    last_call: float | None = None
    nodes: Limits | None = None
    """How many nodes a round has; of these limits nothing else counts."""
    checkpoint_every: float | None = None
    """A save comes at the end of the step in which this has passed since the last one. Each takes as long as in the record,
    and a restart begins after the last one."""


AS_RECORDED = Supposition()


@frozen
class Played:
    """One run of the job."""

    spent: Spent
    """Bucket and cause -> the microseconds of all nodes."""
    ends: tuple[goodput.Kind, ...]
    """Why each round ended, in order."""
    lasted: float
    is_over: bool


@frozen
class Row:
    """A bucket: its time as recorded, and in the runs, in microseconds."""

    bucket: str
    recorded: int
    mean: float
    spread: float
    """The standard deviation."""
    share: float
    """Of the recorded time of all nodes."""

    @property
    def off(self) -> float:
        """By how much of itself the bucket is off; more than 1 if it was not there."""
        return abs(self.mean - self.recorded) / self.recorded if self.recorded else math.inf if self.mean else 0.0


@frozen
class Forecast:
    """What the runs came to, beside what was recorded."""

    chronicle: Chronicle
    played: tuple[Played, ...]
    setting: Supposition = AS_RECORDED

    def mean(self, bucket: str, kind: goodput.Kind | None = None) -> tuple[float, float]:
        """Return the mean time and its standard deviation, in microseconds, of a bucket, or of one cause in it."""
        each = [_of(played.spent, bucket, kind) for played in self.played]
        mean = sum(each) / len(each)
        return mean, math.sqrt(sum((one - mean) ** 2 for one in each) / len(each))

    @property
    def rows(self) -> tuple[Row, ...]:
        """Return the buckets, the dearest first."""
        recorded = self.chronicle.recorded
        total = sum(recorded.values())
        names = {bucket for bucket, _ in (*recorded, *(key for played in self.played for key in played.spent))}
        rows = [_row(self, bucket, total) for bucket in sorted(names)]
        return tuple(sorted(rows, key=lambda row: -max(row.recorded, row.mean)))

    @property
    def worst(self) -> Row | None:
        """Return the bucket that is off most, of those that have a hundredth of the time; None if there is none."""
        return max((row for row in self.rows if row.share >= KNOWN_LEAST), key=lambda row: row.off, default=None)

    @property
    def off(self) -> float:
        """Return by how much that bucket is off."""
        return worst.off if (worst := self.worst) else 0.0

    @property
    def strays(self) -> tuple[tuple[goodput.Kind, int, float], ...]:
        """Return the causes that have a hundredth of the time, and are off by more than a bucket may be: each with its time
        as recorded, and in the runs. A bucket can be as recorded for other reasons."""
        total = sum(self.chronicle.recorded.values())
        return tuple(
            (kind, recorded, mean)
            for kind in goodput.Kind
            for recorded, mean in [self._of_kind(kind)]
            if max(recorded, mean) >= KNOWN_LEAST * total and abs(mean - recorded) > BAD * recorded
        )

    def _of_kind(self, kind: goodput.Kind) -> tuple[int, float]:
        recorded = sum(micros for (_, reason), micros in self.chronicle.recorded.items() if reason is kind)
        each = [sum(micros for (_, reason), micros in played.spent.items() if reason is kind) for played in self.played]
        return recorded, sum(each) / len(each)

    @property
    def agreeing(self) -> int:
        """In how many of the runs the rounds ended as the recorded ones did, one after the other."""
        return sum(played.ends == self.chronicle.ends for played in self.played)


def _of(spent: Spent, bucket: str, kind: goodput.Kind | None = None) -> int:
    return sum(micros for (name, reason), micros in spent.items() if name == bucket and kind in (None, reason))


def _row(forecast: Forecast, bucket: str, total: int) -> Row:
    recorded, (mean, spread) = _of(forecast.chronicle.recorded, bucket), forecast.mean(bucket)
    return Row(bucket, recorded, mean, spread, max(recorded, mean) / total if total else 0.0)


def what_if(
    chronicle: Chronicle,
    setting: Supposition = AS_RECORDED,
    follows: Follows = Follows.TIME,
    seeds: int = SEEDS,
    seed: int = 0,
    ran: Callable[[int], object] = bool,
) -> Forecast:
    """Return what the job comes to under this supposition. `ran` hears after each run how many are done. Raises
    Violation, as every simulated run does, and ValueError for a setting that cannot be."""
    played = list[Played]()
    for each in range(seeds):
        played.append(play(chronicle, setting, follows, seed + each))
        ran(len(played))
    return Forecast(chronicle, tuple(played), setting)


def calibration(chronicle: Chronicle, supposed: Supposition) -> Supposition:
    """Return the setting under which the job runs again as it was, before this is supposed of it. Where saves are supposed,
    it saves as it did, and restarts begin after the last save; else they do as many steps again as the recorded ones. Raises
    ValueError if the traces do not tell what a save takes."""
    _are_possible(chronicle, supposed)
    known = chronicle.program.checkpoints
    return evolve(AS_RECORDED, checkpoint_every=known.every_s) if known and supposed.checkpoint_every else AS_RECORDED


def _are_possible(chronicle: Chronicle, supposed: Supposition) -> None:
    """Raise ValueError for saves that cannot be supposed."""
    known, every_s = chronicle.program.checkpoints, supposed.checkpoint_every
    if every_s is None:
        return
    if known is None:
        raise ValueError(
            "no worker told of a save after its first progress; in the program call elastic.progress(step=n) after each "
            "step, and elastic.saved(step=n) after each save"
        )
    if not min(every_s, known.every_s) >= SAVE_EVERY_LEAST_S:
        raise ValueError(
            f"a save each {every_s:.3g} s (recorded: one each {known.every_s:.3g} s); "
            f"{SAVE_EVERY_LEAST_S:g} s or more may pass"
        )
    if known.stop_s >= min(known.every_s, every_s):
        raise ValueError(
            f"a save each {every_s:.3g} s: one takes {known.stop_s:.3g} s (recorded: one each {known.every_s:.3g} s)"
        )


def play(chronicle: Chronicle, supposed: Supposition, follows: Follows, seed: int) -> Played:
    """Return what one run comes to."""
    stage = Stage(chronicle, supposed, follows, seed)
    stage.runs()
    book = stage.book
    job = max((key for key, _ in book.ends), default="")
    is_over = stage.world.store.register is not None and stage.world.store.register.closed is not None
    return Played(by_kind(book), round_ends(book, job), stage.world.future.now, is_over)


def record(chronicle: Chronicle, setting: Supposition = AS_RECORDED, seed: int = 0) -> tuple[Trace, ...]:
    """Return the traces that the agents of one run write, as real ones do. Raises Violation, and ValueError."""
    stage = Stage(chronicle, setting, Follows.TIME, seed, {})
    stage.runs()
    kept = (stage.lines or {}).values()
    return tuple(Trace(first, tuple(steps), tuple(range(2, 2 + len(steps)))) for first, steps in kept)


# --- one run ----------------------------------------------------------------------------------------------------------


@define(eq=False)
class Stage:
    """A simulated world in which the job runs once."""

    chronicle: Chronicle
    supposed: Supposition
    follows: Follows
    seed: int
    lines: dict[Node, tuple[Header, list[Step]]] | None = None
    """What each agent writes, if it is kept."""
    world: World = field(init=False)
    programs: Programs = field(init=False)
    slots: dict[str, str] = field(init=False)
    """The recorded slot -> the simulator's."""
    began: dict[str, float] = field(factory=dict)
    """Slot -> when its next agent began, which then had to wait for the store."""
    accounts: dict[Node, tuple[Account, list[Entry]]] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        chronicle, supposed = self.chronicle, self.supposed
        _are_possible(chronicle, supposed)
        self.world = world = World(setting_of(chronicle, supposed, self.seed), own=own_of(chronicle, supposed))
        self.slots = dict(zip(chronicle.slots, world.setting.slots, strict=False))
        agents = world.agents
        self.programs = Programs(
            chronicle,
            {slot: recorded for recorded, slot in self.slots.items()},
            self.follows,
            seeded(mixed(self.seed)),
            world.future,
            agents.workers,
            world.witness,
            supposed.standby_s,
            supposed.checkpoint_every,
            lambda process, step: self.hears(process, step, None),
        )
        if supposed == AS_RECORDED:
            self.programs.come.recorded = dict(chronicle.program.begins)
        agents.workers.wrapped = self.programs
        agents.workers.ready_s = self.programs.ready_s
        agents.workers.checks_s = self._checks_s() or agents.workers.checks_s
        agents.records(Recording(self.hears, self.programs.ended))
        world.links.taken_one_in = None
        timing = chronicle.timing
        world.network.delays = timing.legs or world.network.delays
        world.network.own = {Observe: timing.looks, Errand: timing.errands}
        agents.loops.lags = agents.hearts.lags = timing.lags
        agents.hearts.asked_s = timing.start_s

    def _checks_s(self) -> tuple[float, ...]:
        return tuple(span for each in self.chronicle.spans.values() for span in each.checks)

    def hears(self, process: Process, step: Step, group: Group | None) -> None:
        """Take a step of an agent to its account."""
        if self.lines is not None:
            if process.node not in self.lines:
                self.lines[process.node] = header(process, self._began(process)), []
            self.lines[process.node][1].append(step)
        account, entries = self.accounts.get(process.node) or (opened(process.node, self._began(process)), [])
        account, more = took(account, step, group)
        entries += more
        self.accounts[process.node] = account, entries

    def _began(self, process: Process) -> float:
        return self.began.get(process.node.slot, process.launch.at)

    @property
    def book(self) -> Book:
        books = (booked((*entries, *closed(account))) for account, entries in self.accounts.values())
        return reduce(added, books, Book())

    def runs(self) -> None:
        """Run the job to its end, or for as long as the recorded one ran. Raises Violation."""
        chronicle, future = self.chronicle, self.world.future
        for each in chronicle.incidents:
            if each.kind not in (Outside.FAIL, Outside.HANG) or self.follows is Follows.TIME:
                future.at(each.at, self._comes, each)
        starts = sorted(each.at + each.span for each in chronicle.incidents if each.kind is Outside.START)
        enough, last = starts[: self.world.setting.limits.min_nodes][-1], starts[-1]
        for slot in self.world.setting.slots[len(chronicle.slots) :]:
            self.began[slot] = 0.0
            future.at(enough, self._starts, slot, enough + SPARES_AFTER_S)
        is_open = not chronicle.has_succeeded and self.supposed != AS_RECORDED
        until = chronicle.until * (LASTS_MAX if chronicle.is_over and not is_open else 1)
        while future.now < until and not (future.now > last and not any(self.world.living())):
            future.passes(min(future.now + HOP_S, until))
            self.world.witness.moved()

    def _comes(self, incident: Incident) -> None:
        """Let this come from outside."""
        world, slot, kind = self.world, self.slots.get(incident.slot, ""), VERBS[incident.kind.value]
        process = world.at(slot)
        match incident.kind:
            case Outside.FAIL if process is not None:
                self.programs.fails(process, incident)
            case Outside.NOTICE if process is not None:
                world.witness.lost_worlds.befalls(process, kind)
                world.witness.recoveries.befalls(kind)
                world.agents.are_noticed(process, Notice(incident.span, "as recorded"))
            case Outside.HANG if process is not None:
                self.programs.hangs(process)
            case Outside.FAIL | Outside.NOTICE | Outside.HANG:
                pass  # there is no agent any longer
            case Outside.START:
                self.began[slot], at = world.future.now, world.future.now + incident.span
                world.future.at(at, self._starts, slot, at + SPARES_AFTER_S if incident.spare else at)
            case _:
                if kind is Kind.KILL and process is not None:
                    self.programs.is_killed(process)
                self._does(Operation(kind, slot, incident.span if kind.takes_span else 0.0))

    def _starts(self, slot: str, until: float) -> None:
        """Start the agent of this slot when a round is complete, or then."""
        register, now = self.world.store.register, self.world.future.now
        if now >= until or (register is not None and register.complete):
            self._does(Operation(Kind.START, slot))
        else:
            self.world.future.at(min(now + LOOK_S, until), self._starts, slot, until)

    def _does(self, operation: Operation) -> None:
        self.world.does(operation)


# --- settings ---------------------------------------------------------------------------------------------------------


def setting_of(chronicle: Chronicle, supposed: Supposition, seed: int) -> Setting:
    """Return the world of this job. Raises ValueError."""
    if chronicle.rendezvous.limits.segment:
        raise ValueError(
            f"{chronicle.rendezvous.limits.option}: simulated nodes do not have the labels of the recorded ones, so nothing "
            "tells which of them make a whole segment; `elastic goodput` tells what this job lost"
        )
    settings, group, limit = (
        _rendezvous(chronicle, supposed),
        _group(chronicle, supposed),
        chronicle.rendezvous.max_node_failures,
    )
    limits, there = settings.limits, len(chronicle.slots) + supposed.spares
    if limits.min_nodes > there:
        raise ValueError(f"a round of {limits.min_nodes} nodes, where there are {there}; suppose more spares, too")
    return Setting(
        nodes=there,
        limits=limits,
        workers=chronicle.profile.local_world_size,
        backend=Backend.LEASE if settings.leased else Backend.CAS,
        seed=2 + 2 * seed,  # of an odd one nodes would sign their worlds
        offset=0.0,
        interval=settings.keep_alive_interval,
        attempts=settings.keep_alive_max_attempt,
        join=settings.join_timeout,
        last_call=settings.last_call_timeout,
        overdue=settings.overdue_timeout,
        upscale=settings.upscale_after,
        barrier=0.0 if math.isinf(settings.barrier_timeout) else settings.barrier_timeout,
        grace=group.grace,
        shutdown=group.shutdown_timeout,
        fence=group.fence or 0.0,
        helping=settings.helping_above,
        links=int(chronicle.has_links if supposed.links is None else supposed.links),
        node_failures=limit.failures if limit else 0,
        window=limit.within if limit else 8.0,
        checks=int(bool(group.checks)),
        party_wait=settings.party_timeout,
        first_target=settings.first_target,
    )


def own_of(chronicle: Chronicle, supposed: Supposition) -> Own:
    """Return the settings of the nodes that no Setting has."""
    settings, group = _rendezvous(chronicle, supposed), _group(chronicle, supposed)
    return Own(settings=lambda given: settings, group=lambda given: group)


def _rendezvous(chronicle: Chronicle, supposed: Supposition) -> Settings:
    settings, limits = chronicle.rendezvous, chronicle.rendezvous.limits
    nodes = supposed.nodes or limits
    restarts = limits.max_restarts if supposed.max_restarts is None else supposed.max_restarts
    least, most, unit = nodes.min_nodes, nodes.max_nodes, nodes.node_unit
    changed = evolve(limits, max_restarts=restarts, min_nodes=least, max_nodes=most, node_unit=unit)
    last_call = settings.last_call_timeout if supposed.last_call is None else supposed.last_call
    interval = settings.keep_alive_interval
    if supposed.ttl is not None:
        interval = supposed.ttl / settings.keep_alive_max_attempt
        if not TTL_BEAT_LEAST_S <= interval <= TTL_BEAT_MOST_S:
            raise ValueError(
                f"a TTL of {supposed.ttl:g} s: a heartbeat each {interval:g} s; 0.01 s to an hour may pass"
            )
    target = min(settings.first_target, nodes.max_nodes)
    return evolve(
        settings, limits=changed, last_call_timeout=last_call, keep_alive_interval=interval, first_target=target
    )


def _group(chronicle: Chronicle, supposed: Supposition) -> group.Settings:
    settings = _rendezvous(chronicle, supposed)
    return evolve(chronicle.workers, ttl=settings.ttl, keep_alive_interval=settings.keep_alive_interval)
