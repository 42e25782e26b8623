"""The judge of how agents end: each law by a history that is known to be wrong."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from typing import Any

import pytest
from attrs import evolve
from groups import FAIL, FENCED, RUN, beat, exited, led, noticed, over, ready
from worlds import (
    arrived,
    but,
    edited,
    heard,
    holding,
    node,
    nodes,
    profile,
    register,
    reseated,
    running,
    with_one_aside,
)

from elastic.core.group import Alone, Group, Phase, begin, transition
from elastic.core.group import Settings as GroupSettings
from elastic.core.group.state import (
    Checked,
    Closed,
    Course,
    Elapsed,
    Event,
    Failures,
    Gone,
    Noticed,
    Over,
    ReadyToLeave,
    Refused,
    Signalled,
    Unstartable,
)
from elastic.core.group.state import Reaped as GroupReaped
from elastic.core.properties import refusals
from elastic.core.properties.facts import (
    Began,
    Decided,
    Fact,
    Failed,
    GaveUp,
    Holds,
    Left,
    Noted,
    Operated,
    Slept,
    Started,
    Stepped,
    Wrote,
)
from elastic.core.properties.judge import Judge
from elastic.core.rendezvous import (
    Arrive,
    Comparison,
    Complete,
    Done,
    Drain,
    Edit,
    Evict,
    FailureLimit,
    Held,
    Leave,
    Limits,
    Overdue,
    Proceed,
    RendezvousState,
    Restore,
    Settings,
    Status,
    Violation,
    close,
    drain,
    end,
    join,
    leave,
    linger,
    restored,
    watch,
)
from elastic.core.rendezvous import Close as CloseJob
from elastic.core.rendezvous import End as EndEdit
from elastic.core.rendezvous import refusals as machine
from elastic.core.rendezvous.context import Fact as Known
from elastic.core.rendezvous.context import Handler, Suspect
from elastic.core.rendezvous.memory import advanced
from elastic.core.rendezvous.sightings import Sighting, Sightings
from elastic.core.world import Ending, Endpoint, Notice, Party, Profile, Verdict, Why

SETTINGS = Settings(join_timeout=600.0)
SPARE = arrived(running("a b", size="2"), "c")
ROOM = edited(SPARE, "b", Leave())


def c_holds(state: RendezvousState | None, at: float) -> Holds:
    return Holds(but(holding("c", None, SETTINGS), state=state), at)


def gives_up(at: float, why: Why = Why.TIMEOUT, answered_at: float = math.inf, handler: Handler = join) -> GaveUp:
    held: Held = holding("c", None, SETTINGS)
    return GaveUp(held, handler, why, at, min(answered_at, at))


def broken(*facts: Fact, judge: Judge | None = None) -> str | None:
    judge = judge or Judge()
    try:
        for fact in facts:
            judge.saw(fact)
    except Violation as violation:
        return violation.number
    return None


BEGAN = Began(node("c"), 0.0)


@pytest.mark.parametrize(
    "past",
    [
        (),
        (c_holds(SPARE, 1.0), c_holds(ROOM, 5_000.0)),
        (c_holds(SPARE, 1.0), c_holds(None, 5_000.0)),
        (c_holds(SPARE, 1.0), c_holds(ROOM, 4_000.0), Slept(node("c"), 5_000.0)),
    ],
    ids=["a joiner", "a spare that found room", "a spare whose store was lost", "a sleeper"],
)
def test_a_join_is_given_up_after_its_time_and_not_before(past: tuple[Fact, ...]) -> None:
    since = past[-1].at if past else 0.0  # type: ignore[union-attr]
    assert broken(BEGAN, *past, gives_up(since + 600.0)) is None
    assert broken(BEGAN, *past, gives_up(since + 599.9)) == "L7"
    assert broken(BEGAN, *past, gives_up(since + 600.0, Why.UNCONFIRMED)) is None
    assert broken(BEGAN, *past, gives_up(since + 599.9, Why.UNCONFIRMED)) == "L7"


def test_a_spare_does_not_give_up_however_long_it_waits() -> None:
    assert broken(BEGAN, c_holds(SPARE, 1.0), gives_up(9_000.0)) == "L7"


def test_a_spare_gives_up_a_store_that_is_silent_for_the_time_of_a_join() -> None:
    past = BEGAN, c_holds(SPARE, 1.0)
    assert broken(*past, gives_up(9_000.0, Why.UNCONFIRMED, 8_400.0)) is None
    assert broken(*past, gives_up(9_000.0, Why.UNCONFIRMED, 8_401.0)) == "L7"
    assert broken(*past, Slept(node("c"), 8_999.0), gives_up(9_000.0, Why.UNCONFIRMED, 8_400.0)) == "L7"


def test_the_time_of_a_join_begins_again_when_the_node_joins_again() -> None:
    stopping = led(*FAIL, exited(1, -15))
    again = Stepped(stopping, GroupReaped(500.0), *transition(stopping, GroupReaped(500.0)), 500.0)
    held = but(gives_up(700.0).held, node=stopping.node)
    began = Began(stopping.node, 0.0)
    assert broken(began, again, evolve(gives_up(1_100.0), held=held)) is None
    assert broken(began, again, evolve(gives_up(700.0), held=held)) == "L7"


def seated_with(program: str) -> RendezvousState:
    state = arrived(register("1:4"), "a")
    (seat,) = state.seats.values()
    return evolve(state, seats={node("a"): evolve(seat, profile=evolve(seat.profile, program=program))})


# --- what else is given up

OTHER = Settings(limits=register("1:4", 1).limits)
VERDICT = Verdict(Ending.CANCELLED, 0, node("b"), Why.ASKED)
CLOSED = edited(running("a b"), "b", CloseJob(VERDICT))


def watched(later: str, silence_s: float, why: Why) -> GaveUp:
    """Return the refusal of a node that has watched the later start of its slot for as long as that was silent."""
    it = refused(arrived(running("a b", size="2:3"), later), why)
    sightings = Sightings({node(later): Sighting(7, 1.0)}, 1.0 + silence_s)
    return evolve(it, held=but(it.held, sightings=sightings))


def gone(why: Why) -> GaveUp:
    """Return the refusal of a node because of a later start that has left."""
    return refused(reseated(running("a c#2"), **{"c#2": Status.GONE}), why)


def refused(state: RendezvousState | None, why: Why, settings: Settings | None = None, who: str = "c") -> GaveUp:
    return GaveUp(but(holding(who, state, settings), state=state), join, why, 1.0, 1.0)


def beside(program: str) -> GaveUp:
    """Return the refusal of a node that runs other.py because of one that runs this."""
    it = refused(seated_with(program), Why.PROGRAM)
    return evolve(it, held=but(it.held, profile=evolve(it.held.who.profile, program="other.py")))


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (refused(running(), Why.LIMITS, OTHER), refused(running(), Why.LIMITS)),
        (refused(CLOSED, Why.CLOSED), refused(running(), Why.CLOSED)),
        (refused(arrived(running("a b", size="2:3"), "c#2"), Why.SUPERSEDED), refused(running(), Why.SUPERSEDED)),
        (watched("c#2", 6.0, Why.BEHIND), watched("c#2", 4.0, Why.BEHIND)),
        (watched("c#2", 4.0, Why.SUPERSEDED), watched("c#2", 6.0, Why.SUPERSEDED)),
        (gone(Why.BEHIND), gone(Why.SUPERSEDED)),
        (beside("train.py"), beside("other.py")),
        (refused(running(), Why.ILLEGAL), refused(None, Why.LIMITS)),
        (refused(running(), Why.NO_NODE), refused(running(), Why.NEEDED)),
    ],
    ids=["limits", "closed", "superseded", "behind", "lives", "gone", "program", "illegal or nothing", "its own drain"],
)
def test_a_refusal_has_its_reason_in_the_register(right: GaveUp, wrong: GaveUp) -> None:
    assert broken(right) is None
    assert broken(wrong) == "O2"


def test_a_node_leaves_as_unfit_exactly_if_it_has_failed_too_often() -> None:
    settings = Settings(max_node_failures=FailureLimit(2, 60.0, leaves=True))
    held = but(holding("a", running("b c"), settings), failed_at=(1.0, 2.0))
    right = GaveUp(held, join, Why.UNFIT, 3.0, 3.0)
    assert broken(right) is None
    for wrong in (but(held, failed_at=(1.0, 62.0)), but(held, settings=Settings())):
        assert broken(evolve(right, held=wrong)) == "O2"
    assert broken(Decided(held, Arrive(profile("a")), 3.0)) == "O2"


OF_ITS_SLOT = {Why.BEHIND, Why.SUPERSEDED}
"""The refusals for a later start of the node's slot: that one has the seat, so there is none to take in spite of them."""


