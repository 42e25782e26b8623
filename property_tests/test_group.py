"""Any events in any order, at any time: the worker group keeps its rules, and ends when it is told to."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from random import Random

from group_rules import Judge
from groups import world
from hypothesis import given
from hypothesis import strategies as st
from worlds import node

from elastic.core.group import MOVES, Alone, Group, Phase, Settings, begin, transition
from elastic.core.group.state import (
    Beaten,
    Check,
    Checked,
    Closed,
    Command,
    Elapsed,
    Event,
    Exited,
    Exiting,
    Gone,
    Join,
    Noticed,
    Over,
    Raised,
    Ready,
    ReadyToLeave,
    Reaped,
    Refused,
    Signalled,
    Start,
    Unstartable,
)
from elastic.core.world import Ending, Generation, Notice, Verdict, Why

SEEN: Counter[str] = Counter()
SPANS = (0.0, 0.0, 0.1, 0.1, 1.0, 1.3, 3.0, 40.0)
ALONE = Alone(2, final=frozenset({76, 79}), job_over=frozenset({71}), heard=frozenset({79}))


class Shell:
    """The shell around a group: it starts each world once, and reports Reaped when no worker lives."""

    def __init__(self, group: Group) -> None:
        self.group, self.now, self.round, self.checked = group, 0.0, -1, 0
        self.group, commands = begin(group, 0.0)
        self.judge, self.commands = Judge(), list[Command](commands)
        self.generation, self.joins = 0, commands.count(Join())

    def tells(self, event: Event) -> None:
        before = self.group
        self.group, commands = transition(before, event)
        self.judge.step(before, event, self.group, commands, self.now)
        self.commands += commands
        self.round += isinstance(event, Ready)
        self.checked += isinstance(event, Checked)
        self.joins += sum(isinstance(command, Join) for command in commands)
        self.joins -= isinstance(event, Ready) or (isinstance(event, Over) and before.joins)
        if isinstance(event, Ready):
            self.generation = event.world.generation.round
        if isinstance(event, Over) and event.round == self.round and event.generation:
            self.generation = event.generation.round
        SEEN[f"{before.phase.name} + {type(event).__name__} -> {self.group.phase.name}"] += 1

    def rare(self) -> list[Event]:
        """Return the events that lead to the end."""
        now, b = self.now, node("b")
        return [
            Closed(Verdict(Ending.CANCELLED, 0, b, Why.ASKED), now),
            Closed(Verdict(Ending.SUCCEEDED, 0, b, Why.DONE), now),
            Refused(Why.UNCONFIRMED, "", now),
            Unstartable("no such file", now),
            Signalled(15, now),
            Noticed(Notice(40.0, "a test"), now),
            Noticed(Notice(600.0, "a test"), now),
            Noticed(Notice(0.5, "a test"), now, known=True),
            ReadyToLeave(0, now),
        ]

    def possible(self) -> list[Event]:
        """Return the events that can come now: a world is ready only after a Join, and only living workers exit."""
        now, b = self.now, node("b")
        events: list[Event] = [
            Over(self.round, Why.FAILED, b, now, self.fresh),
            Over(self.round, Why.FAILED, node("a"), now, self.fresh),
            Over(self.round - 1 if self.round else 7, Why.LEFT, b, now),
            Gone(now),
            *(Beaten(max(now - age, 0.0), now) for age in (0.0, 1.0, 2.0)),
            Elapsed(now),
        ]
        for rank in sorted(self.group.running):
            events += [Exited(rank, 0, now, now)] * 3 + [Exited(rank, 1, now, now), Exited(rank, -9, now - 1.0, now)]
            if self.group.settings.alone:
                events += [Exited(rank, code, now, now) for code in (71, 76, 79, 79)]
            events += self.told(rank)
        if self.group.failures.echo_at is not None:
            events += self.after_an_echo()
        if not self.group.running:
            events += [Reaped(now)] * 3
        if not self.group.joins:
            events += [Over(self.round, Why.LOST, b, now, Generation("job", self.generation))] * 2
        if self.group.phase in (Phase.RUNNING, Phase.BARRIER) and not self.group.deadline:
            events += [Noticed(Notice(40.0, "a test"), now), Noticed(Notice(600.0, "a test"), now)]
        if self.group.phase is Phase.BARRIER and self.group.heard_by is not None:
            events += [Elapsed(max(now, self.group.heard_by))] * 2
        if self.group.deadline:
            events += [ReadyToLeave(0, now), Elapsed(now), *[Elapsed(max(now, self.group.until or now))] * 3]
            events += [Exited(rank, 1, now, now, is_echo=True) for rank in sorted(self.group.running)] * 3
        if self.commands.count(Check()) > self.checked:
            events += [Checked(True, "", now)] * 3 + [Checked(False, "broken", now)]
        if self.group.phase is Phase.RUNNING and not self.group.deadline:
            events.append(Unstartable("no memory", now, passes=True))
        if self.group.phase is Phase.MOVING:
            events += [Over(self.round, Why.LOST, b, now), Elapsed(now), Elapsed(now)]
        if self.joins:
            events += [Ready(world(self.round + 1, generation=self.generation), now)] * 3
            events += [Ready(world(self.round + 1, generation=self.round + 1), now)]
        return events

    def told(self, rank: int) -> list[Event]:
        """Return what can come of a worker that reports how it fails, or whose failure reads like an echo."""
        now = self.now
        return [
            Exited(rank, 1, now, now, is_echo=True),
            Exited(rank, 1, now, now, began_at=now - 1.0),
            Raised(rank, now, now, is_echo=True),
            Raised(rank, now, now) if rank else Exiting(rank, now, now),
        ]

    def after_an_echo(self) -> list[Event]:
        """Return what ends the wait for the cause of an echo: all workers end, or the time passes, or the round is over."""
        now = self.now
        ends: list[Event] = [Exited(rank, -15, now, now) for rank in sorted(self.group.running)]
        over = Over(self.round, Why.FAILED, node("b"), now, self.fresh)
        waits = [over, Elapsed(max(now, self.group.until or now)), *self.rare()[:3]]
        return ends * 5 or waits * 3

    @property
    def fresh(self) -> Generation:
        """The generation that a failure of this round begins."""
        return Generation("job", self.round + 1)


def wandered(choose: Callable[[int], int]) -> Shell:
    """Return a group after up to 50 events; `choose(n)` is the one source of chance."""
    shell = Shell(
        Group(
            node("a"),
            Settings(
                fence=(None, 2.5, 3.0)[choose(3)],
                start_timeout=3.0,
                barrier_timeout=(math.inf, 2.0)[choose(2)],
                checks=(None, True)[choose(2)],
                alone=(None, ALONE)[choose(2)],
            ),
        )
    )
    if shell.group.settings.alone and choose(2):
        for start in (Checked(True, "", 0.0), Ready(world(), 0.0), Beaten(0.0, 0.0)):
            shell.tells(start)
    for _ in range(choose(51)):
        shell.now += SPANS[choose(len(SPANS))]
        possible = shell.rare() if choose(10) == 9 else shell.possible()
        event = possible[choose(len(possible))]
        shell.tells(event)
    return shell


@st.composite
def shells(draw: st.DrawFn) -> Shell:
    return wandered(lambda n: draw(st.integers(0, n - 1)))


@given(shells())
def test_a_group_keeps_its_rules_whatever_comes(shell: Shell) -> None:
    starts = [command.world.id for command in shell.commands if isinstance(command, Start)]
    assert len(starts) == len(set(starts))


@given(shells())
def test_a_group_that_is_told_to_stop_ends_whatever_came_before(shell: Shell) -> None:
    """After one signal, without a register, the group ends by its own timers, and its workers die of SIGKILL."""
    shell.tells(Signalled(15, shell.now))
    while shell.group.until is not None:
        shell.now = max(shell.now, shell.group.until)
        shell.tells(Elapsed(shell.now))
    for rank in sorted(shell.group.running):
        shell.tells(Exited(rank, -9, shell.now, shell.now))
    shell.tells(Reaped(shell.now))
    assert shell.group.phase is Phase.ENDED
    assert shell.group.outcome is not None


@given(shells())
def test_a_group_does_not_spin_on_its_own_timers(shell: Shell) -> None:
    """When a timer has elapsed, the group waits for a later one or for none."""
    for _ in range(3_000):
        if shell.group.until is None:
            return
        shell.now = max(shell.now, shell.group.until)
        shell.tells(Elapsed(shell.now))
    assert shell.group.until is None


def test_random_groups_make_every_move() -> None:
    moves = {f"{phase.name} + {event.__name__} -> {to.name}" for (phase, event), ends in MOVES.items() for to in ends}
    SEEN.clear()
    for seed in range(8_000):
        wandered(Random(seed).randrange)
        if moves <= SEEN.keys():
            return
    assert moves - SEEN.keys() == set()
