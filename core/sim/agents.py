"""The agents of simulated nodes: events -> `core.group.transition` -> commands carried out. The counterpart of
`adapters/agent/agent.py`.

Each has a rendezvous loop, a heart and workers, which tell it what happens; it alone holds the group.
"""

from __future__ import annotations

import math

from attrs import define, field

from ..group import Group, Phase, begin, transition
from ..group.state import (
    Beaten,
    Check,
    Command,
    Elapsed,
    Event,
    Join,
    Move,
    Noticed,
    Over,
    ReadyToLeave,
    Record,
    RecordUnfit,
    RecordUnstartable,
    Signal,
    Signalled,
    Start,
    StartAgain,
    Tell,
)
from ..node import farewell, follows, requested
from ..properties.facts import Began, Stepped
from ..rendezvous import Errand, Prepared, Request, Standstill, Violation, reserve
from ..world import Notice, Profile
from . import narration, sometimes
from .chance import Choose
from .future import Future
from .hang_watches import HangWatches
from .hearts import Hearts
from .kinds import Kind
from .network import Network
from .process import Process
from .raises import Raises
from .rendezvous_loops import RendezvousLoops
from .story import Setting
from .witness import Witness
from .workers import Workers

TOLD = (Signalled, Noticed, ReadyToLeave, Over)
"""The judge is told of these events, though nothing may follow from them."""