def test_each_reason_of_the_machine_has_its_law_and_a_seat_in_spite_of_it_too() -> None:
    reasons = {each.why for each in machine.REFUSALS}
    assert reasons - {why for why, law in refusals.REFUSALS.items() if law.unjust} == set()
    assert reasons - {why for why, law in refusals.REFUSALS.items() if law.ignored} == OF_ITS_SLOT


def a_gives_up(handler: Handler, at: float, answered_at: float = math.inf, **settings: float) -> GaveUp:
    stands = reseated(running(), a=Status.DONE) if handler is watch else running()
    held = holding("a", stands, Settings(**settings))  # type: ignore[arg-type]
    return GaveUp(held, handler, Why.UNCONFIRMED, at, min(answered_at, at))


def steps(*events: Event, settings: GroupSettings | None = None) -> list[Fact]:
    """Return the facts of a group that hears these events, each at its own time."""
    group, facts = begin(Group(node("a"), settings or GroupSettings()), 0.0)[0], list[Fact]()
    for event in events:
        after, commands = transition(group, event)
        facts.append(Stepped(group, event, after, commands, event.at))
        group = after
    return [Began(node("a"), 0.0), *facts]


def stepped(fact: Fact) -> Stepped:
    assert isinstance(fact, Stepped)
    return fact


def test_an_agent_ends_as_unfit_only_by_the_word_of_its_check() -> None:
    unfit = steps(Checked(False, "text", 1.0), Gone(2.0), settings=GroupSettings(checks=True))
    assert broken(*unfit) is None
    assert broken(unfit[-1]) == "O1"


def test_a_drained_node_that_was_found_unfit_ends_as_unfit() -> None:
    found = steps(ready(), Noticed(Notice(9.0, "a check"), 1.0, unfit=True), Gone(2.0))
    assert broken(*found) is None
    last = stepped(found[-1])
    assert last.after.deadline
    drained = evolve(last.after, deadline=evolve(last.after.deadline, unfit=""))
    assert broken(*found[:-1], evolve(last, after=drained)) == "O1"


TOLD = Signalled(15, 1.0)
UNSTARTABLE = Unstartable("no such file", 1.0)
DONE = (ready(), beat(), exited(0), exited(1, 0, 1.0), GroupReaped(1.0))


