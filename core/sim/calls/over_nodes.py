"""Ranks that call wrapped functions, in the workers of simulated nodes: both worlds together, as the launcher joins them.

The nodes are a `World` of the simulator, with the restart scope `rank`. Their workers are ranks of a world of calls. All
ranks of one generation share a register of its name, and each generation has a fresh one. What the agent and the wrapper do
between the two is done here, by the same functions of the core:

- a worker starts: its rank begins its call, and is named as `adapters/inprocess/wrapper/parameters` names it;
- the agent sends SIGTERM: the rank is told to leave. SIGKILL, or the end of the node: its process is dead;
- a rank's call is over, or its process dies: the agent hears of a worker's exit;
- the agent hears that a node was evicted: it throws that node's ranks out (`core.node.eviction`), until none is left;
- the node cannot reach the store: neither can its ranks.

Time is the nodes' own. A step of a rank takes a moment of it; limits of ranks pass when they have rested for a while. The
function runs until its node is told that the work is done.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from attrs import define

from ...caller import Terms
from ...group import Phase
from ...group import Settings as GroupSettings
from ...group.state import SIGKILL
from ...inprocess import Settings as CallSettings
from ...inprocess.exits import CANCELLED, FINAL, HEARD, JOB_OVER, exit_code
from ...inprocess.words import Deadline, Raised, Span, StoreBack, StoreLost, Terminated, Timer
from ...node import eviction, is_forming, lost_parties, ranks_of
from ...policies import at_most, chain, fill_gaps, shift
from ...properties.facts import Fact, Wrote
from ...properties.judge import Judge, Property
from ...properties.law import Strength
from ...ranks import assign
from ...rendezvous import Evict, RendezvousState
from ...values import evolve
from ...violation import Finding
from ...world import Generation, Node, Party, Profile, came_later
from ...world import World as RunWorld
from ..chance import Choose, one
from ..kinds import Kind
from ..own import Own
from ..process import Process, Thread
from ..simulation import World
from ..story import Operation, Setting
from . import call_strength, laws, node_laws
from . import driver_steps as driver
from .call_world import PROFILE, At, Budget, Hang, Rank, Shape, born, changed, posted, put, settings_of
from .call_world import World as Calls
from .effects import step
from .moves import Move, faults, prompt_of, timed_of
from .register import edited

SOMETIMES: tuple[str, ...] = (
    *("a generation begins", "another generation begins", "a rank comes later", "a rank starts again"),
    *("ranks are thrown out with their node", "a first world begins without the ranks of a lost node"),
    *("ranks run on in another round of nodes", "ranks are told to stop", "ranks are killed"),
    *("ranks lose the store with their node", "the function is called again", "all ranks have returned"),
)
STEPS_S = (0.0, 0.0002, 0.001, 0.02)
"""How long a step of a rank takes."""
RESTS_S = (0.5, 3.0, 12.0)
"""For how long ranks have rested when a limit of theirs passes."""
SILENT_S = 31.0
"""After this long ranks hold each other for dead: the default of `heartbeat_timeout`, and more. Their agents know before."""
TOO_LATE_S = 130.0
"""For this long a rank waits for a world: the default of `barrier_timeout`, and more."""
OUTLIVES_S = 10.0
"""No worker outlives its agent for this long."""
ODDS = 20
"""One step in this many is a fault of a rank, while faults are left."""
PATIENT = (
    Timer.COMPLETION,
    Timer.CONFIRM,
    Timer.STORE,
    Timer.SHORT,
    Timer.SOFT,
    Timer.HARD,
    Timer.STEADY,
    Timer.MOVING,
)
"""Limits of a minute and more. One in `PATIENT_ODDS` passes while other nodes are on their way."""
PATIENT_ODDS = 8
RESTARTS_MAX = 1_000_000
ALONE_UP_TO = 1_000
"""Ranks write for themselves here: limits pass only after a rest, so nobody would lose patience with a proposal in time."""
KINDS = frozenset(
    (
        *("fails here", "fails there", "failed", "exited", "gave up", "hangs", "is stuck", "swallows", "dies"),
        *("abort hangs", "abort fails", "starves", "is cut off", "monitor dies", "is suspected", "is shown part"),
    )
)
"""The faults of ranks. SIGTERM comes from their agents; all else of nodes is the nodes' own."""
TERMS = (Terms(), Terms(shift()), Terms(chain(fill_gaps(), at_most(3))), Terms(chain(shift(), at_most(1))))


