"""Goodput over simulated jobs and over made-up steps: each microsecond of a node is counted once, for one cause, and an
account that is cut and continued anywhere tells the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from random import Random
from typing import TypeAlias

from attrs import evolve, frozen
from goodputs import Reading, beside, gaps, read, totals
from groups import world
from hypothesis import given
from hypothesis import strategies as st
from traced import Agent, Shared
from worlds import arrived, edited, node, register, running

from elastic.core.goodput import (
    BUCKETS,
    Account,
    Entry,
    Follower,
    Kind,
    added,
    booked,
    bucket,
    by_kind,
    cause,
    closed,
    executed,
    follow,
    heard,
    jobs,
    micros,
    of_job,
    opened,
    stepped,
    take,
    whole,
)
from elastic.core.group import Alone, Group, Phase, Settings, begin, transition
from elastic.core.group.state import (
    Beaten,
    Checked,
    Closed,
    Elapsed,
    Event,
    Exited,
    Noticed,
    Over,
    Raised,
    Ready,
    Reaped,
    Refused,
    Signalled,
    Start,
    Unstartable,
)
from elastic.core.properties.facts import Began, Fact, Holds, Started, Stepped
from elastic.core.properties.judge import Judge
from elastic.core.rendezvous import Close, Counted, Drain, End, Leave, Pushed, Shown, Silent, Unknown
from elastic.core.sim.run import run_seed, wander
from elastic.core.sim.swarm import Shape
from elastic.core.trace import steps
from elastic.core.trace.steps import Asked, Header, Step, Working
from elastic.core.violation import Finding
from elastic.core.work import OTHER, Mark, Said, Worked, told
from elastic.core.world import Ending, Life, Node, Notice, Verdict, Why

A, B = node("a"), node("b")
RUNS = 100


# --- simulated jobs


@frozen
class Watched:
    """The accounts of all agents of a simulated world, as one that runs beside each would keep it."""

    accounts: dict[Node, Account]
    began: dict[Node, int]
    entries: dict[Node, list[Entry]]

    def property(self, judge: Judge, fact: Fact) -> Iterator[Finding]:
        match fact:
            case Began(node, at):
                account = opened(node, at)
                self.accounts[node], self.began[node], self.entries[node] = account, account.at, []
            case Holds(held, at) if held.who.node in self.accounts:
                self._enters(held.who.node, heard(self.accounts[held.who.node], Shown(held.view.state), at))
            case Started(node):
                self._enters(node, executed(self.accounts[node], self.accounts[node].at / 1e6))
            case Stepped(_, event, after, commands, at):
                self._enters(after.node, stepped(self.accounts[after.node], event, after, commands, at))
            case _:
                pass
        return iter(())

    def _enters(self, node: Node, taken: tuple[Account, tuple[Entry, ...]]) -> None:
        self.accounts[node] = taken[0]
        self.entries[node] += taken[1]

    def readings(self) -> list[Reading]:
        return [Reading(self.accounts[node], self.began[node], tuple(self.entries[node])) for node in self.accounts]


def watched(seed: int) -> Watched:
    found = Watched({}, {}, {})
    wander(seed, Shape(nodes=4), also=(found.property,))
    return found


def judged(readings: Sequence[Reading], seen: Counter[str]) -> None:
    """Hold these nodes of one world to the laws; count what they show."""
    assert [wrong for each in readings for wrong in gaps(each)] == []
    book = booked(entry for each in readings for entry in each.all)
    time = sum(each.account.at - each.began for each in readings)
    assert totals(book) == (time, time, time)
    assert sum(totals(of_job(book, job))[0] for job in jobs(book)) == time
    for share in book.shares:
        seen[bucket(book, share)] += 1
        seen[cause(book, share).kind.value] += 1


UNTOLD = {"starting", "training", "recomputed", "hanging", "program", "hang", "unknown"}
SHOWN = {*BUCKETS, *(kind.value for kind in Kind)} - UNTOLD
"""Simulated workers start within no time, and say nothing of their work."""


def test_each_microsecond_of_simulated_jobs_has_one_bucket_and_a_cause_that_is_known() -> None:
    """The register, or the node itself, tells how each round ended: nothing is unknown where no step is missing."""
    seen = Counter[str]()
    for run in range(RUNS):
        judged(watched(run_seed(0xD0, run)).readings(), seen)
    assert seen.keys() == SHOWN, SHOWN ^ seen.keys()


# --- made-up steps


REGISTERS = (
    arrived(register("2"), "a"),
    two := running("a b", "2", 3),
    failed := edited(two, "b", End(0, Why.FAILED)),
    arrived(failed, "a"),
    arrived(failed, "b"),
    edited(two, "b", Leave()),
    edited(edited(two, "b", Drain(B, Notice(60.0, "a test"))), "b", Leave()),
    running("b c", "2"),
    arrived(running("b c", "2"), "a"),
    edited(two, "b", Close(Verdict(Ending.CANCELLED, 0, B, Why.ASKED))),
    evolve(two, job="another", life=Life("another")),
)
SPANS = (0.0, 0.0, -0.2, 0.000_000_4, 0.000_000_5, 0.1, 1.3, 40.0)
"""A step may be written down behind a later one, and less than a microsecond after the one before."""
SETTINGS = (Settings(), Settings(fence=3.0), Settings(checks=True, alone=Alone(1)))


def possible(group: Group, at: float) -> list[Event]:
    """Return the events that may come; those that lead on come more often."""
    round = group.world.round if group.world else 0
    some: list[Event] = [
        Exited(0, 0, at, at),
        Exited(1, 0, at, at),
        Exited(1, 1, at, at),
        Raised(0, at, at),
        Over(round, Why.LOST, B, at),
        Over(round, Why.UPSCALE, B, at),
        Over(round, None, None, at),
        Elapsed(at + 60.0),
        Unstartable("no memory", at, passes=True),
        Closed(Verdict(Ending.SUCCEEDED, round, B, Why.DONE), at),
        Closed(Verdict(Ending.FAILED, round, A, Why.FAILED), at),
        Refused(Why.UNCONFIRMED, "", at),
        Signalled(15, at),
        Noticed(Notice(40.0, "a test"), at),
    ]
    leads: dict[Phase, Event] = {
        Phase.CHECKING: Checked(True, "", at),
        Phase.JOINING: Ready(world(round + 1), at),
        Phase.HELD: Beaten(at, at),
        Phase.MOVING: Ready(world(round + 1), at),
        Phase.STOPPING: Reaped(at),
    }
    return some + [leads[group.phase]] * 40 if group.phase in leads else some


Made: TypeAlias = tuple[Header, list[Step | None]]
"""A header and the steps of an agent; None: steps are missing here."""


def made_by(choose: Callable[[int], int]) -> Made:
    """Return up to 40 steps; `choose(n)` is the one source of chance."""
    header = evolve(Agent("a", Shared()).header, machine=Working(SETTINGS[choose(len(SETTINGS))]))
    group, commands = begin(follow(header).born, header.now)
    found: list[Step | None] = [steps.Stepped(None, commands, header.now)]
    at = header.now
    for _ in range(choose(41)):
        at += SPANS[choose(len(SPANS))]
        what = choose(20)
        if what < 12:
            events = possible(group, at)
            event = events[choose(len(events))]
            group, commands = transition(group, event)
            found.append(steps.Stepped(event, commands if choose(50) else (), at))
            found += [steps.Started(each.world.round, (1, 2), at + 0.1) for each in commands if isinstance(each, Start)]
        elif what < 16:
            state = REGISTERS[choose(len(REGISTERS))]
            found.append(Asked((Shown(state), Pushed(state, at))[choose(2)], at, None))
        elif what < 17:
            found.append(Asked((Silent(), Unknown(), Counted(1))[choose(3)], at, None))
        elif choose(12):
            work = came_to(choose, at)
            found.append(work)
            if choose(2):
                event = Exited(work.rank, -9, at, at)
                group, commands = transition(group, event)
                found += [steps.HangEnd(1, work.rank, at), steps.Stepped(event, commands, at)]
        else:
            found.append(None)
    return header, found


def came_to(choose: Callable[[int], int], at: float) -> Worked:
    """Return what a worker came to, by a page that says anything."""
    began_at = max(at - (0.1, 40.0)[choose(2)], 0.0)
    first, passed, last = (Mark(began_at + choose(50), choose(9)) for _ in range(3))
    spans = tuple((name, float(choose(9))) for name in ("checkpoint", "waiting")[: choose(3)])
    ended_at = max(at, began_at)
    life = Worked(1, choose(2), choose(2), False, began_at, ended_at, ended_at, (None, 3)[choose(2)])
    return told(life, Said(first, passed, last, choose(6), choose(6), spans=spans) if choose(4) else Said(spans=spans))


@st.composite
def made_up(draw: st.DrawFn) -> Made:
    return made_by(lambda n: draw(st.integers(0, n - 1)))


def entered(follower: Follower, those: Iterable[Step | None]) -> tuple[Follower, tuple[Entry, ...]]:
    entries: tuple[Entry, ...] = ()
    for step in those:
        follower, more = take(follower, step)
        entries += more
    return follower, entries


@given(made_up(), st.integers(0, 41))
def test_made_up_steps_leave_no_microsecond_out_wherever_they_end(made: Made, end: int) -> None:
    header, those = made
    follower, entries = entered(follow(header), those[:end])
    judged([Reading(follower.account, micros(header.now), entries)], Counter())


@given(made_up(), st.integers(0, 41))
def test_an_account_that_is_cut_anywhere_and_continued_adds_up_to_that_of_the_whole(made: Made, at: int) -> None:
    header, those = made
    whole, entries = entered(follow(header), those)
    half, first = entered(follow(header), those[:at])
    assert closed(half.account) == closed(half.account), "to ask changes nothing"
    other, second = entered(half, those[at:])
    assert (other, first + second) == (whole, entries)
    rest = closed(whole.account)
    parts = [booked(first), booked(second), booked(rest)]
    assert added(added(*parts[:2]), parts[2]) == booked((*entries, *rest))
    assert added(parts[2], added(parts[1], parts[0])) == booked((*entries, *rest)), "in any order"


@given(made_up(), st.integers(1, 9))
def test_a_ledger_beside_made_up_steps_leaves_no_microsecond_out(made: Made, many: int) -> None:
    """The store's memory may be lost again and again here, so that rounds come back whose cause is settled."""
    header, those = made
    steps = [step for step in those if step]
    ledger, reading = beside(header, steps, many), read(header, steps)
    assert ledger.account == reading.account
    assert sum(whole(ledger).shares.values()) == reading.account.at - reading.began