@pytest.mark.parametrize(
    ("past", "handler", "settings", "at"),
    [
        (steps(TOLD), leave, {"leave_timeout": 5.0}, 6.0),
        (steps(ready(), beat(), UNSTARTABLE), close, {"close_timeout": 5.0}, 6.0),
        (steps(*DONE), watch, {"barrier_timeout": 9.0}, 10.0),
        ([Holds(holding("a", CLOSED), 1.0), *steps(Closed(VERDICT, 1.0))], linger, {}, 16.0),
        ([], end, {"join_timeout": 30.0}, math.inf),
    ],
    ids=["leave", "close", "barrier", "linger", "end"],
)
def test_what_is_not_confirmed_is_given_up_after_its_time_and_not_before(
    past: list[Fact], handler: Handler, settings: dict[str, float], at: float
) -> None:
    if at < math.inf:
        assert broken(*past, a_gives_up(handler, at, **settings)) is None
        assert broken(*past, a_gives_up(handler, at - 0.1, **settings)) == "O2"
        assert broken(*past, Slept(node("a"), at - 1.0), a_gives_up(handler, at, **settings)) == "O2"
    silent = {**settings, "join_timeout": 30.0}
    assert broken(*past, a_gives_up(handler, 5.0, 2.0, **silent)) == "O2" or at <= 5.0
    assert broken(*past, a_gives_up(handler, 99.0, 69.0, **silent)) is None


def test_a_store_that_was_not_asked_is_not_silent() -> None:
    asked, unasked = (evolve(a_gives_up(end, 99.0, 9.0, join_timeout=30.0), tried_at=at) for at in (60.0, 50.0))
    assert broken(asked) is None
    assert broken(unasked) == "O2"


@pytest.mark.parametrize("status", [Status.IN, Status.RESERVE])
def test_O2_no_silence_of_the_store_stops_running_workers(status: Status) -> None:
    state = reseated(running("a b"), b=status)
    silent = GaveUp(but(holding("b", None), state=state), watch, Why.UNCONFIRMED, 9_999.0, 0.0)
    assert broken(silent) == "O2"
    done = evolve(silent, held=but(silent.held, state=reseated(state, b=Status.DONE)))
    assert broken(done) is None


@pytest.mark.parametrize(
    ("changes", "at", "why"),
    [
        ({}, 1_000.0, None),
        ({"still_since": 401.0}, 1_000.0, "O2"),
        ({"still_since": None}, 1_000.0, "O2"),
        ({"suspects": {}}, 1_000.0, "O2"),
        ({"suspects": {node("a"): Suspect(1.0)}}, 1_000.0, "O2"),
        ({"state": running("b", size="1:2")}, 1_000.0, "O2"),
        ({}, 999.0, "O2"),
    ],
    ids=["stranded", "moved", "nobody looked", "no word", "no evidence", "alone", "not for long"],
)
def test_O2_workers_that_stand_still_are_stopped_where_all_others_are_dead(
    changes: Mapping[str, Any], at: float, why: str | None
) -> None:
    dead = {node("a"): Suspect(1.0, is_gone=True)}
    held = but(holding("b", running("a b")), **{"suspects": dead, "still_since": 400.0, **changes})
    assert broken(GaveUp(held, watch, Why.UNCONFIRMED, at, 400.0, at - 1.0)) == why


# --- ends


def test_an_agent_ends_by_a_verdict_that_it_has_read() -> None:
    success = edited(edited(running(), "a", Done(0)), "b", Done(0))
    verdict = success.closed
    assert verdict
    told = steps(*DONE, Closed(verdict, 2.0))
    assert broken(Holds(holding("a", success), 1.5), *told) is None
    assert broken(*told) == "O1"
    assert broken(Holds(holding("a", CLOSED), 1.5), *told) == "O1"


def test_an_agent_ends_by_a_signal_that_it_was_sent() -> None:
    past = steps(TOLD, Gone(2.0))
    assert broken(*past) is None
    assert broken(past[-1]) == "O1"


def test_an_agent_that_waits_for_nobody_any_longer_has_waited() -> None:
    patient = GroupSettings(barrier_timeout=10.0)
    assert broken(*steps(*DONE, Elapsed(11.0), Gone(11.5), settings=patient)) is None
    early = evolve(patient, barrier_timeout=5.0)
    first, *past = steps(*DONE, Elapsed(6.0), Gone(6.5), settings=early)
    lied = [evolve(each, after=evolve(each.after, settings=patient)) for each in past if isinstance(each, Stepped)]
    assert broken(first, *lied) == "O1"


def test_an_agent_ends_by_a_refusal_that_it_was_given() -> None:
    refusal = Refused(Why.LIMITS, "", 1.0)
    assert broken(evolve(refused(running(), Why.LIMITS, OTHER, "a")), *steps(refusal)) is None
    assert broken(*steps(refusal)) == "O1"


def test_an_agent_that_is_held_back_gives_up_after_its_time_and_not_before() -> None:
    soon = GroupSettings(start_timeout=3.0, ttl=5.0)
    past = steps(ready(), Elapsed(3.0), Elapsed(8.0), settings=soon)
    assert broken(*past) is None
    lied = [evolve(each, after=evolve(each.after, settings=GroupSettings())) for each in map(stepped, past[1:])]
    assert broken(*lied) == "O1"


def test_an_agent_that_is_fenced_does_not_quit() -> None:
    fenced = steps(ready(), beat(), Elapsed(7.0), exited(0, -9, 7.1), exited(1, -9, 7.1), settings=FENCED)
    assert broken(*fenced) is None
    last = stepped(fenced[-1]).after
    for quits in (last, evolve(last, refused=Refused(Why.UNCONFIRMED, "", 7.0))):
        ended = evolve(quits, phase=Phase.ENDED)
        assert broken(*fenced, Stepped(quits, GroupReaped(7.2), ended, (), 7.2)) == "O1"


