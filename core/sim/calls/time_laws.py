"""The laws I20 to I22 of a run of calls in which steps take time: no limit passes early or is passed over.

They keep a memory of their own: when each limit began, the last mark of progress, and when its host had time again last. The
length of a limit is read from the settings, and not from what the core decided.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from attrs import define, field

from ...inprocess import deadlines
from ...inprocess.monitoring import Rules
from ...inprocess.words import GUARDED, Deadline, Timer
from ...properties.law import Law, Strength
from ...rendezvous import RendezvousState
from ...violation import Violation
from ...world import Node
from .call_world import At, Rank, World
from .moves import Move

SPANS: Mapping[Timer, str] = {
    Timer.SOFT: "soft_timeout",
    Timer.HARD: "hard_timeout",
    Timer.LIMIT: "callback_timeout",
    Timer.UNWIND: "unwind_timeout",
    Timer.ABORT: "abort_timeout",
    Timer.SHORT: "barrier_timeout",
    Timer.COMPLETION: "completion_timeout",
    Timer.CONFIRM: "confirm_timeout",
    Timer.STORE: "store_timeout",
    Timer.LEAVE: "leave_timeout",
    Timer.STEADY: "repeat_window",
    Timer.MOVING: "repeat_window",
}
"""The setting that each limit lasts. AGAIN has none."""
OF_PROGRESS = (Timer.SOFT, Timer.HARD)
STAMPS = frozenset({"main thread arms", "main thread enters a section", "main thread leaves the section"})
"""The moves by which the main thread leaves a mark of progress."""
PAUSE_S = 1.0
"""A pause above this is none of user code's time."""
SLACK_S = 1.5
TINY_S = 1e-6
NO_SPAN = (0, math.inf)
"""This stands for the token of a span, and a time, where there is none."""

I20 = Law(
    "I20",
    "In a run whose steps take time no limit passes before its setting says, counted from the last mark or from the "
    "end of a pause of the host, and the time to unwind passes in no atomic section.",
    "a limit passes in a run whose steps take time",
)
I21 = Law(
    "I21",
    "In such a run a limit that is due passes within 1.5 s while its driver runs, and past its last limit user code "
    "ends or its process dies.",
    "a limit passes in a run whose steps take time",
)
I22 = Law(
    "I22",
    "In such a run a monitor ends, leaves, interrupts and kills only for a driver that is late, and quits only when "
    "the call is over.",
    "a monitor acts in a run whose steps take time",
)


@define
class Memory:
    """What the laws remember of one rank."""

    began_at: dict[Deadline, float] = field(factory=dict)
    stamp: float = 0.0
    woke_at: float = -math.inf
    """When its host, its driver or its monitor had time again last."""
    still_until: float = 0.0
    shown: RendezvousState | None = None
    """The last register that its monitor was shown: an empty store shows none."""
    over: tuple[int, float] = NO_SPAN
    """The token of a span whose round is over by that register, and since when."""
    wanted: tuple[int, float] = NO_SPAN
    """The token of the last span that was asked to end, and when that was."""
    leaving_at: float = math.inf
    pauses: int = 0
    """How often its host stood still since the last mark, or as that came."""
    said: int = 0
    """The token of the last span for which the monitor ended the round."""
    called: int = 0
    """The token of the last span that the monitor asked to end."""
    terminated_at: float = math.inf
    """When the monitor asked the process to go; after that it kills it, whatever the process still does."""