def as_launched(settings: GroupSettings) -> GroupSettings:
    """Return the settings of the worker group as the launcher makes them, which knows the exit codes of a wrapper."""
    alone = settings.alone and evolve(settings.alone, final=FINAL, job_over=JOB_OVER, heard=HEARD, cancelled=CANCELLED)
    return evolve(settings, alone=alone)


@define
class Home:
    """This says where the rank of a worker lives."""

    process: Process
    generation: Generation
    place: int


class OverNodes:
    """Nodes, with ranks in their workers. Raises Broken or Violation where a law is broken."""

    def __init__(self, choose: Choose, setting: Setting, tell: bool = False, also: tuple[Property, ...] = ()) -> None:
        self.choose = choose
        self.tells = tell
        self.told: list[str] = []
        self.nodes = World(setting, self._says if tell else None, also=(self._hears, *also), own=Own(group=as_launched))
        self.nodes.agents.workers.wrapped = self
        self.terms = one(choose, TERMS)
        self.budget = Budget(choose(7) * choose(2), choose(3))
        self.replace_s = one(choose, (0.0, 0.5))
        self.registers: dict[Generation, Calls] = {}
        self.homes: dict[tuple[Node, int], Home] = {}
        """(node, local rank) → where the rank of that worker lives. Of a dead one until the next start."""
        self.owners: dict[tuple[Generation, int], tuple[Process, int]] = {}
        self.throwing: dict[Node, bool] = {}
        """If each node's agent has something left to throw out of the register of its own ranks (`adapters/rendezvous`)."""
        self.unseated = frozenset[Node]()
        """The nodes that have lost their seats since they started their workers."""
        self.over = set[Generation]()
        """The generations that a failure, or a verdict, has ended."""
        self.done = set[Node]()
        """The nodes whose ranks' work is done: the function may return."""
        self.entered = set[tuple[Generation, int]]()
        """The places whose rank has taken a step in its call."""
        self.cut = set[tuple[Generation, int]]()
        """The ranks that cannot reach the store, because their node cannot."""
        self.seen = Counter[str]()
        self.strength = Strength()
        self.steps = 0
        self.turn = 0
        self.rests_since: float | None = None
        self.healed = False

    def does(self, operation: Operation) -> None:
        """Do this to the nodes. Raises Broken or Violation."""
        self.nodes.does(operation)
        self._syncs()

    # --- what the nodes tell

    def started(self, process: Process, world: RunWorld) -> None:
        """The workers of this node start: their ranks begin their calls."""
        register = self.nodes.store.register
        if register is not None and process.node in register.seats:
            self.unseated -= {process.node}  # else it has lost its seat already, and does not know
        self.done.discard(process.node)
        if world.generation not in self.registers:
            self.seen["another generation begins" if self.registers else "a generation begins"] += 1
            self.registers[world.generation] = self._calls()
        ranks = assign(world)[process.node]
        for worker in ranks.workers:
            party = Party(str(process.node), len(ranks.workers))
            self._begins(process, world, worker.local_rank, self._slot(world, worker.rank), party, ranks.world_size)
        self.throwing[process.node] = bool(process.agent.lost)
        self._stirs()

    def started_again(self, process: Process, rank: int) -> None:
        """A worker starts again by itself, in the place of its rank."""
        home = self.homes[process.node, rank]
        calls = self._moving(home.generation)
        dead = calls.ranks[home.place]
        self.seen["a rank starts again"] += 1
        slot, incarnation = dead.node
        again = born(
            slot,
            incarnation + 1,
            dead.held.who.settings,
            calls.terms,
            calls.calls,
            _of_party(Party(str(process.node), 1)),
        )
        self.registers[home.generation] = put(calls, home.place, driver.started(again))
        self._stirs()

    def moved(self, process: Process, world: RunWorld) -> None:
        """The living workers of this node are those of another round."""
        self.seen["ranks run on in another round of nodes"] += 1

    def signalled(self, process: Process, signum: int) -> None:
        """The agent signals its workers that live."""
        self.strength.armed["N1"] += 1
        node_laws.N1.judge(process, self._because(process))
        self.seen["ranks are killed" if signum == SIGKILL else "ranks are told to stop"] += 1
        if signum != SIGKILL:
            for rank in process.workers:
                home = self.homes[process.node, rank]
                self.registers[home.generation] = posted(self.registers[home.generation], home.place, Terminated())
            self._stirs()

    def has_entered(self, process: Process, rank: int) -> bool:
        """Return True if a process of this rank has entered its call: others may have met it there."""
        home = self.homes[process.node, rank]
        return (home.generation, home.place) in self.entered

    def released(self, process: Process) -> None:
        if process.workers and process.node not in self.done:
            self.done.add(process.node)
            self._stirs()

    def _because(self, process: Process) -> Iterator[str]:
        """Yield what this agent may stop its ranks for."""
        yield from node_laws.may_stop(process, self.nodes.future.now)
        if process.node in self.unseated:
            yield "its seat is lost"
        if process.attempt.world and process.attempt.world.generation in self.over:
            yield "its generation is over"

    def _hears(self, judge: Judge, fact: Fact) -> Iterable[Finding]:
        """Hear a fact of the nodes."""
        if isinstance(fact, Wrote):
            self._wrote(fact.before, fact.after)
        return ()

    def throws_out(self, process: Process) -> None:
        """This node's agent knows of another lost node: it throws that node's ranks out."""
        self.throwing[process.node] = True
        self._stirs()

    def _wrote(self, before: RendezvousState | None, after: RendezvousState) -> None:
        if before is None:
            return
        self.unseated |= before.seats.keys() - after.seats.keys()
        if after.closed or after.generation != before.generation or after.job != before.job:
            self.over.add(Generation(before.job, before.generation))

    # --- ranks come and go

    def _calls(self) -> Calls:
        budget = Budget() if self.healed else self.budget
        return Calls(None, (), self.terms, budget, KINDS, CallSettings(replace_wait=self.replace_s), clean=False)

    def _slot(self, world: RunWorld, rank: int) -> str:
        later = world.round != world.generation.round
        self.seen["a rank comes later"] += later
        return came_later(rank, world.round) if later else str(rank)

    def _begins(
        self, process: Process, world: RunWorld, local_rank: int, slot: str, party: Party, world_size: int
    ) -> None:
        key, calls = world.generation, self.registers[world.generation]
        settings = evolve(
            settings_of(Shape(world_size, 1, RESTARTS_MAX, replace_s=self.replace_s)),
            upscale_after=0.0,
            helping_above=ALONE_UP_TO,
        )
        earlier = [rank.node.incarnation for rank in calls.ranks if rank.node.slot == slot]
        rank = born(slot, max(earlier, default=0) + 1, settings, calls.terms, calls.calls, _of_party(party))
        place = len(calls.ranks)
        moving = calls.moving or key.round != world.round
        self.registers[key] = evolve(calls, ranks=(*calls.ranks, driver.started(rank)), moving=moving)
        self.homes[process.node, local_rank] = Home(process, key, place)
        self.owners[key, place] = process, local_rank

    def _moving(self, key: Generation) -> Calls:
        """Return the ranks of this generation, and note that not all that began are there any longer."""
        self.registers[key] = evolve(self.registers[key], moving=True)
        return self.registers[key]

    def _syncs(self) -> None:
        """Let ranks die with their workers and nodes, workers end with their ranks, and the store be as far for both."""
        for key, calls in self.registers.items():
            for place, rank in enumerate(calls.ranks):
                if rank.monitor or rank.runs or self._works(key, place):
                    self._syncs_one(key, place)

    def _works(self, key: Generation, place: int) -> bool:
        """Return True if the agent counts the process of this rank as living."""
        process, local_rank = self.owners[key, place]
        home = self.homes[process.node, local_rank]
        return home.generation == key and home.place == place and local_rank in process.workers

    def _syncs_one(self, key: Generation, place: int) -> None:
        process, local_rank = self.owners[key, place]
        rank, works = self.registers[key].ranks[place], self._works(key, place)
        if rank.runs and not works:
            calls = self._moving(key)
            self.registers[key] = changed(calls, place, alive=False, monitor=process.alive)
        elif works and not rank.runs:
            code = self._code(rank)
            self._moving(key)
            if code:
                self.nodes.witness.recoveries.befalls(Kind.FAIL)
            self.nodes.agents.workers.dies(process, local_rank, code, process.workers[local_rank])
        elif not process.alive and not process.workers:
            self.registers[key] = changed(self.registers[key], place, monitor=False)
        self._reaches(key, place, process)

    def _code(self, rank: Rank) -> int:
        """Return the exit code of the process of this rank."""
        self.strength.armed["N1"] += 1
        node_laws.N1.judge(None, (), rank)
        if isinstance(rank.returned, Raised):
            return exit_code(rank.returned.reason, rank.call.closing) or 1
        self.seen["all ranks have returned"] += rank.returned is not None
        return 137 if rank.returned is None else 0

    def _reaches(self, key: Generation, place: int, process: Process) -> None:
        rank, away = self.registers[key].ranks[place], self._is_away(process)
        if rank.runs and away and not rank.cut_off:
            self.seen["ranks lose the store with their node"] += 1
            self.cut.add((key, place))
            self.registers[key] = posted(self.registers[key], place, StoreLost(), cut_off=True)
            self._stirs()
        elif not away and (key, place) in self.cut:
            self.cut.discard((key, place))
            if rank.runs:
                self.registers[key] = posted(self.registers[key], place, StoreBack(), cut_off=False)

    def _is_away(self, process: Process) -> bool:
        """Return True if the ranks of this node do not reach the store: their agent carries what they ask."""
        now, store = self.nodes.future.now, self.nodes.store
        until = max(
            process.stalls.until(Thread.PROCESS),
            process.trouble.cut_until,
            store.down_until,
            store.full_until,
        )
        return not process.alive or until > now

    # --- the steps of ranks

    def heals(self) -> None:
        """End all faults of ranks."""
        self.healed = True
        self.registers = {key: evolve(calls, budget=Budget()) for key, calls in self.registers.items()}

    def ends(self) -> None:
        """Judge the ranks when all nodes are gone. Those of a killed agent may have outlived it for a while."""
        self.nodes.future.passes(self.nodes.future.now + OUTLIVES_S)
        self._syncs()
        for calls in self.registers.values():
            laws.ended(calls)
            call_strength.counts_end(self.strength, calls)

    def _stirs(self) -> None:
        """Something has changed for the ranks: they go on soon."""
        self.rests_since = None
        self._plans(one(self.choose, STEPS_S))

    def _plans(self, span: float) -> None:
        self.turn += 1
        self.nodes.future.at(self.nodes.future.now + span, self._goes_on, self.turn)

    def _goes_on(self, turn: int) -> None:
        """Take one step of one rank, or of an agent that throws ranks out."""
        if turn != self.turn:
            return
        rested = self.rests_since
        self._syncs()
        if turn != self.turn:
            return  # the end of a worker has stirred the others
        if self._one_step():
            self.rests_since = None
            self._plans(one(self.choose, STEPS_S))
            return
        now = self.nodes.future.now
        if rested is None:
            self._judges_rest()
            self.rests_since = now
        elif self._one_late_step(now - rested):
            self.rests_since = None
            self._plans(one(self.choose, STEPS_S))
            return
        if any(rank.runs for calls in self.registers.values() for rank in calls.ranks):
            self._plans(one(self.choose, RESTS_S))

    def _live(self) -> list[Generation]:
        keys = [key for key, calls in self.registers.items() if any(rank.runs or rank.monitor for rank in calls.ranks)]
        first = self.choose(len(keys)) if keys else 0
        return [*keys[first:], *keys[:first]]

    def _one_step(self) -> bool:
        for key in self._live():
            calls = self.registers[key]
            if calls.budget.faults and not self.choose(ODDS) and (extra := self._faults(calls)):
                return self._takes(key, one(self.choose, extra))
            if not self.choose(3) and self._throws_out(key):
                return True
            count, first = len(calls.ranks), self.choose(len(calls.ranks))
            for place in range(count):
                moves = [move for move in prompt_of(calls, (first + place) % count) if self._may(key, calls, move)]
                if moves:
                    return self._takes(key, one(self.choose, moves))
            if self._throws_out(key):
                return True
        return False

    def _faults(self, calls: Calls) -> list[Move]:
        kinds = list(dict.fromkeys(move.what for move in faults(calls)))
        chosen = one(self.choose, kinds) if kinds else None
        return [move for move in faults(calls) if move.what == chosen]

    def _may(self, key: Generation, calls: Calls, move: Move) -> bool:
        """Return True if this move can come: the function returns when its node's work is done."""
        main = calls.ranks[move.rank].main
        works = move.what == "main thread ends" and main.span is Span.FUNCTION
        return not works or self.owners[key, move.rank][0].node in self.done

    def _one_late_step(self, rested: float) -> bool:
        for key in self._live():
            calls = self.registers[key]
            for place in range(len(calls.ranks)):
                moves = [move for move in timed_of(calls, place) if self._may_be_late(key, calls, move, rested)]
                if moves:
                    return self._takes(key, one(self.choose, moves))
        return False

    def _may_be_late(self, key: Generation, calls: Calls, move: Move, rested: float) -> bool:
        rank = calls.ranks[move.rank]
        if (key, move.rank) in self.cut and move.what in ("is reached again", "gives the store up"):
            return False  # its node will be, and is waited for
        if move.what == "driver is too late":
            return rested >= TOO_LATE_S
        if move.what == "driver asks late" and rested < SILENT_S:
            return not any(_is_silent(calls, rank) for rank in calls.ranks)
        if not isinstance(move.how, Deadline) or move.how.timer not in PATIENT:
            return True
        if rank.main.at is At.USER and rank.main.hang is Hang.NO and rank.main.span is Span.FUNCTION:
            return False  # it makes progress
        return rank.main.at is At.USER or rested >= TOO_LATE_S or not self.choose(PATIENT_ODDS)

    def _takes(self, key: Generation, move: Move) -> bool:
        """Let this move happen, and judge it."""
        before = self.registers[key]
        self.steps += 1
        self.entered.add((key, move.rank))
        if self.tells:
            process, _ = self.owners[key, move.rank]
            self._says(self.nodes.future.now, process.name, f"rank {before.ranks[move.rank].node}: {move}")
        after = self.registers[key] = step(before, move, self._notes)
        call_strength.counts_step(self.strength, before, move, after)
        return True

    def _notes(self, word: str) -> None:
        self.seen[word] += 1

    def _throws_out(self, key: Generation) -> bool:
        """Let one agent take its next step in throwing the ranks of lost nodes out of this register."""
        for node, is_pending in self.throwing.items():
            process = self.nodes.by_node[node]
            agent = process.agent
            if is_pending and self._uses(process, key) and not self._is_away(process) and agent.state:
                calls = self.registers[key]
                edit = calls.register and eviction(calls.register, lost_parties(agent.lost), ranks_of(agent.state))
                if edit:
                    self._writes(key, process, edit)
                    return True
                self.throwing[node] = is_forming(calls.register)
        return False

    def _uses(self, process: Process, key: Generation) -> bool:
        """Return True if a rank of this node lives in the register of this generation."""
        return any(self.homes[process.node, rank].generation == key for rank in process.workers)

    def _writes(self, key: Generation, by: Process, edit: object) -> None:
        calls = self._moving(key)
        self.steps += 1
        if isinstance(edit, Evict):
            for place, rank in enumerate(calls.ranks):
                if rank.node in edit.dead:
                    self.strength.armed["N2"] += 1
                    node_laws.N2.judge(by, rank, self.owners[key, place][0], self.unseated)
            self.seen["ranks are thrown out with their node"] += 1
        else:
            held = by.agent.state
            assert calls.register and held
            self.strength.armed["N4"] += 1
            node_laws.N4.judge(by, calls.register, held)
            self.seen["a first world begins without the ranks of a lost node"] += 1
        if self.tells:
            self._says(self.nodes.future.now, by.name, f"writes into its ranks' register: {edit}")
        self.registers[key] = edited(calls, edit, by.node, waited=True)  # type: ignore[arg-type]

    def _judges_rest(self) -> None:
        """Judge the ranks when nothing moves that needs no time."""
        register = self.nodes.store.register
        for key, calls in self.registers.items():
            seated = [
                rank
                for place, rank in enumerate(calls.ranks)
                if rank.runs and self._is_seated(register, self.owners[key, place][0], key)
            ]
            self.strength.armed["N3"] += len(seated)
            node_laws.N3.judge(calls, seated)

    def _is_seated(self, register: RendezvousState | None, process: Process, key: Generation) -> bool:
        group = process.group
        seated = register is not None and process.node in register.seats and not register.closed
        return seated and group.phase is Phase.RUNNING and not group.deadline and self._is_of(register, key)

    def _is_of(self, register: RendezvousState | None, key: Generation) -> bool:
        return register is not None and Generation(register.job, register.generation) == key

    def _says(self, at: float, who: str, what: str) -> None:
        self.told.append(f"{at:10.3f} s  {who:<6} {what}")


def _is_silent(calls: Calls, rank: Rank) -> bool:
    """Return True if nobody speaks for this rank any longer, and it has its seat."""
    return not (rank.runs or rank.monitor) and calls.register is not None and rank.node in calls.register.seats


def _of_party(party: Party) -> Profile:
    return evolve(PROFILE, party=party)