@pytest.mark.parametrize(
    "knows",
    [
        (Left(node("a")),),
        (Holds(holding("a", CLOSED), 2.0),),
        (GaveUp(holding("a", running()), leave, Why.ILLEGAL, 2.0, 2.0),),
        tuple(steps(TOLD, Signalled(2, 2.0))[2:]),
    ],
    ids=["the register knows", "the job is over", "refused", "a second signal"],
)
def test_an_agent_that_was_told_to_go_ends_when_the_register_knows(knows: tuple[Fact, ...]) -> None:
    past = steps(ready(), beat(), TOLD, exited(0, -15, 1.5), exited(1, -15, 1.5))
    leaving = stepped(past[-1]).after
    ends = Stepped(leaving, GroupReaped(2.0), evolve(leaving, phase=Phase.ENDED), (), 2.0)
    assert broken(*past, *knows, ends) is None
    assert broken(*past, ends) == "O3"
    assert broken(*past, evolve(ends, at=6.0)) is None


def test_an_unfit_node_that_waits_for_the_register_ends_at_a_signal() -> None:
    unfit = steps(Checked(False, "text", 1.0), Signalled(15, 2.0), settings=GroupSettings(checks=True))
    assert stepped(unfit[-1]).after.phase is Phase.ENDED
    assert broken(*unfit) is None
    leaving = stepped(unfit[-2]).after
    ends = Stepped(leaving, Elapsed(2.0), evolve(leaving, phase=Phase.ENDED), (), 2.0)
    assert broken(*unfit[:-1], ends) == "O3"


# --- what is written

OPEN = edited(running("a b", restarts=1), "a", EndEdit(0, Why.FAILED))
QUORATE = arrived(register("1:4"), "a")
NEWCOMER = arrived(running("a b", size="1:3"), "c")
CIRCLES = evolve(running("a b", size="2:3"), limits=Limits(2, 3, give_up_after=3))
AGAIN = arrived(CIRCLES, "b#2 a c")
SPANS = Settings(overdue_timeout=9.0, last_call_timeout=9.0, upscale_after=9.0, progress_after=9.0)


def decides(state: RendezvousState, edit: Edit, at: float, settings: Settings = SPANS) -> Decided:
    return Decided(evolve(holding("a", state, settings)), edit, at)


@pytest.mark.parametrize(
    ("state", "edit", "before"),
    [
        (OPEN, Overdue(1), running("a b", restarts=1)),
        (QUORATE, Complete(0), register("1:4")),
        (NEWCOMER, EndEdit(0, Why.UPSCALE), running("a b", size="1:3")),
        (AGAIN, Proceed(1), CIRCLES),
    ],
    ids=["overdue", "last call", "upscale", "proceed"],
)
def test_no_chore_is_done_before_its_time(state: RendezvousState, edit: Edit, before: RendezvousState) -> None:
    seen = Holds(holding("a", before, SPANS), 0.0), Holds(holding("a", state, SPANS), 1.0)
    assert broken(*seen, decides(state, edit, 10.0)) is None
    assert broken(*seen, decides(state, edit, 9.9)) == "O4"
    assert broken(*seen, Slept(node("a"), 3.0), decides(state, edit, 11.0)) == "O4"
    assert broken(*seen, Holds(holding("a", CLOSED, SPANS), 8.0), decides(state, edit, 10.0)) == "O4"
    assert broken(*seen, Holds(holding("a", before, SPANS), 8.0), decides(state, edit, 10.0)) == "O4"


@pytest.mark.parametrize(
    ("who", "state", "edit"),
    [
        ("b", OPEN, Overdue(1)),
        ("b", arrived(QUORATE, "b"), Complete(0)),
        ("b", NEWCOMER, EndEdit(0, Why.UPSCALE)),
        ("c", AGAIN, Proceed(1)),
    ],
    ids=["overdue", "last call", "upscale", "proceed"],
)
def test_O17_a_chore_is_left_to_the_coordinator_for_a_while(who: str, state: RendezvousState, edit: Edit) -> None:
    held = holding(who, state, SPANS)
    assert broken(Holds(held, 1.0), Decided(held, edit, 10.5)) == "O17"
    assert broken(Holds(held, 1.0), Decided(held, edit, 10.6)) is None
    silent = Sightings({other: Sighting(1, 4.0) for other in state.present if other != held.who.node}, 9.9)
    assert broken(Holds(held, 1.0), Decided(but(held, sightings=silent), edit, 10.0)) is None


def test_O17_the_dead_are_evicted_by_the_coordinator_and_after_a_while_by_others() -> None:
    held = holding("b", running("a b c"), SPANS)
    for at in (0.0, 1.0, 2.0, 3.0, 4.0, 5.0):
        held = heard(held, {node("a"): int(at), node("c"): 1}, at, at)
    edit = Evict(nodes("c"))
    assert broken(Holds(held, 0.0), Decided(held, edit, 5.5)) == "O17"
    assert broken(Holds(held, 0.0), Decided(held, edit, 5.6)) is None
    is_gone = but(held, suspects={node("c"): Suspect(5.0, 5.0, is_gone=True)}, state=_with_port(held))
    assert broken(Holds(held, 0.0), Decided(is_gone, edit, 5.0)) is None


