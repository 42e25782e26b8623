"""The workers of a simulated job that live as those of a recorded one: they start, make steps, fail, stop and succeed in the
times that its traces tell (`replay.told`).

A time is drawn from those that were seen on its node, without putting it back before all were drawn: so a run with as many
starts as the recorded one takes as long for all of them. A node that nothing is known of takes the times of all nodes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from itertools import chain

from attrs import define, field

from ..group.state import SIGKILL, Raised
from ..properties.facts import Failed
from ..ranks import assign
from ..replay.chronicle import CHECKPOINT, Checkpoints, Chronicle, Incident, Outside, Spans, mean
from ..trace.steps import HangEnd, Started, Step
from ..values import frozen
from ..work import Mark, Said, Worked, told
from ..world import Node, World
from .chance import Choose
from .future import Future
from .kinds import Kind
from .process import Process
from .witness import Witness
from .workers import Workers


class Follows(Enum):
    """What the failures of workers belong to, which no trace tells."""

    TIME = "time"
    """A failure comes again at its time."""
    NODE = "node"
    """It comes again when workers of its node have run for as long."""
    PROGRAM = "program"
    """It comes again at the same step of the program, or as long after a start."""


@define
class Bag:
    """Values that are drawn one after the other, each once before any comes again."""

    choose: Choose
    values: Sequence[float]
    left: list[float] = field(factory=list)

    def draw(self) -> float:
        self.left = self.left or list(self.values)
        return self.left.pop(self.choose(len(self.left))) if self.left else 0.0


EDGE_S = 0.05
"""A run does not tell what comes first of two things that are no further apart."""


@frozen
class Pace:
    """How the steps of a run follow one another. Times are seconds since its first progress, at which one step is done."""

    step_s: float
    steps_a_save: float = math.inf
    """A save comes after this number of steps."""
    save_s: float = 0.0
    """How long it stops the training."""

    @property
    def every_s(self) -> float:
        return self.steps_a_save * self.step_s + self.save_s

    def steps(self, span: float) -> int:
        """Return how many more steps are done by then."""
        if not self.step_s:
            return 0
        return max(math.floor((span - self.saving(span)) / self.step_s + 1e-9), 0)

    def lasts(self, steps: int) -> float:
        """Return how long it takes to do this number of steps."""
        return steps * self.step_s + max(math.ceil((steps + 1) / self.steps_a_save) - 1, 0) * self.save_s

    def saves(self, span: float) -> int:
        """Return how many saves are whole by then."""
        return 0 if math.isinf(self.every_s) else math.floor((span + self.step_s) / self.every_s + 1e-9)

    def saving(self, span: float) -> float:
        """Return the time that saves have taken by then."""
        if math.isinf(self.every_s):
            return 0.0
        saves = self.saves(span)
        return saves * self.save_s + max(span + self.step_s - (saves + 1) * self.every_s + self.save_s, 0.0)

    def saved(self, saves: int) -> tuple[float, int]:
        """Return when this number of saves is whole, and how many more steps are done by then."""
        return saves * self.every_s - self.step_s, round(saves * self.steps_a_save) - 1


SAME_STEP = 0.02
"""A save that is due no later than this share of a step after its end comes with that step: its length is a mean."""


def paced(step_s: float, every_s: float, save_s: float, seen: bool = False) -> Pace:
    """Return the pace of a program that saves when this time has passed since it saved last, at the end of a step. `seen`:
    the time is the mean of what such a program did, so as many steps as come closest to it were between two saves."""
    if not step_s:
        return Pace(step_s)
    steps = (every_s - save_s) / step_s
    return Pace(step_s, max(round(steps) if seen else math.ceil(steps - SAME_STEP), 1), save_s)


def saves_each_s(chronicle: Chronicle, known: Checkpoints, every_s: float) -> float:
    """Return how often a program saves if this interval is supposed: with the steps of all nodes on average."""
    return _pace_of(known, mean(_steps_s(chronicle)), every_s).every_s


def _pace_of(known: Checkpoints, step_s: float, every_s: float | None) -> Pace:
    seen = every_s is None or every_s == known.every_s
    return paced(step_s, known.every_s if every_s is None else every_s, known.stop_s, seen)


def _steps_s(chronicle: Chronicle) -> list[float]:
    return [each.step_s for each in chronicle.spans.values() if each.step_s is not None]


@define(eq=False)
class Run:
    """One start of the workers of a node."""

    number: int
    round: int
    """In which they were started."""
    exec_at: float
    first_at: float
    first_step: int | None
    before: int | None
    """The highest step that earlier workers of this agent told."""
    standby: bool
    quiet_at: float = math.inf
    """No worker makes progress from then on."""
    end_at: float = math.inf
    """The last of them ended then, or their agent was killed."""
    stops: bool = False
    hung: set[int] = field(factory=set)
    """The local ranks that a hang watch has ended."""
    killed: bool = False
    """Their agent was killed, so nobody wrote down what they came to."""


@define(eq=False)
class Reached:
    """How far the program has come."""

    reached: dict[Node, int] = field(factory=dict)
    """Node -> the highest step that its workers told."""
    firsts: dict[int, int] = field(factory=dict)
    """Round -> the step with which its workers begin."""
    safe: int | None = None
    """The last step that is saved, where restarts begin after that."""
    recorded: Mapping[int, int] = field(factory=dict)
    """Round -> the step with which the workers of the recorded one began; none, where anything is supposed."""


@define(eq=False)
class Programs:
    """The workers of all nodes. `standby_s`: how long a start takes whose workers were standbys; None: as recorded.
    `every_s`: from one save to the next; None: restarts do as many steps again as recorded ones."""

    chronicle: Chronicle
    slots: Mapping[str, str]
    """The simulator's slot -> the recorded one, where there was one."""
    follows: Follows
    choose: Choose
    future: Future
    workers: Workers
    witness: Witness
    standby_s: float | None = None
    every_s: float | None = None
    hears: Callable[[Process, Step], None] = lambda process, step: None
    """Hears what the agent writes down of its workers."""
    runs: dict[Node, Run] = field(factory=dict)
    """Node -> its last run."""
    all_runs: list[tuple[str, Run]] = field(factory=list)
    """Every run, with its slot."""
    come: Reached = field(factory=Reached)
    bags: dict[tuple[str, str], Bag] = field(factory=dict)
    due: dict[str, list[Incident]] = field(factory=dict)
    """Slot -> the failures that still come, if they do not follow time."""

    def __attrs_post_init__(self) -> None:
        for each in self.chronicle.incidents:
            if each.kind is Outside.FAIL:
                self.due.setdefault(each.slot, []).append(each)

    # --- how long things take

    def _drawn(self, process: Process, what: str) -> float:
        slot = self.slots.get(process.node.slot, "")
        key = slot, what
        if key not in self.bags:
            own = getattr(self.chronicle.spans.get(slot, Spans()), what)
            every = tuple(chain.from_iterable(getattr(each, what) for each in self.chronicle.spans.values()))
            self.bags[key] = Bag(self.choose, own or every)
        return self.bags[key].draw()

    def _step_s(self, process: Process) -> float | None:
        own = self.chronicle.spans.get(self.slots.get(process.node.slot, ""), Spans()).step_s
        others = _steps_s(self.chronicle)
        return own if own is not None else mean(others) if others else None

    def _pace(self, process: Process) -> Pace:
        step_s, known = self._step_s(process) or 0.0, self.saves
        return _pace_of(known, step_s, self.every_s) if known else Pace(step_s)

    @property
    def resumes(self) -> bool:
        """Return True if a restart begins after the last save."""
        return self.every_s is not None or (self.chronicle.program.resumes and self.saves is not None)

    @property
    def saves(self) -> Checkpoints | None:
        """Return how the program saves, if it tells of saves, and of steps between them."""
        known = self.chronicle.program.checkpoints
        return known if known and known.are_apart else None

    def _start_s(self, process: Process) -> tuple[float, bool]:
        """Return how long it takes to the first progress, and if the workers were standbys."""
        spans, is_cold = self.chronicle.spans.values(), process.node not in self.runs
        if not is_cold and self.standby_s is not None:
            return self.standby_s, True
        kinds = [name for name in ("warm", "standby") if any(getattr(each, name) for each in spans)]
        if is_cold or not kinds:
            return self._drawn(process, "cold"), False
        known = self.chronicle.spans.get(self.slots.get(process.node.slot, ""), Spans())
        share = Bag(self.choose, (*(0.0 for _ in known.warm), *(1.0 for _ in known.standby)) or (0.0,))
        name = kinds[-1] if len(kinds) == 1 or share.draw() else "warm"
        return self._drawn(process, name), name == "standby"

    def ready_s(self, process: Process) -> float | None:
        """Return how long after a notice the workers are ready to leave; None: they never said so. Then all have saved."""
        if not any(each.readies for each in self.chronicle.spans.values()):
            return None
        span = self._drawn(process, "readies")
        if self.resumes:
            self.future.at(self.future.now + span, self._is_safe, self._step_at)
        return span

    # --- what the simulated agent does with them (`workers.Wrapped`)

    def started(self, process: Process, world: World) -> None:
        now, program = self.future.now, self.chronicle.program
        again = process.node in self.runs and any(each.reexecs for each in self.chronicle.spans.values())
        exec_at = now + self._drawn(process, "reexecs" if again else "execs")
        start_s, standby = self._start_s(process) if program.speaks else (0.0, False)
        first_step = None if program.first is None else self._first_step(process, world.round, program.first)
        run = Run(
            process.attempt.number,
            world.round,
            exec_at,
            exec_at + start_s,
            first_step,
            self.come.reached.get(process.node),
            standby,
        )
        self.runs[process.node] = run
        self.all_runs.append((process.node.slot, run))
        self.future.at(exec_at, self._executed, process, run)
        if math.isfinite(at := self._succeeds_at(process, run)):
            self.future.at(at, self._succeeds, process, run)
        self._await_failures(process, run)

    def started_again(self, process: Process, rank: int) -> None:
        """Those that restart alone are not run again."""

    def moved(self, process: Process, world: World) -> None:
        """They run on."""

    def signalled(self, process: Process, signum: int) -> None:
        run = self.runs[process.node]
        if signum == SIGKILL or run.stops:
            return
        run.stops = True
        at = self.future.now + self._drawn(process, "stops")
        for rank, start in process.workers.items():
            if rank not in process.attempt.reported:
                self.future.at(at, self.workers.dies, process, rank, -signum, start)

    def released(self, process: Process) -> None:
        """Nobody asks that: the program ends by itself."""

    def has_entered(self, process: Process, rank: int) -> bool:
        return True

    def throws_out(self, process: Process) -> None:
        """They have no register of their own."""

    # --- a run

    def _first_step(self, process: Process, round: int, first: int) -> int:
        """Return the step with which the workers of this node begin in this round: those of a new agent as the others."""
        if self.resumes:
            if round not in self.come.firsts:
                self._resume(round)
                self.come.firsts[round] = first if self.come.safe is None else max(first, self.come.safe + 1)
            return self.come.firsts[round]
        if self.chronicle.program.lost is not None:
            if round not in self.come.firsts:
                self.come.firsts[round] = self._first_of_all(process, first)
            return self.come.firsts[round]
        own = self.come.reached.get(process.node)
        if own is None and round in self.come.firsts:
            return self.come.firsts[round]
        reached = max([*self.come.reached.values(), *self._unwritten()], default=None) if own is None else own
        if reached is None or not any(each.lost for each in self.chronicle.spans.values()):
            step = first
        else:
            step = max(first, reached + 1 - int(self._drawn(process, "lost")))
        return self.come.firsts.setdefault(round, step) if own is None else step

    def _first_of_all(self, process: Process, first: int) -> int:
        """Return the step with which the workers of all nodes of this node's world begin: as many steps before the furthest
        of them as in a recorded restart."""
        lost, reached = self.chronicle.program.lost, self._reached(process)
        if not lost or reached is None:
            return first
        return max(first, reached + 1 - int(self.bags.setdefault(("", "lost"), Bag(self.choose, lost)).draw()))

    def _reached(self, process: Process) -> int | None:
        """Return the step that the furthest of the nodes of this node's world had done, as far as anyone knows."""
        world = process.attempt.world
        assert world is not None  # it starts workers
        told = [self.come.reached[node] for node in world.nodes if node in self.come.reached]
        return max(told or [*self.come.reached.values(), *self._unwritten()], default=None)

    def _unwritten(self) -> Iterator[int]:
        """Yield the steps that nobody has written down: those of workers that died with their agent."""
        for node, run in self.runs.items():
            at = min(run.end_at, run.quiet_at)
            if (
                not self.witness.by_node[node].alive
                and (step := self._step_at(self.witness.by_node[node], run, at)) is not None
            ):
                yield step

    def _resume(self, round: int) -> None:
        """Note what is saved when a round begins. Where nothing is supposed, a save that was whole in the last moment, or
        would have been in the next, counts as in the recording: that is closer than a run can tell."""
        early, late = (self._safe(self._saved_at, late_s) for late_s in (-EDGE_S, EDGE_S))
        began = self.come.recorded.get(round)
        if early == late or began is None:
            self._is_safe(self._saved_at)
        else:
            self.come.safe = min((early, late), key=lambda step: abs((-1 if step is None else step) + 1 - began))

    def _is_safe(self, step_at: Callable[[Process, Run, float], int | None]) -> None:
        """Note the step that all workers of the last round had done, or saved, before they ended, as `step_at` tells."""
        self.come.safe = self._safe(step_at)

    def _safe(self, step_at: Callable[[Process, Run, float], int | None], late_s: float = 0.0) -> int | None:
        """Return that step, if they had ended so much later; of workers whose agent was killed nothing is told, unless saves
        are supposed."""
        last, now = max((run.round for run in self.runs.values()), default=None), self.future.now
        those = [(self.witness.by_node[node], run) for node, run in self.runs.items() if run.round == last]
        tell = [(process, run) for process, run in those if self.every_s is not None or not run.killed]
        steps = [step_at(process, run, min(run.end_at, run.quiet_at, now) + late_s) for process, run in tell]
        known = [step for step in steps if step is not None]
        if not known or len(known) < len(steps):
            return self.come.safe
        return min(known) if self.come.safe is None else max(self.come.safe, min(known))

    def _step_at(self, process: Process, run: Run, at: float) -> int | None:
        """Return the step that the workers have done by then."""
        if run.first_step is None or at < run.first_at:
            return None
        return self._no_later(run, self._pace(process).steps(at - run.first_at))

    def _saved_at(self, process: Process, run: Run, at: float) -> int | None:
        """Return the step that the workers have saved by then in this run."""
        pace = self._pace(process)
        if run.first_step is None or at < run.first_at or not (saves := pace.saves(at - run.first_at)):
            return None
        return self._no_later(run, pace.saved(saves)[1])

    def _no_later(self, run: Run, steps: int) -> int | None:
        """Return the step of a run after this number of steps: no later one than the last of the program."""
        assert run.first_step is not None
        done, last = run.first_step + steps, self.chronicle.program.last
        return done if last is None else min(done, max(last, run.first_step))

    def _executed(self, process: Process, run: Run) -> None:
        if process.alive and process.attempt.number == run.number and process.attempt.world is not None:
            self.hears(process, Started(run.round, tuple(range(1, 1 + len(process.workers))), self.future.now))

    def _succeeds_at(self, process: Process, run: Run) -> float:
        """Return when the workers succeed if nothing happens; never, if those that were recorded did not."""
        program, slot = self.chronicle.program, self.slots.get(process.node.slot, "")
        if run.first_step is not None:
            if program.last is None:
                return math.inf
            left = self._pace(process).lasts(max(program.last - run.first_step, 0))
            return run.first_at + left + self._drawn(process, "ends")
        spans = self.chronicle.spans.get(slot) or next(iter(self.chronicle.spans.values()))
        if spans.run_s is None:
            known = [each.run_s for each in self.chronicle.spans.values() if each.run_s is not None]
            return run.exec_at + max(known) if known else math.inf
        if goes_on(spans):
            return run.exec_at + max(spans.total_s - self._ran_s(process.node.slot), 0.0)
        return run.exec_at + spans.run_s

    def _succeeds(self, process: Process, run: Run) -> None:
        if self._runs(process, run):
            for rank, start in list(process.workers.items()):
                self.workers.dies(process, rank, 0, start)

    def _runs(self, process: Process, run: Run, hung: bool = False) -> bool:
        """Return True if these workers run, and do not end. `hung`: they may have made no progress for a while."""
        own = process.alive and process.attempt.number == run.number and bool(process.workers)
        return own and not run.stops and (hung or run.quiet_at == math.inf) and not process.attempt.reported

    def _ran_s(self, slot: str) -> float:
        """Return for how long the workers of this slot have run."""
        now = self.future.now
        return sum(max(min(run.end_at, now) - run.exec_at, 0.0) for of, run in self.all_runs if of == slot)

    def is_killed(self, process: Process) -> None:
        """Note that the agent of these workers is killed."""
        if run := self.runs.get(process.node):
            run.end_at, run.killed = min(run.end_at, self.future.now), True

    # --- failures

    def _await_failures(self, process: Process, run: Run) -> None:
        """Plan the failures of this slot that do not follow time, and come in this run."""
        if self.follows is Follows.TIME:
            return
        due = self.due.get(self.slots.get(process.node.slot, ""), ())
        times = ((self._comes_at(process, run, each), each) for each in due)
        for at, each in [(at, each) for at, each in times if at is not None]:
            self.future.at(at, self._comes, process, run, each)

    def _comes_at(self, process: Process, run: Run, failure: Incident) -> float | None:
        """Return when this failure comes if the run lasts that long; None: it has been passed."""
        if self.follows is Follows.NODE:
            left = failure.ran_s - self._ran_s(process.node.slot)
            return run.exec_at + left if left >= 0 else None
        if failure.step is None or run.first_step is None or self._step_s(process) is None:
            return run.exec_at + failure.run_s
        steps = failure.step - run.first_step
        return run.first_at + self._pace(process).lasts(steps) if steps >= 0 else None

    def _comes(self, process: Process, run: Run, failure: Incident) -> None:
        due = self.due.get(failure.slot, [])
        if failure in due and self._runs(process, run):
            due.remove(failure)
            self.fails(process, failure)

    def hangs(self, process: Process) -> None:
        """Let the workers of this node make no progress from now on."""
        for run in [self.runs[process.node]] if process.node in self.runs else []:
            run.quiet_at = min(run.quiet_at, self.future.now)

    def fails(self, process: Process, failure: Incident) -> None:
        """Let a worker of this node fail, if its workers run."""
        run, world = self.runs.get(process.node), process.attempt.world
        if run is None or world is None or not self._runs(process, run, failure.hung):
            return
        now, rank = self.future.now, min(process.workers)
        start = process.workers[rank]
        self.witness.lost_worlds.befalls(process, Kind.FAIL)
        self.witness.recoveries.befalls(Kind.FAIL)
        self.witness.blames.began(process.node, rank, world)
        self.witness.judge.saw(Failed(process.node, world.id))
        if failure.hung:
            run.hung.add(rank)
            run.quiet_at = min(run.quiet_at, now - failure.quiet_s)
        if failure.raises:
            process.attempt.reported[rank] = now
            self.workers.hear(process, Raised(rank, now, now))
            self.future.at(now + failure.span, self.workers.dies, process, rank, 1, start)
        else:
            self.workers.dies(process, rank, -SIGKILL if failure.hung else 1, start)

    # --- what is written down

    def ended(self, process: Process, rank: int) -> Iterator[Step]:
        """Yield what the agent writes down of a worker that has ended."""
        run, world, now = self.runs[process.node], process.attempt.world, self.future.now
        assert world is not None  # it has started workers
        run.end_at = math.inf if process.workers else now
        of_all = next(each.rank for each in assign(world)[process.node].workers if each.local_rank == rank)
        if rank in run.hung:
            yield HangEnd(world.round, of_all, now)
        began_at = min(run.exec_at, now)
        life = Worked(run.round, of_all, 0, run.standby, began_at, now, now, run.before)
        yield told(life, self._said(process, run, began_at, now))

    def _said(self, process: Process, run: Run, began_at: float, now: float) -> Said:
        program, until = self.chronicle.program, min(now, run.quiet_at)
        spans = tuple(self._spans(process, run, began_at, until))
        if not program.speaks or run.first_at > until:
            return Said(spans=spans)
        step, pace = self._step_at(process, run, until), self._pace(process)

        def mark(at: float) -> Mark:
            return Mark(at, self._busy_s(process, run, began_at, at, until))

        if step is None or run.first_step is None:
            return Said(mark(run.first_at), Mark(), mark(until), spans=spans)
        self.come.reached[process.node] = max(self.come.reached.get(process.node, step), step)
        passed = max(run.first_step, (run.before or 0) + 1)
        passed_at = run.first_at + pace.lasts(passed - run.first_step)
        last_at = run.first_at + pace.lasts(step - run.first_step)
        said = Said(mark(run.first_at), mark(passed_at), mark(last_at), run.first_step + 1, step + 1, spans=spans)
        saves, safe = pace.saves(until - run.first_at), self._saved_at(process, run, until)
        return (
            said
            if safe is None
            else said._replace(saved=safe + 1, saves=saves, saved_at=run.first_at + pace.saved(saves)[0])
        )

    def _busy_s(self, process: Process, run: Run, began_at: float, at: float, until: float) -> float:
        """Return the busy time until then of workers that live until `until`: beside the saves, a share of the time."""
        before_s = self.chronicle.program.busy_before * (run.first_at - began_at)
        own = {CHECKPOINT} if self.saves else set[str]()
        saves_s = sum(seconds for name, seconds in self._spans(process, run, began_at, at) if name in own)
        beside_s = sum(seconds for name, seconds in self._spans(process, run, began_at, until) if name not in own)
        share = (at - run.first_at) / (until - run.first_at) if until > run.first_at else 0.0
        return before_s + saves_s + max(beside_s - before_s, 0.0) * share

    def _spans(self, process: Process, run: Run, began_at: float, until: float) -> Iterator[tuple[str, float]]:
        """Yield the seconds of busy spans by name."""
        known = self.saves
        for name, share in self.chronicle.program.busy:
            if known is None or name != CHECKPOINT:
                yield name, share * max(until - began_at, 0.0)
            elif known.stop_s:
                yield name, self._pace(process).saving(max(until - run.first_at, 0.0)) * known.busy_s / known.stop_s


def goes_on(spans: Spans) -> bool:
    """Return True if a program that tells no steps goes on where it stopped: it has succeeded in a run that was shorter than
    one that did not."""
    return spans.run_s is not None and spans.longest_s > spans.run_s
