"""The agents of simulated nodes: events -> `core.agent.step` -> effects. The counterpart of `adapters/agent/agent.py`.

Each has a rendezvous loop, a heart and workers, which tell it what happens; it alone takes steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias, assert_never

from attrs import define, field

from ..agent import (
    Acknowledged,
    Effect,
    Event,
    FollowLinks,
    FollowWorkers,
    Hear,
    PutStacks,
    Reply,
    Report,
    Rest,
    See,
    Settled,
    Stepped,
    Submit,
    Suspect,
    ThrowOut,
    begin,
    step,
)
from ..group import Group, Phase
from ..group.state import (
    Beat,
    Beaten,
    Check,
    Elapsed,
    Move,
    Noticed,
    Over,
    ReadyToLeave,
    Record,
    RecordUnfit,
    RecordUnstartable,
    Refused,
    Signal,
    Signalled,
    Start,
    StartAgain,
    Tell,
    Unstartable,
)
from ..properties import facts
from ..rendezvous import Advance, Errand, Prepared, Request, Seen, Standstill, Violation, join, reserve
from ..values import evolve
from ..world import Notice, Profile, Why
from . import narration, sometimes
from .agent_laws import answers, hears
from .chance import Choose
from .future import Future
from .hang_watches import HangWatches
from .hearts import Hearts
from .kinds import Kind
from .network import Network
from .process import Process
from .raises import Raises
from .recording import Recording
from .rendezvous_loops import RendezvousLoops
from .stack_laws import StackJudge
from .story import Setting
from .witness import Witness
from .workers import Workers

TOLD = (Signalled, Noticed, ReadyToLeave, Over, Elapsed)
"""The judge hears these events, though nothing may follow from them."""

ByParts: TypeAlias = (
    Beat
    | Check
    | FollowWorkers
    | Move
    | PutStacks
    | Reply
    | Report
    | Rest
    | See
    | Signal
    | Start
    | StartAgain
    | Suspect
    | Tell
    | ThrowOut
)
"""The effects that the parts of a process carry out."""


@define
class Agents:
    setting: Setting
    choose: Choose
    future: Future
    network: Network
    witness: Witness
    turns_max: int
    """A group whose timer passes more often than this at one point in time spins."""
    succeeds: Callable[[Process], None]
    """The launcher of this process starts the agent again, as the successor of a dead one."""
    loops: RendezvousLoops = field(init=False)
    hearts: Hearts = field(init=False)
    workers: Workers = field(init=False)
    stacks: StackJudge = field(init=False)
    hangs: HangWatches | None = None
    recording: Recording | None = None
    steps: int = 0

    def __attrs_post_init__(self) -> None:
        setting, choose, future = self.setting, self.choose, self.future
        network, witness = self.network, self.witness
        self.loops = RendezvousLoops(setting, choose, future, network, witness, self.hear, self.turns_max)
        self.stacks = StackJudge(witness.judge.strength)
        self.hearts = Hearts(setting.interval, future, network, witness, choose, self.hear)
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
        self.witness.judge.saw(facts.Began(process.node, now))
        if not process.launch.able:
            self.witness.seen("a node finds before it joins that it cannot start workers")
            self.hear(process, Unstartable("no such program", now))
            return
        process.agent, effects = begin(process.agent, now)
        self._records(process, effects, now)
        self._carry_out(process, effects)

    # --- what they hear

    def are_signalled(self, process: Process, signum: int) -> None:
        if self.network.waits(process, self.are_signalled, process, signum):
            return
        self.hear(process, Signalled(signum, process.clock.shows(self.future.now)))

    def stand_still(self, process: Process) -> None:
        """Let a node hear that none of its workers makes progress from now on."""
        if self.hangs:
            self.hangs.hangs(process)
        self._hears_of_it(process)

    def _hears_of_it(self, process: Process) -> None:
        if not self.network.waits(process, self._hears_of_it, process):
            self.loops.hears(process, Standstill(process.clock.shows(self.future.now)))

    def advances(self, process: Process) -> None:
        """Let a node hear that a worker of its world has passed all steps that were reached before."""
        world = process.attempt.world
        if world is not None and not self.network.waits(process, self.advances, process):
            self.loops.hears(process, Advance(world.round))

    def are_noticed(self, process: Process, notice: Notice, unfit: bool | None = None) -> None:
        if not self.network.waits(process, self.are_noticed, process, notice, unfit):
            self.hear(process, Noticed(notice, process.clock.shows(self.future.now), unfit=unfit))

    def hear(self, process: Process, event: Event) -> None:
        now = process.clock.shows(self.future.now)
        before = process.agent
        process.agent, effects = step(before, event, now)
        hears(self.witness.judge.strength, before, event, process.agent, effects)
        if type(event) is not Acknowledged:
            answers(self.witness.judge.strength, before, event, process.agent, effects)
        self._records(process, effects, now)
        if type(event) is Acknowledged and len(effects) == 1 and before.group.phase is not Phase.HELD:
            self.steps += 1  # by far the most: a heartbeat only puts off what the timer waits for
            process.heart.beaten_at = event.sent_at
            return
        if type(event) is Seen and len(effects) == 1:
            self._carry_out(process, effects)
            return
        stepped = effects[0] if effects else None
        if type(stepped) is Stepped:
            self._moves(process, stepped, effects, now)
        else:
            self._carry_out(process, effects)
            self._ends(process)

    def records(self, recording: Recording) -> None:
        """Have written down what all agents do from now on."""
        self.recording = self.loops.recording = recording

    def _records(self, process: Process, effects: tuple[Effect, ...], now: float) -> None:
        if self.recording is not None and effects and isinstance(effects[0], Stepped):
            self.recording.stepped(process, effects[0], now)

    def _ends(self, process: Process) -> None:
        """End the agent, if nothing is left to do for it."""
        if process.agent.group.phase is Phase.ENDED and not process.agent.lingers and process.alive:
            self.loops.end(process)
            if isinstance(last := process.agent.outcome, Refused) and last.why is Why.BEHIND:
                self.succeeds(process)

    def _moves(self, process: Process, stepped: Stepped, effects: tuple[Effect, ...], now: float) -> None:
        """Let this step of the group be judged, and its effects follow."""
        self.steps += 1
        event, before, after, commands = stepped.event, stepped.before, stepped.after, stepped.commands
        assert event is not None
        if is_beat := isinstance(event, Beaten):
            process.heart.beaten_at = event.sent_at
        is_news = after.phase is not before.phase or after.joins is not before.joins
        if commands or is_news or isinstance(event, TOLD):
            witness = self.witness
            witness.judge.saw(facts.Stepped(before, event, after, commands, now))
            world = process.agent.world
            self.stacks.hear(stepped, effects, world.round if world else None)
            sometimes.stepped(witness.counts, witness.causes, before, event, after)
            if witness.tell and after.phase is not before.phase:
                witness.narrates(process.name, f"{before.phase.value} → {after.phase.value}")
            if after.phase is Phase.ENDED and (outcome := after.outcome):
                witness.narrates(process.name, f"ends: {narration.outcome(outcome)}")
        elif before.phase is Phase.HELD:
            sometimes.stepped(self.witness.counts, self.witness.causes, before, event, after)
        consequence = self._carry_out(process, effects[1:]) if len(effects) > 1 else None
        if after.phase is Phase.ENDED:
            self._ends(process)
        elif is_beat and not is_news:
            pass  # a heartbeat alone only puts off what the timer waits for
        elif after.phase is not Phase.JOINING and not _waits_untimed(after):
            self._set_timer(process)
        if after.phase is not before.phase:
            if after.is_drained and not before.is_drained:
                self.witness.recoveries.befalls(Kind.NOTICE)
            self.witness.moved()
        if consequence:
            self.hear(process, consequence)

    def _set_timer(self, process: Process) -> None:
        until = process.group.until
        if until is None:
            return
        at = process.clock.true(until)
        if at < process.main.elapse_at:
            process.main.elapse_at = at
            self.future.at(at, self._elapses, process, at)

    def _elapses(self, process: Process, at: float) -> None:
        if process.main.elapse_at != at or self.network.waits(process, self._elapses, process, at):
            return
        agent = process.main
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

    def _carry_out(self, process: Process, effects: tuple[Effect, ...]) -> Event | None:
        """Carry these out, and submit together what is for the rendezvous. Return what is to be heard next."""
        items: list[Request | Errand | Prepared] = []
        consequence: Event | None = None
        for effect in effects:
            match effect:
                case Stepped():
                    pass
                case FollowLinks():
                    if self.setting.links:
                        self.loops.links.follow(process)
                case Submit(Request(handler) as request) if handler is join:
                    items.append(evolve(request, profile=self._profile(process)))
                case Submit(item):
                    items.append(item)
                case Record() | RecordUnstartable() | RecordUnfit():
                    items.append(self._puts_on_record(process, effect))
                case Hear(event):
                    consequence = event
                case other:
                    self._does(process, other)
                    if isinstance(other, Start | Move) and process.attempt.idle and process.workers:
                        items.append(Request(reserve))
        if items:
            self.loops.submit(process, *items)
        return consequence

    def _puts_on_record(self, process: Process, record: Record | RecordUnstartable | RecordUnfit) -> Errand:
        if process.held.view.state is not None:
            process.memory.records.append((process.held.view.state.job, record))
        if isinstance(record, Record):
            self.witness.blames.tells(process, record)
        return Errand(record)

    def _does(self, process: Process, effect: ByParts) -> None:
        match effect:
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
            case Beat():
                self.hearts.is_asked(process)
            case ThrowOut():
                self.workers.throws_out(process)
            case See() | PutStacks() | Suspect() | Report():
                if isinstance(effect, Suspect):
                    self.stacks.suspects(process.node, effect)
                if self.hangs:
                    self.hangs.does(process, effect)
            case FollowWorkers() | Rest() | Reply():
                pass  # simulated workers stand still when they are told to, standbys start at once, and nobody asks
            case other:
                assert_never(other)

    def _profile(self, process: Process) -> Profile:
        """Return this node's profile, with an endpoint of its own for each start of its workers."""
        launch = process.launch
        return self.setting.profile(
            process.node.slot, 2 + process.attempt.number, launch.program, launch.is_local, launch.arguments
        )

    # --- standbys

    def _prepares(self, process: Process) -> None:
        """Start the node's standbys."""
        share = 1.0 if self.setting.seed == 0 else (1 + self.choose(1_000)) / 1_000
        process.main.prepared_at = self.future.now + share * self.setting.standbys
        self.future.at(process.main.prepared_at, self._is_prepared, process)
        self.hear(process, Settled(are_settled=False))

    def _is_prepared(self, process: Process) -> None:
        """Let the node hear that its standbys are ready, if they still are."""
        if self.network.waits(process, self._is_prepared, process) or process.main.prepared_at > self.future.now:
            return
        if process.agent.holds_back:
            was_late = sometimes.holds_back(process.held)
            self.witness.counts["held back until its standbys were ready"] += was_late
            self.witness.judge.strength.armed["O10"] += was_late
        self.hear(process, Settled(are_settled=True))


def _waits_untimed(group: Group) -> bool:
    """Return True for a group at the exit barrier that nothing hurries."""
    return group.phase is Phase.BARRIER and group.deadline is None and group.course.heard_at is None