def test_O17_a_node_that_a_lease_shows_to_be_dead_is_evicted_by_others_after_a_while() -> None:
    held = holding("b", running("a b c"), evolve(SPANS, leased=True))
    dead = Sightings({node("a"): Sighting(1, 5.0), node("c"): Sighting(None, -math.inf)}, 5.0)
    held = but(held, sightings=dead, spans={Known.DEAD: (True, 5.0)})
    edit = Evict(nodes("c"))
    assert broken(Holds(held, 0.0), Decided(held, edit, 5.5)) == "O17"
    assert broken(Holds(held, 0.0), Decided(held, edit, 5.6)) is None
    assert broken(Holds(held, 0.0), Decided(but(held, spans={}), edit, 9.0)) == "O17"


def test_O17_a_node_gives_up_its_own_seat_at_once() -> None:
    held = holding("b", running("a b c"), SPANS)
    assert broken(Holds(held, 0.0), Decided(held, Evict(nodes("b")), 0.1)) is None


def test_O17_progress_by_an_advance_is_told_by_the_coordinator_and_after_a_while_by_others() -> None:
    ahead = but(holding("c", AGAIN, SPANS), advanced_in=AGAIN.world_id, spans={Known.ADVANCE: (1, 5.0)})
    assert broken(Holds(ahead, 1.0), Decided(ahead, Proceed(1), 5.5)) == "O17"
    assert broken(Holds(ahead, 1.0), Decided(ahead, Proceed(1), 5.6)) is None
    assert broken(Holds(ahead, 1.0), Decided(but(ahead, spans={}), Proceed(1), 10.6)) is None


def _with_port(held: Held) -> RendezvousState:
    assert held.view.state is not None
    seats = {
        who: evolve(seat, profile=evolve(seat.profile, link_port=1)) for who, seat in held.view.state.seats.items()
    }
    return evolve(held.view.state, seats=seats)


def test_O17_who_has_left_and_still_runs_waits_twice_as_long_and_who_has_no_seat_for_ever() -> None:
    state = edited(edited(AGAIN, "b#2", Done(1)), "b#2", Leave())
    assert state.seats[node("b#2")].status is Status.GONE
    for who, may in (("b#2", True), ("z", False)):
        held = holding(who, state, SPANS)
        assert broken(Holds(held, 1.0), Decided(held, Proceed(1), 11.1)) == "O17"
        assert (broken(Holds(held, 1.0), Decided(held, Proceed(1), 11.2)) is None) is may


@pytest.mark.parametrize("edit", [Evict(nodes("b#2")), EndEdit(1, Why.UPSCALE)], ids=["a loss", "a newcomer"])
def test_O14_a_round_that_has_grown_old_ends_for_nothing_before_it_has_done_so(edit: Edit) -> None:
    seen, held = Holds(holding("a", AGAIN, SPANS, ran=1), 1.0), holding("a", AGAIN, SPANS, ran=1)
    late, in_time = Decided(held, edit, 11.3), Decided(held, edit, 11.1)
    assert broken(seen, late) == "O14"
    assert broken(seen, in_time) is None
    forgiven = holding("a", edited(AGAIN, "a", Proceed(1)), SPANS, ran=1)
    assert broken(seen, Holds(forgiven, 10.0), Decided(forgiven, edit, 11.3)) is None
    assert broken(seen, evolve(late, edit=EndEdit(1, Why.FAILED))) != "O14"
    assert broken(seen, evolve(late, held=holding("a", AGAIN, SPANS))) is None


def test_O14_a_round_in_which_a_worker_has_advanced_ends_for_nothing_before_that_is_told() -> None:
    ahead = advanced(holding("a", AGAIN, SPANS, ran=1), 1, 1.0)
    edit = Evict(nodes("b#2"))
    assert broken(Holds(ahead, 1.0), Decided(ahead, edit, 2.3)) == "O14"
    assert broken(Holds(ahead, 1.0), Decided(ahead, edit, 2.1)) is None
    assert broken(Holds(ahead, 1.0), Decided(ahead, Proceed(1), 1.0)) is None


def test_a_newcomer_waits_for_its_party_and_once_that_is_there_no_longer_than_alone() -> None:
    two, runs = Party("n", 2), running("a b", size="1:4")
    spans = Settings(upscale_after=1.0, party_timeout=9.0)
    first = edited(runs, "c", Arrive(evolve(profile("c"), party=two)))
    both = edited(first, "d", Arrive(evolve(profile("d"), party=two)))
    ends = EndEdit(0, Why.UPSCALE)
    seen = Holds(holding("a", runs, spans), 0.0), Holds(holding("a", first, spans), 1.0)
    assert broken(*seen, decides(first, ends, 9.9, spans)) == "O4"
    assert broken(*seen, decides(first, ends, 10.0, spans)) is None
    later = Holds(holding("a", both, spans), 5.0)
    assert broken(*seen, later, decides(both, ends, 5.9, spans)) == "O4"
    assert broken(*seen, later, decides(both, ends, 6.0, spans)) is None


def test_a_newcomer_begins_no_span_anew_and_an_open_round_does() -> None:
    more = arrived(running("a b", size="1:4"), "c"), arrived(running("a b", size="1:4"), "c d")
    seen = [Holds(holding("a", state, SPANS), at) for state, at in zip(more, (1.0, 8.0), strict=True)]
    assert broken(*seen, decides(more[1], EndEdit(0, Why.UPSCALE), 10.0)) is None
    again = edited(arrived(OPEN, "a b"), "a", EndEdit(1, Why.UPSCALE))
    seen = [Holds(holding("a", state, SPANS), at) for state, at in zip((OPEN, again), (1.0, 8.0), strict=True)]
    assert broken(*seen, decides(again, Overdue(2), 10.0)) == "O4"