@define
class Agents:
    setting: Setting
    choose: Choose
    future: Future
    network: Network
    witness: Witness
    turns_max: int
    """A group whose timer passes more often than this at one point in time spins."""
    loops: RendezvousLoops = field(init=False)
    hearts: Hearts = field(init=False)
    workers: Workers = field(init=False)
    hangs: HangWatches | None = None
    steps: int = 0

    def __attrs_post_init__(self) -> None:
        setting, choose, future = self.setting, self.choose, self.future
        network, witness = self.network, self.witness
        self.loops = RendezvousLoops(setting, choose, future, network, witness, self.hear, self.turns_max)
        self.hearts = Hearts(setting.interval, future, network, witness, self.hear)
        self.workers = Workers(
            setting, choose, future, network, witness.judge, witness.seen, witness.befalls, self.hear
        )
        if setting.echoes:
            parts = choose, future, network, witness.by_node, witness.judge, witness.seen, self.hear
            befalls = witness.lost_worlds.befalls
            self.workers.raises = Raises(*parts, befalls, self.workers.dies, witness.blames)

    def start(self, process: Process) -> None:
        self.hearts.sleep_until_beat(process)
        if self.setting.standbys:
            self._prepares(process)
        if self.hangs:
            self.hangs.starts(process)
        now = process.clock.shows(self.future.now)
        self.witness.judge.saw(Began(process.node, now))
        process.group, commands = begin(process.group, now)
        self._carry_out(process, commands)

    def _is_over(self, process: Process) -> None:
        """The group has ended; the agent does what is left to do."""
        outcome = process.agent.outcome = process.group.outcome
        assert outcome is not None
        self.witness.narrates(process.name, f"ends: {narration.outcome(outcome)}")
        if last := farewell(outcome):
            self.loops.submit(process, last)
        else:
            self.loops.end(process)

    # --- what they hear

    def are_signalled(self, process: Process, signum: int) -> None:
        if self.network.waits(process, self.are_signalled, process, signum):
            return
        if process.agent.outcome is not None:
            self.loops.end(process)  # it lingers no longer
        else:
            self.hear(process, Signalled(signum, process.clock.shows(self.future.now)))

    def stand_still(self, process: Process) -> None:
        """Let a node hear that none of its workers makes progress from now on."""
        if self.hangs:
            self.hangs.hangs(process)
        self._hears_of_it(process)

    def _hears_of_it(self, process: Process) -> None:
        if not self.network.waits(process, self._hears_of_it, process):
            self.loops.hears(process, Standstill(process.clock.shows(self.future.now)))

    def are_noticed(self, process: Process, notice: Notice) -> None:
        if not self.network.waits(process, self.are_noticed, process, notice):
            self.hear(process, Noticed(notice, process.clock.shows(self.future.now)))

    def hear(self, process: Process, event: Event) -> None:
        self.steps += 1
        now = process.clock.shows(self.future.now)
        before = process.group
        after, commands = transition(before, event)
        process.group = after
        is_news = after.phase is not before.phase or after.joins is not before.joins
        if commands or is_news or isinstance(event, TOLD):
            witness = self.witness
            witness.judge.saw(Stepped(before, event, after, commands, now))
            sometimes.stepped(witness.counts, witness.causes, before, event, after)
            if witness.tell and after.phase is not before.phase:
                witness.narrates(process.name, f"{before.phase.value} → {after.phase.value}")
            self._carry_out(process, commands)
        elif before.phase is Phase.HELD:
            sometimes.stepped(self.witness.counts, self.witness.causes, before, event, after)
        if after.phase is Phase.ENDED:
            if process.agent.outcome is None:
                self._is_over(process)
        elif not is_news and isinstance(event, Beaten):
            pass  # a heartbeat alone only puts off what the timer waits for
        elif after.phase is not Phase.JOINING and not _waits_untimed(after):
            self._set_timer(process)
        if after.phase is not before.phase:
            if after.drained and not before.drained:
                self.witness.recoveries.befalls(Kind.NOTICE)
            self.witness.moved()
        if consequence := follows(event, after, now):
            self.hear(process, consequence)

    def _set_timer(self, process: Process) -> None:
        until = process.group.until
        if until is None:
            return
        at = process.clock.true(until)
        if at < process.agent.elapse_at:
            process.agent.elapse_at = at
            self.future.at(at, self._elapses, process, at)

    def _elapses(self, process: Process, at: float) -> None:
        if process.agent.elapse_at != at or self.network.waits(process, self._elapses, process, at):
            return
        agent = process.agent
        agent.elapse_at = math.inf
        agent.elapses = agent.elapses + 1 if agent.elapsed_at == self.future.now else 0
        agent.elapsed_at = self.future.now
        if agent.elapses >= self.turns_max:
            raise Violation("L6", f"the timer of {process.name} passes without end")
        until, now = process.group.until, process.clock.shows(self.future.now)
        if until is not None and now >= until:
            self.hear(process, Elapsed(now))
        else:
            self._set_timer(process)

    # --- what they do

    def _carry_out(self, process: Process, commands: tuple[Command, ...]) -> None:
        items = list[Request | Errand]()
        for command in commands:
            profile = self._profile(process) if isinstance(command, Join) else process.held.profile
            holds_back = isinstance(command, Join) and process.agent.prepared_at > self.future.now
            if request := requested(command, profile, holds_back):
                process.agent.holds_back = holds_back
                items.append(request)
            elif isinstance(command, Record | RecordUnstartable | RecordUnfit):
                items.append(Errand(command))
                if process.held.state is not None:
                    process.memory.records.append((process.held.state.job, command))
                if isinstance(command, Record):
                    self.witness.blames.tells(process, command)
            else:
                self._do_now(process, command)
                if isinstance(command, Start | Move) and process.attempt.idle and process.workers:
                    items.append(Request(reserve))
        if items:
            self.loops.submit(process, *items)

    def _do_now(self, process: Process, command: Command) -> None:
        match command:
            case Start(world):
                self.workers.start(process, world)
                if self.setting.standbys:
                    self._prepares(process)
            case Move(world):
                self.workers.move(process, world)
            case StartAgain(local_rank):
                self.workers.start_again(process, local_rank)
            case Signal(children=True):
                pass  # simulated workers have none
            case Signal(signum, spared):
                self.workers.are_signalled(process, signum, spared or frozenset())
            case Tell(notice):
                self.workers.are_told(process, notice)
            case Check():
                self.workers.check(process)
            case _:
                self.hearts.beat_now(process)

    def _profile(self, process: Process) -> Profile:
        """Return this node's profile, with an endpoint of its own for each start of its workers."""
        return self.setting.profile(process.node.slot, 2 + process.attempt.number, process.launch.program)

    # --- standbys

    def _prepares(self, process: Process) -> None:
        """Start the node's standbys."""
        share = 1.0 if self.setting.seed == 0 else (1 + self.choose(1_000)) / 1_000
        process.agent.prepared_at = self.future.now + share * self.setting.standbys
        self.future.at(process.agent.prepared_at, self._is_prepared, process)

    def _is_prepared(self, process: Process) -> None:
        """Let the node ask for a seat, if its standbys are what it waits for."""
        if self.network.waits(process, self._is_prepared, process):
            return
        if process.agent.holds_back and process.agent.prepared_at <= self.future.now:
            process.agent.holds_back = False
            was_late = sometimes.holds_back(process.held)
            self.witness.counts["held back until its standbys were ready"] += was_late
            self.witness.judge.strength.armed["O10"] += was_late
            self.loops.submit(process, Prepared())


def _waits_untimed(group: Group) -> bool:
    """Return True for a group at the exit barrier that nothing hurries."""
    return group.phase is Phase.BARRIER and group.notice is None and group.heard_at is None
