"""torch's rendezvous and ours decide alike in the same sequence of calls, where both are meant to do the same.

torch's side is its own handler in virtual time (torchnode), without its agent. Ours is `turn` in a small world. The calls:

- join: a node comes to the first round, to one that lacks members, behind a complete one, above the maximum, or too late
- leave: a participant goes before the round is complete (torch: `_RendezvousExitOp`, as at the start of each
  `next_rendezvous`); it may join again
- crash: a participant of an open round, or a node that waits, dies; both must notice it
- last call: its time passes
- time-out: nobody comes to an open round below its minimum for as long as a joiner waits
- close: a node that is no member closes the job

After each call, when all nodes are at rest, these must be equal:

- the round, and whether it is complete or closed
- the participants, the nodes that wait with room, the spares (torch's wait list and redundancy list) and the refused ones
- the ranks of a complete round whose members arrived in the order of their names (torch sorts by name, we by arrival)

Not compared, because ours is meant to differ:

- a member that goes or dies after completion: torch's round shrinks, and is over when the last has gone; ours ends at once
- more newcomers than there is room for: torch counts them all as waiting, ours only the first ones; then the waiting nodes
  and the spares are compared as one set (torch restarts for ever because it counts them all: torchstories, "storm")
- refused nodes: they drop off torch's lists a TTL after the close, while our register stays as it is
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial

import pytest
from attrs import define, field, frozen
from smallworld import SmallWorld
from torch.distributed.elastic.rendezvous import (
    RendezvousClosedError,
    RendezvousGracefulExitError,
    RendezvousTimeoutError,
)
from torchclock import clocked
from torchnode import TorchHandler, TorchProcess, spelled
from torchworld import Peers, TorchWorld
from worlds import name, register

from elastic.core.rendezvous import Limits, Raise, Settings, close, join, leave
from elastic.core.sim.chance import one, seeded
from elastic.core.sim.story import QUICK
from elastic.core.world import Ending, Why

LAST_CALL_S = 22.0
"""No multiple of REST_S, and far enough from one, because torch looks only once a second."""
REST_S = 9.0
"""The time after each call: more than the TTL of 5 s and the time to notice."""
JOIN_S = 500.0
SPANS = {"last call": LAST_CALL_S + REST_S / 2, "time-out": JOIN_S + REST_S}
SIZES = ((1, 1), (1, 2), (2, 2), (2, 3), (3, 3))
CALLS = 8
LENGTH = 4
SEEDS = 12
NAMES = ("a", "b", "c", "d")


@frozen
class View:
    """What both must agree on. The sets have names of nodes."""

    round: int
    complete: bool
    closed: bool
    participants: frozenset[str]
    waiting: frozenset[str]
    spare: frozenset[str]
    refused: frozenset[str]

    @classmethod
    def of(
        cls,
        place: tuple[int, bool, bool],
        participants: Iterable[str],
        waiting: Iterable[str],
        spare: Iterable[str],
        refused: Iterable[str],
    ) -> View:
        """Return a view without what is not compared."""
        told = frozenset(refused)
        inside, with_room, above = (frozenset(each) - told for each in (participants, waiting, spare))
        if with_room and above:
            with_room, above = with_room | above, frozenset()
        return cls(*place, inside, with_room, above, told)


@define
class Ours:
    world: SmallWorld
    refused: set[str] = field(factory=set)

    @classmethod
    def of(cls, least: int, most: int, last_call: float) -> Ours:
        limits = Limits(least, most, 0)
        return cls(
            SmallWorld(
                Settings(
                    limits=limits,
                    join_timeout=JOIN_S,
                    last_call_timeout=last_call,
                    keep_alive_interval=1.0,
                    keep_alive_max_attempt=5,
                    upscale_after=100_000.0,
                )
            )
        )

    def does(self, call: str, who: str) -> None:
        world = self.world
        match call:
            case "join":
                world.begins(who, join)
            case "leave":
                world.begins(who, leave)
            case "crash":
                world.actors[who].silent = True
            case "close":
                world.begins("z", close, ending=Ending.CANCELLED)
            case _:
                world.passes(world.now + SPANS[call])
        world.passes(world.now + REST_S)
        self.refused |= {
            who
            for who, actor in world.actors.items()
            if isinstance(actor.answer, Raise) and actor.answer.failure.why is Why.CLOSED
        }

    def view(self) -> View:
        state = self.world.register or register()
        place = (state.round, state.complete, state.closed is not None)
        return View.of(
            place,
            map(name, state.participants),
            map(name, state.wait_list),
            map(name, state.redundancy_list),
            self.refused,
        )

    def ranks(self) -> dict[str, int]:
        state = self.world.register
        return {name(node): rank for rank, node in enumerate(state.participants)} if state else {}


@define
class Torchs:
    world: TorchWorld
    refused: set[str] = field(factory=set)

    @classmethod
    def of(cls, least: int, most: int) -> Torchs:
        setting = QUICK.but(nodes=len(NAMES) + 1, min=least, max=most, last_call=LAST_CALL_S)
        return cls(TorchWorld(setting, Peers(join=JOIN_S), body=lambda world, process: None))

    def does(self, call: str, who: str) -> None:
        world = self.world
        process = world.at(who) or world.starts(who) if who else None
        match call, process:
            case "join", TorchProcess():
                self._runs(process, partial(self._joins, process))
            case "leave", TorchProcess():
                self._runs(process, partial(self._leaves, process))
            case "crash", TorchProcess():
                world.crashes(process)
            case "close", _:
                closer = world.at("e") or world.starts("e")
                self._runs(closer, lambda: self._handler(closer).set_closed())
            case _:
                world.future.passes(world.future.now + SPANS[call])
        world.future.passes(world.future.now + REST_S)

    def _runs(self, process: TorchProcess, what: Callable[[], None]) -> None:
        """Let the main thread do this, in place of what it does now."""
        if process.main is not None:
            process.main.end()
        process.main = self.world.begins(process, what)

    def _handler(self, process: TorchProcess) -> TorchHandler:
        process.handler = process.handler or TorchHandler(self.world, process)
        return process.handler

    def _joins(self, process: TorchProcess) -> None:
        try:
            self._handler(process).next_rendezvous()
        except RendezvousTimeoutError:
            pass
        except (RendezvousClosedError, RendezvousGracefulExitError):
            self.refused.add(process.name)

    def _leaves(self, process: TorchProcess) -> None:
        self._handler(process).leaves()

    def view(self) -> View:
        state = self.world.register
        return View.of(
            (state.round, state.complete, state.closed),
            map(spelled, state.participants),
            map(spelled, state.wait_list),
            map(spelled, state.redundancy_list),
            self.refused,
        )

    def ranks(self) -> dict[str, int]:
        return {spelled(desc): rank for desc, rank in self.world.register.participants.items()}


Call = tuple[str, str]


def legal(view: View, gone: set[str], least: int) -> Iterator[Call]:
    """Yield the calls that may come next and that both are meant to answer alike."""
    here = view.participants | view.waiting | view.spare
    yield from (("join", who) for who in NAMES if who not in here | gone | view.refused)
    if view.closed:
        return
    yield "close", ""
    dying = view.waiting | view.spare if view.complete else view.participants
    yield from (("crash", who) for who in sorted(dying) if len(here) > 1)
    if not view.complete and view.participants:
        yield from (("leave", who) for who in sorted(view.participants))
        yield ("last call" if len(view.participants) >= least else "time-out"), ""


def led(
    least: int, most: int, choose: Callable[[list[Call]], Call | None], ours_last_call: float = LAST_CALL_S
) -> list[Call]:
    """Make the same calls of both, and return the calls. Both must agree after each."""
    ours, torchs = Ours.of(least, most, ours_last_call), Torchs.of(least, most)
    calls, gone = list[Call](), set[str]()
    with clocked(torchs.world, 0):
        try:
            while call := choose(list(legal(ours.view(), gone, least))):
                calls.append(call)
                if call[0] == "crash":
                    gone.add(call[1])
                ours.does(*call)
                torchs.does(*call)
                assert torchs.view() == ours.view(), f"--nnodes {least}:{most}: {calls}"
                if ours.view().complete and list(ours.ranks()) == sorted(ours.ranks()):
                    assert torchs.ranks() == ours.ranks(), f"--nnodes {least}:{most}: {calls}"
        finally:
            torchs.world.closes()
    return calls


def every(least: int, most: int, length: int) -> Iterator[list[Call]]:
    """Make all sequences of so many calls in which newcomers come in the order of their names."""
    prefixes: list[tuple[int, ...]] = [()]
    while prefixes:
        prefix, widths = prefixes.pop(), list[int]()

        def choose(calls: list[Call], prefix: tuple[int, ...] = prefix, widths: list[int] = widths) -> Call | None:
            newcomers = [call for call in calls if call[0] == "join"][1:]
            calls = [call for call in calls if call not in newcomers]
            if len(widths) == length or not calls:
                return None
            widths.append(len(calls))
            depth = len(widths) - 1
            return calls[prefix[depth] if depth < len(prefix) else 0]

        yield led(least, most, choose)
        for depth in range(len(prefix), len(widths)):
            zeros = (0,) * (depth - len(prefix))
            prefixes += [(*prefix, *zeros, index) for index in range(1, widths[depth])]


def at_random(least: int, most: int, seed: int) -> list[Call]:
    chance, left = seeded(seed), iter(range(CALLS))

    def choose(calls: list[Call]) -> Call | None:
        """Choose a close rarely, because little can happen after it."""
        wanted = [call for call in calls if call[0] != "close" or chance(8) == 0]
        return None if not wanted or next(left, None) is None else one(chance, wanted)

    return led(least, most, choose)


@pytest.mark.parametrize(("least", "most"), SIZES)
def test_both_decide_alike_in_every_short_sequence_of_calls(least: int, most: int) -> None:
    lengths = [len(calls) for calls in every(least, most, LENGTH)]
    assert len(lengths) > 8 and max(lengths) == LENGTH


@pytest.mark.parametrize(("least", "most"), SIZES)
def test_both_decide_alike_in_long_sequences_drawn_at_random(least: int, most: int) -> None:
    made = Counter(call for seed in range(SEEDS) for call, _ in at_random(least, most, seed))
    assert {"join", "close", "crash"} <= made.keys()
    if most > 1:
        assert "leave" in made and {"last call", "time-out"} & made.keys()


def test_the_comparison_can_fail() -> None:
    """With another last call on one side, the two differ."""
    calls = iter([("join", "a"), ("join", "b")])
    with pytest.raises(AssertionError, match="--nnodes 1:3"):
        led(1, 3, lambda _: next(calls, None), ours_last_call=1.0)