def test_a_round_that_began_for_a_newcomer_ends_for_others_later_unless_they_fill_the_job() -> None:
    spans, ends = Settings(upscale_after=1.0), EndEdit(1, Why.UPSCALE)
    for size, may_end in (("1:5", False), ("1:4", True)):
        grown = arrived(edited(arrived(running("a b", size=size), "c"), "a", EndEdit(0, Why.UPSCALE)), "a b")
        more = arrived(grown, "d")
        seen = Holds(holding("a", grown, spans), 0.0), Holds(holding("a", more, spans), 1.0)
        assert broken(*seen, decides(more, ends, 1.9, spans)) == "O4"
        assert broken(*seen, decides(more, ends, 3.9, spans)) == (None if may_end else "O4")
        assert broken(*seen, decides(more, ends, 4.0, spans)) is None
    grown = arrived(edited(arrived(running("a b", size="1:5"), "c"), "a", EndEdit(0, Why.UPSCALE)), "a b")
    brief = evolve(spans, join_timeout=6.0)
    seen = Holds(holding("a", grown, brief), 0.0), Holds(holding("a", arrived(grown, "d"), brief), 1.0)
    assert broken(*seen, decides(arrived(grown, "d"), ends, 2.9, brief)) == "O4"
    assert broken(*seen, decides(arrived(grown, "d"), ends, 3.0, brief)) is None
    full = arrived(edited(arrived(running("a b", size="1:4"), "c"), "a", EndEdit(0, Why.UPSCALE)), "a b d")
    aside = reseated(full, b=Status.ASIDE)
    assert broken(Holds(holding("a", aside, spans), 0.0), decides(aside, ends, 3.9, spans)) == "O4"


def test_the_first_last_call_of_a_job_may_be_another_one() -> None:
    first = evolve(SPANS, first_call_timeout=3.0)
    seen = Holds(holding("a", QUORATE, first), 1.0)
    assert broken(seen, decides(QUORATE, Complete(0), 4.0, first)) is None
    assert broken(seen, decides(QUORATE, Complete(0), 3.9, first)) == "O4"
    later = evolve(QUORATE, ended=OPEN.ended)
    assert broken(Holds(holding("a", later, first), 1.0), decides(later, Complete(0), 4.0, first)) == "O4"


def test_no_newcomer_ends_the_round_of_a_drained_member() -> None:
    drained = edited(NEWCOMER, "b", Drain(node("b"), Notice(30.0, "a test")))
    seen = Holds(holding("a", drained, SPANS), 1.0)
    assert broken(seen, decides(drained, EndEdit(0, Why.UPSCALE), 90.0)) == "O4"
    waits = edited(arrived(running("a b", size="1:4"), "c d"), "c", Drain(node("c"), Notice(30.0, "a test")))
    assert broken(Holds(holding("a", waits, SPANS), 1.0), decides(waits, EndEdit(0, Why.UPSCALE), 90.0)) is None


def test_an_operator_drains_no_node_that_the_job_needs_unless_it_insists() -> None:
    state, edit = running("a b", size="2:3"), Drain(node("b"), Notice(1.0, "a test"))
    assert broken(Operated(edit, state, insists=False)) == "O2"
    assert broken(Operated(edit, state, insists=True), Operated(edit, None, insists=False)) is None
    assert broken(Operated(edit, running("a b c", size="2:3"), insists=False)) is None
    assert broken(Operated(Why.NO_JOB, None, insists=False), Operated(Why.NEEDED, state, insists=False)) is None
    assert broken(Operated(Why.NO_JOB, state, insists=False)) == "O2"


def test_a_node_closes_the_job_in_its_own_name_and_in_the_round_that_it_holds() -> None:
    state = evolve(running("a b"), round=3)

    def closes(by: str, round: int) -> str | None:
        return broken(decides(state, CloseJob(Verdict(Ending.CANCELLED, round, node(by), Why.ASKED)), 1.0))

    assert [closes("a", 3), closes("b", 3), closes("a", 0)] == [None, "O6", "O6"]


def test_an_operator_is_refused_only_a_node_that_is_gone_or_that_the_job_needs() -> None:
    notice = Notice(1.0, "a test")
    state = edited(edited(running("a b c", size="2:3"), "c", Done(0)), "c", Leave())
    gone, there = Drain(node("c"), notice), Drain(node("a"), notice)
    assert state.seats[node("c")].status is Status.GONE
    assert broken(Operated(gone, state, insists=True)) == broken(Operated(there, state, True, gone.node)) == "O2"
    assert broken(Operated(Why.NO_NODE, state, False, gone.node), Operated(there, state, insists=True)) is None
    assert broken(Operated(Why.NO_NODE, state, False, node("nobody"))) is None
    assert broken(Operated(Why.NO_NODE, state, False, there.node)) == "O2"
    assert broken(Operated(Why.NEEDED, state, False, there.node)) is None
    assert broken(Operated(Why.NEEDED, running("a b c", size="2:3"), False, there.node)) == "O2"
    assert broken(Operated(Why.UNCONFIRMED, state, False, gone.node)) is None


CHECKS = GroupSettings(checks=True)
FIT, MINE = Checked(True, "", 0.0), Over(0, Why.FAILED, node("a"), 2.0)
ENDS = exited(1, -15, at=1.5), GroupReaped(1.6)