@define
class TimeLaws:
    world: World
    rules: Rules
    strength: Strength
    memories: list[Memory] = field(init=False)

    @memories.default
    def _memories(self) -> list[Memory]:
        return [Memory(dict.fromkeys(deadlines(rank.call), 0.0)) for rank in self.world.ranks]

    def stands_still(self, place: int, until: float) -> None:
        memory = self.memories[place]
        memory.still_until = memory.woke_at = until
        memory.pauses += 1

    def took(self, before: World, move: Move, after: World, now: float) -> None:
        """Judge a move, remember it, and judge what should have come before. Raises Violation."""
        place, rank = move.rank, after.ranks[move.rank]
        if isinstance(move.how, Deadline):
            self._passes(self.memories[place], before.ranks[place], move.how, now)
        if move.what == "starts again":
            self.memories[place] = Memory(still_until=self.memories[place].still_until)
        memory = self.memories[place]
        if move.what in STAMPS:
            memory.stamp, memory.pauses = now, int(now < memory.still_until)
        if move.what in ("has time again", "monitor starts again"):
            memory.woke_at = now
        if move.what == "monitor starts again":
            memory.terminated_at, memory.shown = math.inf, None
        if rank.call is not before.ranks[place].call or move.what == "starts again":
            memory.began_at = {each: memory.began_at.get(each, now) for each in deadlines(rank.call)}
            if rank.call.leaving and memory.leaving_at == math.inf:
                memory.leaving_at = now
        if isinstance(move.how, Deadline):
            memory.began_at = {each: at for each, at in memory.began_at.items() if each != move.how}
        for each, one in enumerate(after.ranks):
            self._remembers(after, one, self.memories[each], now)
            for late in self._late(after, one, self.memories[each], now):
                raise Violation("I21", f"{one.node}: {late}")

    def looks(self, world: World, place: int, now: float) -> None:
        """Remember what the monitor of this rank is shown as it looks."""
        self._remembers(world, world.ranks[place], self.memories[place], now)

    def _remembers(self, world: World, rank: Rank, memory: Memory, now: float) -> None:
        page, token = rank.page, rank.page.armed
        if world.register is not None and now >= memory.still_until:
            memory.shown = world.register
        if not token:
            return
        over = memory.shown is not None and _is_told(memory.shown, rank.node, page.armed_round)
        if over != (memory.over[0] == token):
            memory.over = (token, now) if over else NO_SPAN
        if memory.wanted[0] != token and token in (page.want, page.want_monitor):
            memory.wanted = token, now

    def _passes(self, memory: Memory, rank: Rank, limit: Deadline, now: float) -> None:
        """Judge a limit that passes."""
        if limit.timer not in SPANS or limit not in memory.began_at:
            return  # one that passed in the same moment as another, which ended it
        self.strength.arms(("I20", "I21"))
        due_at = self._due_at(memory, rank, limit)
        if now < due_at - TINY_S:
            raise Violation("I20", f"{rank.node}: {limit.timer.value} passes {due_at - now:g} s early")
        if limit.timer in OF_PROGRESS and now == memory.woke_at and due_at < now - PAUSE_S:
            raise Violation("I20", f"{rank.node}: {limit.timer.value} passes though its host has just stood still")
        if limit.timer is Timer.UNWIND and rank.main.at is At.USER and rank.page.depth:
            raise Violation("I20", f"{rank.node}: an atomic section is no longer waited for, whatever it gets on")

    def _due_at(self, memory: Memory, rank: Rank, limit: Deadline) -> float:
        began_at = memory.began_at[limit]
        span_s: float = getattr(rank.call.settings, SPANS[limit.timer])
        if limit.timer is Timer.MOVING and memory.stamp < began_at + span_s:
            return math.inf
        return span_s + (max(began_at, memory.stamp) if limit.timer in OF_PROGRESS else began_at)

    def _late(self, world: World, rank: Rank, memory: Memory, now: float) -> Iterator[str]:
        """Yield what should have passed by now."""
        awake_at = max(memory.woke_at, memory.still_until)
        if rank.runs and not rank.starved:
            for limit in memory.began_at:
                if limit.timer in SPANS and (limit.timer not in OF_PROGRESS or rank.main.at is At.USER):
                    due_at = self._due_at(memory, rank, limit)
                    fresh = awake_at + getattr(rank.call.settings, SPANS[limit.timer])
                    if now > max(due_at, fresh if limit.timer in OF_PROGRESS else awake_at) + SLACK_S:
                        yield f"{limit.timer.value} was due {now - due_at:g} s ago"
        watched = rank.runs and rank.monitor and rank.main.at is At.USER and rank.main.span in GUARDED
        if watched and now > max(self._end_at(rank, memory), awake_at + self.rules.unwind_s) + SLACK_S:
            yield f"user code goes on {now - self._end_at(rank, memory):g} s after its last limit"

    def _end_at(self, rank: Rank, memory: Memory) -> float:
        """Return when user code must be over, or its process killed."""
        hard_at = max(memory.stamp, memory.woke_at) + rank.call.settings.hard_timeout
        is_over = memory.over[0] == rank.page.armed
        over_at = max(memory.over[1], memory.woke_at) if is_over else math.inf
        unwound_at = over_at + self.rules.patience_s + self.rules.unwind_s
        return min(hard_at, unwound_at) + self.rules.grace_s

    def acts(self, world: World, move: Move, now: float) -> None:
        """Judge what a monitor does. Raises Violation."""
        rank, memory = world.ranks[move.rank], self.memories[move.rank]
        self.strength.armed["I22"] += 1
        if not self._may(rank, memory, move, world, now):
            raise Violation("I22", f"{rank.node}: {move} though its driver is not late")
        if move.what in ("monitor ends", "monitor leaves"):
            memory.said = rank.page.armed
        elif move.what == "monitor wants":
            memory.called = rank.page.armed
        elif move.what == "monitor terminates":
            memory.terminated_at = now

    def _may(self, rank: Rank, memory: Memory, move: Move, world: World, now: float) -> bool:
        settings, rules, at = rank.call.settings, self.rules, now + TINY_S
        silent = rank.main.span in GUARDED and at >= memory.stamp + settings.soft_timeout + rules.patience_s
        match move.what:
            case "monitor wants":
                over = memory.over[0] == rank.page.armed and rank.main.span in GUARDED
                said = memory.said == rank.page.armed
                return over and (said or at >= memory.over[1] + rules.patience_s)
            case "monitor signals again":
                return memory.called == rank.page.armed
            case "monitor terminates":
                limits_at = min(self._killed_at(rank, memory), default=math.inf)
                forgiven = now == memory.woke_at and memory.pauses == 1 and limits_at < now - PAUSE_S
                return at >= limits_at and not forgiven
            case "monitor ends":
                return silent and rank.page.want != rank.page.armed and not rank.call.leaving
            case "monitor leaves":
                leaves = at >= memory.leaving_at + rules.leave_patience_s
                return leaves or (silent and not rank.call.active)
            case "monitor quits":
                return not rank.runs
            case _:
                return at >= memory.terminated_at + rules.grace_s  # it was asked to go then, which was judged

    def _killed_at(self, rank: Rank, memory: Memory) -> Iterator[float]:
        """Yield the limits after which a process is past help. The driver's own counts until the driver says otherwise."""
        settings = rank.call.settings
        yield from (at + settings.unwind_timeout for each, at in memory.began_at.items() if each.timer is Timer.UNWIND)
        if rank.page.armed == memory.wanted[0]:
            yield memory.wanted[1] + self.rules.unwind_s
        if rank.page.armed:
            guards = rank.main.span in GUARDED
            callback_s = settings.callback_timeout + settings.unwind_timeout
            yield memory.stamp + (settings.hard_timeout if guards else callback_s)


def _is_told(register: RendezvousState, node: Node, round: int) -> bool:
    """Return True if the register tells a monitor that this round is over. A store that forgot may hold an earlier round, or
    an open one of the same number, as it did before the round began. Apart from `shows_over`, which this judges."""
    if register.closed:
        return True
    lacks = register.complete and node not in register.seats
    return register.round > round or (register.round == round and lacks)
