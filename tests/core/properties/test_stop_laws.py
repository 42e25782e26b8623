"""The laws of how workers are stopped and started under the fence, of notices, and of failures that a node counts.

Each finds the smallest lie, and nothing in what the core does."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from attrs import evolve
from groups import FENCED, RUN, beat, closed, exited, led, noticed, over, ready
from worlds import arrived, but, edited, holding, node, reseated, running

from elastic.core.group import Group, Phase, transition
from elastic.core.group import Settings as GroupSettings
from elastic.core.group.state import SIGKILL, Drain, Elapsed, Event, Gone, Join, Noticed, RecordUnfit, Signal, Signalled
from elastic.core.properties.facts import Decided, GaveUp, Holds, Stepped
from elastic.core.properties.judge import ASKED, Judge
from elastic.core.properties.law import Strength, findings
from elastic.core.rendezvous import (
    Arrive,
    End,
    Evict,
    FailureLimit,
    Held,
    Limits,
    RendezvousState,
    Settings,
    Status,
    Violation,
    join,
)
from elastic.core.rendezvous.state import Failing
from elastic.core.world import Life, Notice, Why


def step(before: Group, event: Event, at: float = 1.0) -> Stepped:
    """Return what the group does."""
    after, commands = transition(before, event)
    return Stepped(before, event, after, commands, at)


def broken(fact: Stepped, *past: Stepped) -> set[str]:
    """Return the laws that this step breaks after those steps."""
    judge = Judge()
    for each in (*past, fact):
        judge.past(each.after.node).stepped(each)
    return {number for number, _ in findings(ASKED[Stepped], judge, fact, Strength())}


def lies(fact: Stepped, find: Callable[[Stepped], Stepped], *past: Stepped) -> set[str]:
    """Return the laws that this lie about a step breaks. The step itself breaks none."""
    assert broken(fact, *past) == set()
    return broken(find(fact), *past)


FENCE = step(led(*RUN, settings=FENCED), Elapsed(3.0), 3.0)
STOPPING = led(*RUN, over(at=1.0))
WARNS = step(STOPPING, Elapsed(30.0), 30.0)
LEAVES = led(*RUN, Signalled(15, 1.0), Gone(1.5))


def test_G13_workers_are_killed_at_the_fence_and_asked_to_end_once() -> None:
    assert lies(FENCE, lambda it: evolve(it, commands=(Signal(15),))) >= {"G13"}
    assert "G13" in lies(WARNS, lambda it: evolve(it, commands=(Signal(15),)))
    kills = step(WARNS.after, Elapsed(31.0), 31.0)
    assert kills.commands == (Signal(SIGKILL),) and broken(kills) == set()


def test_G13_a_group_looks_in_time_at_workers_that_the_fence_or_a_warning_awaits() -> None:
    stops = step(led(*RUN), over(at=1.0))
    assert stops.after.until == 30.0
    fenced = step(led(*RUN, settings=evolve(FENCED, grace=1.0)), over(at=1.5))
    assert fenced.after.until == 2.5 and broken(fenced) == set()
    assert "G13" in lies(fenced, lambda it: evolve(it, after=evolve(it.after, phase=Phase.BARRIER)))
    assert "G13" in lies(stops, lambda it: evolve(it, after=evolve(it.after, phase=Phase.BARRIER)))


def test_G13_a_node_that_has_left_does_not_wait_for_the_register_again() -> None:
    ends = step(LEAVES, Elapsed(30.0), 30.0)
    assert ends.commands == (Signal(15, children=True),)
    assert lies(ends, lambda it: evolve(it, after=_unshown(it.after))) == {"G13"}


def _unshown(group: Group) -> Group:
    assert group.departure
    return evolve(group, departure=evolve(group.departure, is_shown=False))


def test_G12_a_notice_is_told_to_the_register_by_who_heard_it_first_and_the_unfit_are_on_record_once() -> None:
    tells = step(led(*RUN), noticed(known=False))
    assert Drain in tells.kinds and broken(tells) == set()
    assert broken(evolve(tells, event=noticed(known=True))) == {"G12"}
    unfit = Noticed(Notice(60.0, "a test"), 1.0, unfit=True)
    first = step(led(*RUN), unfit)
    assert RecordUnfit in first.kinds and broken(first) == set()
    again = step(first.after, unfit)
    assert lies(again, lambda it: evolve(it, commands=first.commands[:1])) == {"G12"}


def test_G2_no_group_joins_a_job_that_is_over() -> None:
    over_ = led(*RUN, exited(0, 1), closed(), exited(1, -15))
    assert over_.verdict and not over_.running
    joins = Stepped(over_, Elapsed(1.0), evolve(over_, phase=Phase.JOINING, world=None), (Join(),), 1.0)
    assert "G2" in broken(joins)


def test_F2_no_worker_starts_that_may_be_missing_from_the_world() -> None:
    held = led(beat(0.0), ready(at=2.0), settings=FENCED)
    told, starts = step(led(beat(0.0), settings=FENCED), ready(at=2.0), 2.0), step(held, beat(2.5), 2.5)
    assert starts.after.phase is Phase.RUNNING and broken(starts, told) == set()
    assert "F2" in broken(evolve(starts, at=5.1), told)
    gap = evolve(starts.after, heart=evolve(starts.after.heart, heard_again_at=-2.9))
    assert broken(evolve(starts, after=gap), told) == {"F2"}
    long_ago = evolve(gap, heart=evolve(gap.heart, heard_again_at=-3.0))
    assert broken(evolve(starts, after=long_ago), told) == set()


def test_O1_a_node_that_waits_for_a_heartbeat_in_vain_tries_once_more_before_it_ends() -> None:
    settings = GroupSettings(start_timeout=10.0)
    told = step(led(settings=settings), ready(at=0.0), 0.0)
    tries = step(told.after, Elapsed(10.0), 10.0)
    ends = step(tries.after, Elapsed(15.0), 15.0)
    judge = Judge()
    for each in (told, tries, ends):
        judge.saw(each)
    judge = Judge()
    judge.saw(told)
    with pytest.raises(Violation, match=r"^O1: "):
        judge.saw(evolve(ends, before=told.after, at=10.0, event=Elapsed(10.0)))


# --- the failures that a node counts

LIMIT = FailureLimit(2, 100.0)
LEAVES_SOON = evolve(LIMIT, leaves=True)


def counts(state: RendezvousState, limit: FailureLimit = LIMIT) -> Held:
    settings = Settings(limits=state.limits, max_node_failures=limit, overdue_timeout=50.0)
    return but(holding("a", None, settings), state=state)


def fails(state: RendezvousState, failures: int) -> RendezvousState:
    return edited(state, "a", End(state.round, Why.FAILED, Failing(failures)))


def again(state: RendezvousState) -> RendezvousState:
    return arrived(state, "a b")


WORLDS = [running("a b", restarts=9)]
for number in (1, 2, 3):
    OPEN = fails(WORLDS[-1], number)
    WORLDS += [OPEN, again(OPEN)]
"""A world, and what stands after each of three failures of a, and when all are back."""


def judged(*states: tuple[float, RendezvousState], last: Decided | GaveUp, is_open: bool = False) -> str:
    judge = Judge()
    for at, state in states:
        judge.saw(Holds(counts(state), at))
    judge.past(node("a")).asks_whose = not is_open
    return " ".join(
        sorted({number for number, _ in findings(ASKED[type(last)], judge, last, Strength())} - {"B5", "O2"})
    )


def ends(state: RendezvousState, failing: Failing | None, at: float, limit: FailureLimit = LIMIT) -> Decided:
    return Decided(counts(state, limit), End(state.round, Why.FAILED, failing), at)


SEEN = [(10.0 * number, state) for number, state in enumerate(WORLDS)]


def test_O15_a_node_tells_how_often_it_has_failed_within_the_window_and_when_that_is_too_often() -> None:
    assert judged(*SEEN[:1], last=ends(WORLDS[0], Failing(1), 5.0)) == ""
    assert judged(*SEEN[:3], last=ends(WORLDS[2], Failing(2, 100.0), 25.0)) == ""
    assert judged(*SEEN[:3], last=ends(WORLDS[2], Failing(1), 200.0)) == ""
    for wrong in (Failing(1), Failing(2), Failing(3, 100.0), Failing(2, 200.0), None):
        assert judged(*SEEN[:3], last=ends(WORLDS[2], wrong, 25.0)) == "O15"
    assert judged(*SEEN[:5], last=ends(WORLDS[4], Failing(3, 100.0), 45.0)) == ""
    assert judged(*SEEN, last=ends(WORLDS[6], Failing(3, 100.0), 65.0)) == ""
    assert judged(*SEEN[:3], last=ends(WORLDS[2], Failing(2), 25.0, LEAVES_SOON)) == ""
    assert judged(*SEEN[:3], last=ends(WORLDS[2], Failing(2, 100.0), 25.0, LEAVES_SOON)) == "O15"


def test_O15_a_failure_whose_cause_is_open_is_not_told_of() -> None:
    assert judged(*SEEN[:1], last=ends(WORLDS[0], None, 5.0), is_open=True) == ""
    assert judged(*SEEN[:1], last=ends(WORLDS[0], Failing(1), 5.0), is_open=True) == "O15"


def test_O15_a_failure_that_a_loss_explains_counts_no_longer_and_those_of_others_never() -> None:
    refunded = edited(WORLDS[1], "a", Evict(frozenset({node("b")})))
    assert refunded.ended and refunded.ended.why is Why.LOST
    world = evolve(again(evolve(refunded, limits=Limits(1, 2, 9))), limits=WORLDS[0].limits)
    seen = *SEEN[:2], (11.0, refunded), (12.0, evolve(world, version=refunded.version + 5))
    assert judged(*seen, last=ends(WORLDS[2], Failing(1), 25.0)) == ""
    before = 5.0, evolve(WORLDS[1], life=Life("another"))
    assert judged(before, SEEN[0], last=ends(WORLDS[0], Failing(1), 25.0)) == ""
    others = edited(WORLDS[0], "b", End(0, Why.FAILED, Failing(1)))
    assert judged(SEEN[0], (10.0, others), (20.0, again(others)), last=ends(WORLDS[2], Failing(1), 25.0)) == ""


def test_O15_a_cool_down_is_twice_as_long_as_the_last() -> None:
    aside = reseated(WORLDS[3], a=Status.ASIDE)
    seen = *SEEN[:3], (30.0, aside), (40.0, evolve(WORLDS[4], version=aside.version + 9))
    assert judged(*seen, last=ends(WORLDS[4], Failing(3, 200.0), 45.0)) == ""
    assert judged(*seen, last=ends(WORLDS[4], Failing(3, 100.0), 45.0)) == "O15"


def test_O15_a_node_that_is_to_leave_does_not_come_back_and_leaves_when_all_others_are_there() -> None:
    waits = WORLDS[3]
    alone = arrived(waits, "b")
    back = Decided(counts(waits, LEAVES_SOON), Arrive(holding("a", None).who.profile), 31.0)
    assert judged(*SEEN[:4], last=back) == "O15"
    assert judged(*SEEN[:2], last=evolve(back, held=counts(WORLDS[1], LEAVES_SOON))) == ""
    assert judged(*SEEN[:4], last=evolve(back, held=counts(waits))) == ""

    def leaves(state: RendezvousState, at: float, limit: FailureLimit = LEAVES_SOON) -> GaveUp:
        return GaveUp(counts(state, limit), join, Why.UNFIT, at, at)

    assert judged(*SEEN[:4], (31.0, alone), last=leaves(alone, 31.0)) == ""
    assert judged(*SEEN[:4], last=leaves(waits, 31.0)) == judged(*SEEN[:2], last=leaves(WORLDS[1], 99.0)) == "O15"
    assert judged(*SEEN[:4], last=leaves(waits, 80.0)) == ""
    assert judged(*SEEN[:4], last=evolve(leaves(waits, 31.0), why=Why.TIMEOUT)) == "L7"
    assert judged(*SEEN[:4], (31.0, alone), last=leaves(alone, 31.0, LIMIT)) == "O15"
    spent = evolve(alone, limits=Limits(1, 2, 0))
    assert judged(*SEEN[:4], (31.0, spent), last=leaves(spent, 31.0)) == "O15"