def test_G7_a_node_joins_after_a_check_and_is_checked_again_after_a_failure_of_its_own() -> None:
    for told in (MINE, over(at=2.0), Over(0, None, None, 2.0)):
        assert broken(*steps(FIT, *FAIL, told, *ENDS, settings=CHECKS)) is None
        assert broken(*steps(FIT, *FAIL, *ENDS, told, settings=CHECKS)) is None
    joins = stepped(steps(FIT, settings=CHECKS)[-1])
    checks = stepped(steps(FIT, *FAIL, MINE, *ENDS, settings=CHECKS)[-1])
    fails, reaped = (
        steps(FIT, *FAIL, over(at=2.0), *ENDS, settings=CHECKS),
        evolve(checks.before, failures=Failures()),
    )
    assert broken(evolve(joins, event=Over(0, None, None, 1.0))) == "G7"  # no check has found it fit
    assert (
        broken(*steps(FIT, *FAIL, MINE, settings=CHECKS), evolve(joins, before=reaped, event=GroupReaped(2.0))) == "G7"
    )
    assert broken(*steps(FIT, *FAIL, settings=CHECKS), evolve(joins, before=reaped, event=GroupReaped(2.0))) == "G7"
    assert broken(*fails[:-1], checks) == "G7"  # another node's failure ended the round


def test_nobody_leaves_unasked() -> None:
    assert broken(*steps(TOLD), decides(running(), Leave(), 1.0)) is None
    assert broken(*steps(), decides(running(), Leave(), 1.0)) == "O5"
    assert broken(*steps(), decides(QUORATE, Leave(), 600.0)) is None
    done = edited(running(), "a", Done(0))
    patient = Settings(barrier_timeout=9.0)
    assert broken(*steps(*DONE), decides(done, Leave(), 10.0, patient)) is None
    assert broken(*steps(*DONE), decides(done, Leave(), 9.9, patient)) == "O5"
    assert broken(*steps(*DONE), decides(running(), Leave(), 10.0, patient)) == "O5"
    nothing = Decided(but(holding("a", None), state=None), Leave(), 10.0)
    assert broken(*steps(*DONE), nothing) == "O5"


def test_only_a_fenced_member_ends_a_round_as_fenced() -> None:
    fenced = decides(running(), EndEdit(0, Why.FENCED), 9.0)
    assert broken(*steps(ready()), fenced) is None
    assert broken(*steps(), fenced) == "O6"
    assert broken(*steps(ready()), Started(node("a"), running().world), fenced) == "O6"
    nothing = Decided(but(holding("a", None), state=None), EndEdit(0, Why.FENCED), 9.0)
    assert broken(*steps(ready()), nothing) == "O6"


def test_a_node_that_cannot_start_leaves_only_if_the_job_need_not_end_and_ends_it_only_if_it_must() -> None:
    cannot, told = CloseJob(Verdict(Ending.FAILED, 0, node("a"), Why.CANNOT_START)), steps(ready(), beat(), UNSTARTABLE)
    others = running("a b", size="1:2")
    assert broken(*told, decides(others, Leave(), 9.0)) is None
    assert broken(*told, decides(others, cannot, 9.0)) == "O6"
    assert broken(*told, decides(running(), Leave(), 9.0)) == "O5"
    assert broken(*steps(UNSTARTABLE), decides(running("b c"), cannot, 9.0)) == "O6", "it stands without a"


def test_an_agent_that_cannot_start_ends_as_unfit() -> None:
    out = steps(UNSTARTABLE, Gone(2.0))
    assert broken(*out) is None
    assert broken(stepped(out[-1])) == "O1"


def test_only_a_program_that_could_not_be_started_closes_the_job_as_such() -> None:
    cannot = CloseJob(Verdict(Ending.FAILED, 0, node("a"), Why.CANNOT_START))
    assert broken(*steps(ready(), beat(), UNSTARTABLE), decides(running(), cannot, 9.0)) is None
    assert broken(*steps(ready(), beat()), decides(running(), cannot, 9.0)) == "O6"


def test_a_failure_is_charged_once_and_none_is_charged_that_was_not() -> None:
    failed = Failed(node("a"), running().world.id)
    charged, fenced = (decides(running(), EndEdit(0, why), 9.0) for why in (Why.FAILED, Why.FENCED))
    assert broken(failed, charged) is None
    assert broken(charged) == "B5"
    owes = steps(ready(), beat(), exited(0, 1, 1.0), exited(1, -15, 1.1))
    assert broken(*owes, failed, fenced) == "B5"
    assert broken(*owes, failed, charged) is None
    lost = Wrote(node("b"), None, *restored_from(running()))
    assert broken(*owes, failed, lost, fenced) is None


def restored_from(state: RendezvousState) -> tuple[Restore, RendezvousState]:
    restore = Restore(state, "again")
    return restore, restored(restore, None)


def test_a_node_of_other_limits_takes_no_seat() -> None:
    arrives = Decided(holding("c", running(), OTHER), Arrive(profile("c")), 1.0)
    assert broken(arrives) == "O2"
    assert broken(evolve(arrives, held=holding("c", running()))) is None


def test_a_node_of_another_program_takes_no_seat() -> None:
    state = running()
    seats = {who: evolve(seat, profile=evolve(seat.profile, program="train.py")) for who, seat in state.seats.items()}
    named = evolve(state, seats=seats)
    for program, number in (("other.py", "O2"), ("train.py", None), ("", None)):
        assert broken(Decided(holding("c", named), Arrive(evolve(profile("c"), program=program)), 1.0)) == number
    other = evolve(profile("c"), program="other.py")
    allowed = Settings(limits=state.limits, same_program=Comparison.NONE)
    assert broken(Decided(holding("c", named, allowed), Arrive(other), 1.0)) is None
    assert broken(Decided(holding("c", named), Arrive(evolve(other, role="another")), 1.0)) is None


def barred(why: Why, its: Profile, mine: Profile) -> tuple[GaveUp, Decided]:
    """Return a refusal of a newcomer in a job of one node, and its arrival."""
    state = running("a", "1")
    state = evolve(state, seats={node("a"): evolve(state.seats[node("a")], profile=its)})
    settings = Settings(state.limits, same_program=Comparison.ARGUMENTS)
    held = but(holding("c", state, settings), profile=mine)
    return GaveUp(held, join, why, 1.0, 1.0), Decided(held, Arrive(mine), 1.0)


