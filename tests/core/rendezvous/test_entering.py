"""Many come without a seat: each leaves a proposal to enter, and one of them writes for all."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest
from attrs import evolve
from worlds import anew, arrived, but, edited, holding, node, operation, profile, register, running, seats

from elastic.core.rendezvous import (
    Arrive,
    Client,
    Complete,
    Decision,
    Done,
    Drain,
    End,
    Ended,
    Fail,
    Gather,
    Held,
    Leave,
    Limits,
    Proposal,
    Propose,
    Raise,
    RendezvousState,
    Restore,
    Return,
    Settings,
    Settled,
    Silent,
    Status,
    Together,
    Token,
    Wait,
    Write,
    gathered,
    join,
    joined,
    proposed,
    restored,
    saw,
    step,
    turn,
    unanswered,
)
from elastic.core.rendezvous.actions import entrants
from elastic.core.rendezvous.agenda import Agenda
from elastic.core.rendezvous.context import Handler, context
from elastic.core.rendezvous.handlers import leave
from elastic.core.world import Endpoint, Life, Node, Notice, Party, Profile, Why, WorldId

OPEN = arrived(register("6"), "a")
"""a has begun a job of six."""
MANY = Settings(OPEN.limits, helping_above=2)
ERA = OPEN.era


def proposal(of: str, era: Token = ERA) -> Proposal:
    return Proposal(era, Arrive(profile(of)), enters=True)


def test_who_enters_a_first_round_with_a_target_proposes_only_if_many_are_missing_from_that() -> None:
    limits = Limits(1, 100)
    for target, asks in ((3, Write), (4, Propose)):
        settings = Settings(limits, first_target=target, helping_above=2, last_call_timeout=9.0)
        begun = turn(operation(join), holding("a", None, settings), 0.0)
        assert isinstance(begun, Write) and (begun.state.target, begun.state.complete) == (target, False)
        assert type(turn(operation(join), holding("b", begun.state, settings), 0.0)) is asks
    settings = Settings(limits, first_target=5, helping_above=2)
    begun = turn(operation(join), holding("a", None, settings), 0.0)
    assert isinstance(begun, Write)
    assert type(turn(operation(join), holding("b", arrived(begun.state, "c d"), settings), 0.0)) is Write


def test_a_first_round_is_complete_when_its_target_is_there() -> None:
    settings = Settings(Limits(1, 100), first_target=2)
    begun = turn(operation(join), holding("a", None, settings), 0.0)
    assert isinstance(begun, Write)
    assert seats(arrived(begun.state, "b")) == {"a": "in", "b": "in"}
    assert arrived(begun.state, "b").complete


def test_who_enters_a_later_round_proposes_only_if_its_party_is_many() -> None:
    state = edited(running("a", size="1:100"), "a", End(0, Why.FAILED))
    settings = Settings(state.limits, helping_above=2)
    for size, asks in ((2, Write), (3, Propose)):
        held = but(holding("b", state, settings), profile=evolve(profile("b"), party=Party("n", size)))
        assert type(turn(operation(join), held, 0.0)) is asks


def test_of_a_party_that_is_larger_than_the_room_as_many_enter_as_there_is_room_for() -> None:
    state = edited(running("a", size="1:4"), "a", End(0, Why.FAILED))
    settings = Settings(state.limits, helping_above=3)
    held = but(holding("b", state, settings), profile=evolve(profile("b"), party=Party("n", 9)))
    assert context(operation(join), held, 0.0).entrants == state.room == 3
    assert isinstance(turn(operation(join), held, 0.0), Write)


def proposals(names: str, era: Token = ERA) -> Mapping[Node, Proposal]:
    return {node(who): proposal(who, era) for who in names.split()}


def running_program(of: str, program: str) -> Proposal:
    return Proposal(ERA, Arrive(evolve(profile(of), program=program)), enters=True)


def joins(held: Held, now: float = 0.0, deadline: float = math.inf, handler: Handler = join) -> Decision:
    return turn(operation(handler, deadline=deadline), held, now)


def entering(who: str, count: int, state: RendezvousState = OPEN, settings: Settings = MANY) -> Held:
    """A node that has put down its proposal to enter at 0 s, and was told how many there are."""
    return proposed(holding(who, state, settings), proposal(who, state.era), count, 0.0, 0.0)


# --- what a proposal to enter is worth


def test_all_who_enter_are_seated_by_one_write() -> None:
    after = edited(OPEN, "d", Together(proposals("b c d")))
    assert seats(after) == dict.fromkeys("adbc", "in")
    assert after.version == OPEN.version + 1
    assert (after.orders, after.next_order) == ((0, 1, 2, 3), 4)


def test_the_last_who_enters_completes_the_round() -> None:
    assert edited(OPEN, "f", Together(proposals("b c d e f"))).complete


def test_who_enters_beyond_the_maximum_is_a_spare() -> None:
    after = edited(OPEN, "b", Together(proposals("b c d e f g")))
    assert after.complete and after.redundancy_list == (node("g"),)


def test_what_was_not_written_counts_no_longer_so_that_nobody_is_seated_twice() -> None:
    some = edited(OPEN, "b", Together(proposals("b c")))
    left = edited(some, "c", Leave())
    assert some.era != ERA
    assert edited(left, "a", Together(proposals("b c d"))) is left


def test_who_leaves_before_it_has_a_seat_voids_its_proposal() -> None:
    bumped = edited(OPEN, "b", Leave())
    assert edited(bumped, "c", Together(proposals("b c"))) is bumped


@pytest.mark.parametrize(
    "era",
    [Token(OPEN.life, OPEN.version), Token(Life("another"), OPEN.stale_before)],
    ids=["another era", "another life"],
)
def test_a_proposal_to_enter_of_another_era_is_none(era: Token) -> None:
    assert edited(OPEN, "b", Together(proposals("b c", era))) is OPEN
    assert set(seats(edited(OPEN, "b", Together({**proposals("b"), **proposals("c", era)})))) == {"a", "b"}


def test_a_proposal_to_enter_counts_in_an_open_round_only() -> None:
    runs = running("a b", size="2:6")
    assert edited(runs, "c", Together(proposals("c d", runs.era))) is runs


def test_who_has_a_seat_does_not_enter() -> None:
    both = arrived(OPEN, "b")
    after = edited(both, "c", Together(proposals("b c")))
    assert after.seats[node("b")] is both.seats[node("b")]
    assert edited(both, "b", Together(proposals("b"))) is both


def test_only_the_latest_incarnation_of_a_slot_enters() -> None:
    after = edited(OPEN, "c", Together(proposals("b b#3 b#2 c")))
    assert set(seats(after)) == {"a", "b#3", "c"}


def test_whose_slot_is_taken_does_not_enter() -> None:
    after = edited(OPEN, "c", Together(proposals("a#2 c")))
    assert set(seats(after)) == {"a", "c"}


def test_who_writes_takes_the_seat_of_its_own_earlier_incarnation() -> None:
    after = edited(OPEN, "a#2", Together(proposals("a#2 b")))
    assert set(seats(after)) == {"a#2", "b"}


def test_the_next_incarnation_of_a_dead_node_refunds_nothing_when_it_writes_for_all() -> None:
    state = edited(running("a b", size="1:6", restarts=1), "a", End(0, Why.FAILED))
    after = edited(state, "b#2", Together(proposals("b#2 c", state.era)))
    assert seats(after) == {"a": "expected", "b#2": "in", "c": "in"}
    assert (after.failures, after.ended) == (1, Ended(0, Why.FAILED, node("a")))


def test_the_next_incarnation_refunds_a_failure_in_a_restored_life_when_it_writes_for_all() -> None:
    state = restored(Restore(edited(running("a b", size="1:6"), "a", End(0, Why.FAILED)), "again"), None)
    after = edited(state, "b#2", Together(proposals("b#2 c", state.era)))
    assert (after.failures, after.ended) == (0, Ended(0, Why.LOST, node("a")))


def test_an_earlier_incarnation_writes_for_the_others_only() -> None:
    after = edited(arrived(register("6"), "a#2"), "a", Together(proposals("a b")))
    assert set(seats(after)) == {"a#2", "b"}


def test_who_runs_another_program_than_its_role_does_not_enter() -> None:
    begun = edited(register("6"), "a", Arrive(evolve(profile("a"), program="train.py")))
    others = {node(who): running_program(who, what) for who, what in (("b", "train.py"), ("c", "eval.py"), ("d", ""))}
    assert set(seats(edited(begun, "b", Together(others)))) == {"a", "b", "d"}


@pytest.mark.parametrize("begun", ["train.py", ""])
def test_the_program_of_the_node_that_writes_counts_before_those_of_the_others(begun: str) -> None:
    state = edited(register("6"), "a", Arrive(evolve(profile("a"), program=begun)))
    both = {node(who): running_program(who, what) for who, what in (("b", "eval.py"), ("c", "train.py"))}
    assert set(seats(edited(state, "c", Together(both)))) == {"a", "c"}


def test_of_two_programs_that_enter_at_once_one_is_seated() -> None:
    others = {node(who): running_program(who, what) for who, what in (("b", "train.py"), ("c", "eval.py"))}
    assert set(seats(edited(OPEN, "e", Together({**others, **proposals("e")})))) == {"a", "b", "e"}


@pytest.mark.parametrize(("begun", "enter"), [("localhost", "a c"), ("10.0.0.7", "a b d")])
def test_of_nodes_with_a_loopback_address_only_those_of_the_same_host_enter(begun: str, enter: str) -> None:
    """The hosts of `a` and `c` are one, that of `b` is another one, and so is that of `d`, which would come with `b`."""
    state = edited(register("6"), "a", Arrive(on_host("gpu-01", begun)))
    those = {"b": ("gpu-02", "10.0.0.8"), "c": ("gpu-01", "localhost"), "d": ("gpu-03", "10.0.0.9")}
    others = {node(who): Proposal(ERA, Arrive(on_host(*its)), enters=True) for who, its in those.items()}
    assert set(seats(edited(state, "a", Together(others)))) == set(enter.split())


def test_of_two_that_enter_at_once_the_one_with_a_loopback_address_keeps_the_other_out() -> None:
    state = edited(register("6"), "a", Arrive(on_host("gpu-01", "10.0.0.7")))
    those = {"b": ("gpu-01", "localhost"), "c": ("gpu-02", "10.0.0.8")}
    others = {node(who): Proposal(ERA, Arrive(on_host(*its)), enters=True) for who, its in those.items()}
    assert set(seats(edited(state, "a", Together(others)))) == {"a", "b"}


def on_host(host: str, address: str) -> Profile:
    return Profile(Endpoint(address, 1), host=host)


@pytest.mark.parametrize("reader", ["b", "c"])
def test_other_roles_run_other_programs(reader: str) -> None:
    reads = evolve(profile(reader), program="read.py", role="reader")
    others = {node(who): running_program(who, "train.py") for who in "bc"}
    others[node(reader)] = Proposal(ERA, Arrive(reads), enters=True)
    assert set(seats(edited(OPEN, "b", Together(others)))) == {"a", "b", "c"}


def test_a_role_is_the_same_whoever_has_read_it() -> None:
    begun, comes = (
        evolve(profile("a"), program="read.py"),
        evolve(profile("b"), program="eval.py", role=anew("default")),
    )
    state = edited(register("6"), "a", Arrive(begun))
    others = {node("b"): Proposal(ERA, Arrive(comes), enters=True), node("c"): proposal("c")}
    assert edited(state, "c", Together(others)).nodes == (node("a"), node("c"))


def test_of_all_proposals_those_to_enter_in_the_era_are_read() -> None:
    eras = {"b": ERA, "c": Token(OPEN.life, ERA.version + 1), "d": Token(Life("a third"), 0)}
    others = {node(who): proposal(who, era) for who, era in eras.items()}
    back = {node("a"): Proposal(ERA, Arrive(profile("a")))}
    for who, era in eras.items():
        assert entrants({**others, **back}, Token(*era)) == {node(who): others[node(who)]}
    assert entrants({**others, **back}, None) == {}


def test_a_mark_of_success_enters_nobody() -> None:
    assert edited(OPEN, "b", Together({node("b"): Proposal(ERA, Done(0), enters=True)})) is OPEN


def test_the_order_of_the_proposals_changes_nothing() -> None:
    assert edited(OPEN, "b", Together(proposals("b c d"))) == edited(OPEN, "b", Together(proposals("d c b")))


# --- when it is made


def test_the_first_of_all_writes_at_once() -> None:
    ask = joins(holding("a", None, MANY))
    assert isinstance(ask, Write) and ask.edit == Arrive(profile("a"))


def test_one_of_many_who_come_proposes_to_enter() -> None:
    assert joins(holding("b", OPEN, MANY)) == Propose(proposal("b"))


def _alone(who: str, state: RendezvousState, settings: Settings = MANY) -> bool:
    ask = joins(holding(who, state, settings))
    return isinstance(ask, Write) and ask.edit == Arrive(profile(who))


def test_one_of_few_who_come_writes_by_itself() -> None:
    assert _alone("b", OPEN, evolve(MANY, helping_above=5))
    assert not _alone("b", OPEN, evolve(MANY, helping_above=4))
    assert _alone("e", arrived(OPEN, "b c d"))


def test_who_comes_to_a_world_writes_by_itself() -> None:
    runs = running("a", size="1:6")
    assert _alone("b", runs, evolve(MANY, limits=runs.limits))


def test_whose_write_may_still_land_writes_by_itself() -> None:
    """Or it would be seated, and its proposal would be left behind."""
    unsure = unanswered(holding("b", OPEN, MANY), OPEN.token, 0.0)
    ask = joins(saw(unsure, OPEN, 0.1, 0.1), now=0.1)
    assert isinstance(ask, Write) and isinstance(ask.edit, Arrive)


RANGE = arrived(register("1:6"), "a")
"""a is enough, and five more may come."""


def test_a_short_last_call_leaves_no_time_to_propose() -> None:
    settings = Settings(RANGE.limits, helping_above=2)
    assert not _alone("b", RANGE, evolve(settings, last_call_timeout=1.2))
    assert _alone("b", RANGE, evolve(settings, last_call_timeout=1.1))
    assert _alone("b", RANGE, evolve(settings, first_call_timeout=1.1))


# --- and then


def test_who_proposed_to_enter_leaves_it_to_the_last_for_as_long_as_its_patience_lasts() -> None:
    untils = [ask.until for count in (1, 2, 4) if isinstance(ask := joins(entering("b", count)), Wait)]
    assert untils == pytest.approx([0.6 * (1 + 1 / 6), 0.6 * (1 + 2 / 7), 0.6 * (1 + 4 / 9)])
    assert [joins(entering("b", count), now=until) for count, until in zip((1, 2, 4), untils, strict=True)] == [
        Gather((), ERA)
    ] * 3


def test_who_proposed_to_enter_waits_no_longer_than_its_deadline() -> None:
    ask = joins(entering("b", 1), deadline=0.2)
    assert isinstance(ask, Wait) and ask.until == 0.2


def test_in_a_last_call_patience_is_short() -> None:
    ask = joins(entering("b", 1, RANGE, Settings(RANGE.limits, helping_above=2)))
    assert isinstance(ask, Wait) and ask.until == pytest.approx(0.6 * (1 + 1 / 6) / 8)


def test_who_completes_the_round_reads_the_proposals_and_writes_for_all() -> None:
    last = entering("f", 5)
    assert joins(last) == Gather((), ERA)
    ask = joins(gathered(last, proposals("b c d e"), 0.1, 0.1), now=0.1)
    assert isinstance(ask, Write)
    assert ask.edit == Together(proposals("b c d e f"))
    assert ask.state.complete


def test_who_completes_the_round_in_a_last_call_writes_for_all() -> None:
    settings = Settings(RANGE.limits, helping_above=2)
    assert isinstance(joins(entering("e", 4, RANGE, settings)), Wait)
    assert joins(entering("f", 5, RANGE, settings)) == Gather((), RANGE.era)


@pytest.mark.parametrize("least", [3, 4])
def test_who_completes_the_minimum_writes_for_all(least: int) -> None:
    begun = arrived(register(f"{least}:9"), "a")
    settings = Settings(begun.limits, helping_above=2)
    assert isinstance(joins(entering("b", least - 2, begun, settings)), Wait)
    for count in (least - 1, least):
        assert joins(entering("c", count, begun, settings)) == Gather((), ERA)


def test_above_the_minimum_nobody_completes_it() -> None:
    begun = arrived(RANGE, "b")
    assert isinstance(joins(entering("c", 1, begun, Settings(RANGE.limits, helping_above=2))), Wait)


def test_one_may_be_all_that_the_minimum_lacks() -> None:
    begun = arrived(register("2:9"), "a")
    assert joins(entering("b", 1, begun, Settings(begun.limits, helping_above=2))) == Gather((), ERA)


def test_a_node_on_its_way_out_is_none_of_the_minimum() -> None:
    begun = edited(arrived(arrived(register("4:9"), "a"), "b"), "b", Drain(node("b"), Notice(60.0, "an operator")))
    assert begun.census[Status.LEAVING] == 1
    settings = Settings(begun.limits, helping_above=2)
    assert isinstance(joins(entering("c", 2, begun, settings)), Wait)
    assert joins(entering("c", 3, begun, settings)) == Gather((), begun.era)


def test_more_may_propose_than_there_is_room_for() -> None:
    assert joins(entering("g", 6)) == Gather((), ERA)
    assert joins(entering("g", 6, RANGE, Settings(RANGE.limits, helping_above=2))) == Gather((), RANGE.era)


def test_who_loses_patience_writes_for_all_who_propose_to_enter() -> None:
    late = entering("b", 1)
    assert joins(late, now=0.71) == Gather((), ERA)
    ask = joins(gathered(late, proposals("b d"), 0.71, 0.71), now=0.71)
    assert isinstance(ask, Write)
    assert set(seats(ask.state)) == {"a", "b", "d"}


def test_who_is_passed_over_asks_again_in_the_new_era() -> None:
    without = edited(OPEN, "c", Together(proposals("c")))
    held = saw(entering("b", 1), without, 0.1, 0.1)
    assert joins(held, now=0.1) == Propose(proposal("b", without.era))
    few = edited(OPEN, "c", Together(proposals("c d e")))
    ask = joins(saw(entering("b", 1), few, 0.1, 0.1), now=0.1)
    assert isinstance(ask, Write) and ask.edit == Arrive(profile("b"))


def test_who_has_proposed_to_enter_writes_no_arrival_beside_it() -> None:
    few = arrived(OPEN, "c d e")
    held = saw(entering("b", 2), few, 0.1, 0.1)
    assert joins(held, now=0.1) == Gather((), ERA)


def test_with_another_profile_the_proposal_to_enter_is_made_anew() -> None:
    held = but(entering("b", 1), profile=profile("b", 4711))
    assert joins(held) == Propose(Proposal(ERA, Arrive(profile("b", 4711)), enters=True))


def test_a_round_that_is_complete_ends_all_proposals_to_enter() -> None:
    full = edited(OPEN, "c", Together(proposals("c d e f g")))
    ask = joins(saw(entering("b", 1), full, 0.1, 0.1), now=0.1)
    assert isinstance(ask, Write) and ask.edit == Arrive(profile("b"))
    called = edited(RANGE, "a", Complete(0))
    assert called.era == RANGE.era
    held = saw(entering("b", 1, RANGE, Settings(RANGE.limits, helping_above=2)), called, 0.1, 0.1)
    ask = joins(held, now=0.1)
    assert isinstance(ask, Write) and ask.edit == Arrive(profile("b"))
    assert joins(held, now=0.1, handler=leave) == Return(Settled())


@pytest.mark.parametrize("why", [Why.LIMITS, Why.SUPERSEDED, Why.PROGRAM])
def test_who_is_refused_does_not_enter(why: Why) -> None:
    state, held = OPEN, entering("b", 5)
    if why is Why.LIMITS:
        held = but(held, settings=evolve(MANY, limits=Limits(2, 6)))
    elif why is Why.SUPERSEDED:
        state, held = arrived(OPEN, "b#2"), joined(held, WorldId(Life("earlier"), 0))
    else:
        state = edited(OPEN, "c", Arrive(evolve(profile("c"), program="eval.py")))
        held = but(held, profile=evolve(profile("b"), program="train.py"))
    ask = joins(saw(held, state, 0.1, 0.1), now=0.1)
    assert isinstance(ask, Raise) and ask.failure.why is why


# --- the end of a node that has proposed


def test_who_leaves_after_it_has_proposed_to_enter_bumps() -> None:
    ask = joins(entering("b", 1), handler=leave)
    assert isinstance(ask, Write) and ask.edit == Leave()
    told = joins(saw(entering("b", 1), ask.state, 0.1, 0.1), now=0.1, handler=leave)
    assert told == Return(Settled())


def test_who_leaves_when_another_has_voided_its_proposal_has_left() -> None:
    bumped = edited(OPEN, "c", Leave())
    assert joins(saw(entering("b", 1), bumped, 0.1, 0.1), now=0.1, handler=leave) == Return(Settled())


def test_whose_time_is_over_voids_its_proposal_before_it_gives_up() -> None:
    ask = joins(entering("b", 1), now=9.0, deadline=9.0)
    assert isinstance(ask, Write) and ask.edit == Leave()
    gives_up = joins(saw(entering("b", 1), ask.state, 9.1, 9.1), now=9.1, deadline=9.0)
    assert isinstance(gives_up, Raise) and gives_up.failure == Fail(Why.TIMEOUT)


def test_a_proposal_to_enter_whose_answer_never_came_may_stand() -> None:
    """It is made again for the number, and voided like any other when its node leaves."""
    held = holding("b", OPEN, MANY)
    client = Client(held, Agenda(operation=operation(join)), out=Propose(proposal("b")))
    client, _, _ = step(client, Silent("gone"), 1.0)
    assert joins(saw(client.held, OPEN, 1.1, 1.1), now=1.1) == Propose(proposal("b"))
    assert joins(saw(client.held, OPEN, 1.1, 1.1), now=1.1, handler=leave).edit == Leave()  # type: ignore[union-attr]


def test_who_ends_a_round_voids_all_proposals_to_enter() -> None:
    runs = edited(running("a b", size="2:6"), "a", End(0, Why.FAILED))
    assert edited(runs, "c", Together(proposals("c d"))) is runs