def test_made_up_steps_show_each_bucket_and_each_cause() -> None:
    seen = Counter[str]()
    for seed in range(500):
        header, those = made_by(Random(seed).randrange)
        follower, entries = entered(follow(header), those)
        judged([Reading(follower.account, micros(header.now), entries)], seen)
    assert seen.keys() == {*BUCKETS, *(kind.value for kind in Kind), "checkpoint", OTHER}


# --- made-up training


STEP_S = 2.0
"""Each step takes as long, so that time tells how many were done again."""


def trained(choose: Callable[[int], int]) -> tuple[Header, list[Step | None], int, int]:
    """Return a node with two workers that saves now and then, and fails, over some rounds; how many steps its workers did
    again, and how many they did."""
    header = evolve(Agent("a", Shared()).header, machine=Working(Settings()))
    group, commands = begin(follow(header).born, header.now)
    found: list[Step | None] = [steps.Stepped(None, commands, header.now)]
    at, reached, safe, again, done = header.now, -1, -1, 0, 0

    def hears(*events: Event) -> None:
        nonlocal group
        for event in events:
            group, commands = transition(group, event)
            found.append(steps.Stepped(event, commands, at))

    for round in range(1, 2 + choose(4)):
        hears(Ready(world(round), at), Beaten(at, at))
        began_at, before = at, reached if reached >= 0 else None
        found.append(steps.Started(round, (1, 2), at))
        at += choose(3)
        marks = list[Mark]()
        number = safe
        passed: Mark | None = None
        for _ in range(choose(8)):
            at, number, done = at + STEP_S, number + 1, done + 1
            again += number <= reached
            marks.append(Mark(at))
            passed = passed or (Mark(at) if before is not None and number > before else None)
        first_step, step = (safe + 1, number) if marks else (None, None)
        reached, safe = max(reached, number), safe + choose(number - safe + 1)
        ends = marks[0] if marks else None, passed, marks[-1] if marks else None
        for rank in (0, 1):
            work = Worked(round, rank, 0, False, began_at, at, at, before, *ends, first_step, step)
            found.append(work)
        hears(Exited(0, 1, at, at), Exited(1, 1, at, at), Reaped(at))
    return header, found, again, done