def test_a_loopback_address_of_another_host_keeps_a_newcomer_out_and_only_that() -> None:
    local, number = Endpoint("localhost", 1), Endpoint("10.0.0.7", 1)
    for its, mine, refuses in (
        (Profile(local, host="gpu-01"), Profile(number, host="gpu-02"), True),
        (Profile(number, host="gpu-01"), Profile(local, host="gpu-02"), True),
        (Profile(local, host="gpu-01"), Profile(local, host="gpu-02"), False),
        (Profile(local, host="gpu-01"), Profile(number, host="gpu-01"), False),
    ):
        gives_up, arrives = barred(Why.LOOPBACK, its, mine)
        assert (broken(gives_up), broken(arrives)) == ((None, "O2") if refuses else ("O2", None))


def test_a_job_that_nobody_has_named_keeps_others_out_and_only_that() -> None:
    its = evolve(profile("a"), program="train.py", arguments="1f")
    for mine, refuses in ((evolve(its, arguments="2e"), True), (its, True), (evolve(its, role="reader"), False)):
        gives_up, arrives = barred(Why.ARGUMENTS, its, mine)
        assert (broken(gives_up), broken(arrives)) == ((None, "O2") if refuses else ("O2", None))
    gives_up, arrives = barred(Why.ARGUMENTS, its, evolve(its, arguments="2e"))
    was_there = but(gives_up.held, spare_at=0.5)
    assert broken(evolve(gives_up, held=was_there)) == "O2"
    assert broken(evolve(arrives, held=was_there)) is None


# --- drained nodes

DRAINED = (*RUN, noticed(60.0))


def test_O7_a_drained_node_leaves_when_its_workers_are_ready_at_its_time_or_when_its_round_is_over() -> None:
    ready = ReadyToLeave(0, 1.0), ReadyToLeave(1, 2.0)
    for last in ((*ready,), (Elapsed(29.0),), (over(at=3.0),)):
        assert broken(*steps(*DRAINED, *last)) is None
    *past, _, last_ = steps(*DRAINED, *ready)
    assert broken(*past, last_) == "O7"
    *past, last_ = steps(*DRAINED, Elapsed(29.0))
    assert broken(*past, evolve(stepped(last_), at=5.0, event=Elapsed(5.0))) == "O7"


def test_O7_a_worker_that_is_started_again_is_not_ready_any_longer() -> None:
    ready, other = ReadyToLeave(0, 1.0), ReadyToLeave(1, 3.0)
    alone = GroupSettings(alone=Alone(1))
    assert broken(*steps(*DRAINED, ready, exited(0, 1, 2.0), other, ready, settings=alone)) is None
    *past, last_ = steps(*DRAINED, ready, exited(0, 1, 2.0), other, settings=alone)
    leaves = transition(evolve(stepped(last_).before, course=Course(ready=frozenset({0}))), other)
    assert broken(*past, evolve(stepped(last_), after=leaves[0], commands=leaves[1])) == "O7"


def left_in_time() -> list[Fact]:
    *past, last_ = steps(*DRAINED, Elapsed(29.0), Gone(30.0), GroupReaped(31.0))
    return [*past, Left(node("a")), last_]


def test_O8_a_drained_node_is_gone_by_its_deadline() -> None:
    past = left_in_time()
    assert broken(*past) is None
    late = evolve(stepped(past[-1]), at=60.1, event=GroupReaped(60.1))
    assert broken(*past[:-1], late) == "O8"
    for stood_until, number in ((0.1, None), (0.0, "O8")):
        judge = Judge(excused={late.after.node: stood_until})
        assert broken(*past[:-1], late, judge=judge) == number
        assert judge.strength.excused["O8"] == (number is None)


def test_O2_the_time_of_the_first_notice_that_is_not_told_yet_counts() -> None:
    past = steps(*RUN, noticed(60.0, 1.0, known=False), noticed(50.0, 4.0, known=False))
    gives_up = a_gives_up(drain, 6.5)
    assert broken(*past, gives_up) is None
    assert broken(*past, Noted(node("a")), gives_up) == "O2"
    assert broken(*past, gives_up, gives_up) == "O2"
    assert broken(*past, gives_up, a_gives_up(drain, 9.0)) is None


def test_O1_and_O5_a_node_ends_as_drained_by_a_notice_and_gives_it_to_itself_alone() -> None:
    assert broken(*left_in_time()[5:]) == "O1"
    held = holding("a", running("a b"), ran=0)
    assert broken(Decided(held, Drain(node("a"), Notice(9.0, "x")), 1.0)) is None
    assert broken(Decided(held, Drain(node("b"), Notice(9.0, "x")), 1.0)) == "O5"


def test_a_node_that_is_set_aside_comes_back_after_its_cool_down_and_not_before() -> None:
    state = with_one_aside(cooldown_s=60.0)
    seen = Holds(holding("b", state), 1.0)
    returns = [Decided(holding("b", state), Arrive(profile("b")), at) for at in (60.9, 61.0)]
    assert [broken(seen, each) for each in returns] == ["O9", None]
    assert broken(seen, Slept(node("b"), 3.0), returns[1]) == "O9"
    judge = Judge()
    for fact in (seen, returns[1], Decided(holding("a", state), Leave(), 1.0)):
        with contextlib.suppress(Violation):
            judge.saw(fact)
    assert judge.strength.armed["O9"] == 1