@given(st.data())
def test_no_step_is_recomputed_more_often_than_it_was_done_before(data: st.DataObject) -> None:
    """The time until its first step is a start's. The step by which a node passes what was done counts as done again, so the
    time of both is that of as many steps as were done again."""
    header, those, again, done = trained(lambda n: data.draw(st.integers(0, n - 1)))
    follower, entries = entered(follow(header), those)
    reading = Reading(follower.account, micros(header.now), entries)
    judged([reading], Counter())
    spent, before = Counter[str](), 0
    for piece in reading.pieces:
        if piece.bucket == "recomputed":
            assert piece.end - piece.start <= before + micros(STEP_S), "as long as all work before, and its first step"
        if piece.bucket in ("recomputed", "training"):
            before += piece.end - piece.start
        spent[piece.bucket] += piece.end - piece.start
    assert spent["recomputed"] <= again * micros(STEP_S)
    assert spent["recomputed"] + spent["training"] <= done * micros(STEP_S)
    steps = [step for step in those if step]
    assert by_kind(whole(beside(header, steps, 5))) == by_kind(booked(read(header, steps).all))
    if all(work.passed or work.before is None or work.first is None for work in those if isinstance(work, Worked)):
        assert spent["recomputed"] == again * micros(STEP_S), "each of its runs passed what was done before"


def test_made_up_training_does_steps_again() -> None:
    redone = [again for seed in range(100) for *_, again, _ in (trained(Random(seed).randrange),)]
    assert sum(map(bool, redone)) > 30
