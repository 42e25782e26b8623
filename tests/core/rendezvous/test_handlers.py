"""The decisions of the handlers: one test per question of docs/protocol.md#handlers, named by its number."""

from __future__ import annotations

import math

import pytest
from attrs import evolve
from worlds import (
    LIFE,
    action,
    anew,
    arrived,
    but,
    edited,
    heard,
    holding,
    node,
    nodes,
    operation,
    profile,
    register,
    reseated,
    running,
)

from elastic.core.rendezvous import (
    Action,
    Arrive,
    Close,
    Comparison,
    Complete,
    Done,
    End,
    Ended,
    Evict,
    Fail,
    Finish,
    Held,
    Leave,
    Limits,
    Over,
    Overdue,
    RendezvousState,
    Reserve,
    Settings,
    Settled,
    Sync,
    Token,
    apply,
    close,
    done,
    end,
    join,
    joined,
    leave,
    linger,
    saw,
    unanswered,
    watch,
)
from elastic.core.rendezvous.context import Handler, context
from elastic.core.rendezvous.handlers import declare_dead
from elastic.core.rendezvous.memory import marked
from elastic.core.rendezvous.state import Status, successor
from elastic.core.world import (
    COUNT_MAX,
    Ending,
    Endpoint,
    Generation,
    Life,
    Node,
    Party,
    Profile,
    Verdict,
    Why,
    WorldId,
)

CANCELLED = Verdict(Ending.CANCELLED, 0, node("b"), Why.ASKED)
FAILED = End(0, Why.FAILED)
ALL: list[Handler] = [join, watch, end, done, leave, close]


def closed() -> RendezvousState:
    return edited(running(), "b", Close(CANCELLED))


def returning(size: str = "1:3", back: str = "") -> RendezvousState:
    return arrived(edited(running("a b c", size, restarts=1), "a", FAILED), back)


def seen_silent(held: Held, silent: str, alive: str = "", until: float = 5.0) -> Held:
    """Return what a node holds after a read of the heartbeats each second. Those of `silent` never move."""
    for second in range(int(until) + 1):
        counters = dict.fromkeys(nodes(silent), 7) | dict.fromkeys(nodes(alive), second)
        held = heard(held, counters, float(second), float(second))
    return held


# --- linger


def lingering(state: RendezvousState | None, confirmed_at: float | None) -> Action:
    """Return the decision at 7 of a node that lingers since 5."""
    held = but(holding("a", state, ran=0 if state else None), confirmed_at=confirmed_at)
    return linger(context(operation(linger, since=5.0, deadline=20.0), held, 7.0), 20.0)


def test_linger_looks_until_the_verdict_is_confirmed_by_a_later_answer() -> None:
    assert lingering(closed(), None) == Sync(7.0)
    assert lingering(closed(), 4.9) == Sync(7.0)
    assert lingering(closed(), 5.0) == Finish(Settled())


def test_linger_ends_at_its_deadline() -> None:
    held = but(holding("a", closed(), ran=0), confirmed_at=None)
    assert linger(context(operation(linger, since=5.0), held, 20.0), 20.0) == Fail(Why.UNCONFIRMED)


@pytest.mark.parametrize("state", [None, running()], ids=["nothing", "another job"])
def test_linger_has_nothing_to_guard_where_no_verdict_stands(state: RendezvousState | None) -> None:
    assert lingering(state, None) == Finish(Settled())


# --- join


def test_join_without_a_register_arrives_until_its_deadline() -> None:
    held = holding("a", None)
    assert action(join, held, now=0, deadline=10) == Arrive(profile("a"))
    assert action(join, held, now=10, deadline=10) == Fail(Why.TIMEOUT)


def test_join_1_closed_fails_with_the_verdict() -> None:
    assert action(join, holding("a", closed(), ran=0)) == Fail(Why.CLOSED, CANCELLED)
    assert action(join, holding("c", closed())) == Fail(Why.CLOSED, CANCELLED)


def test_join_under_other_limits_is_refused() -> None:
    held = holding("c", arrived(register("1:4"), "a"), Settings())
    assert action(join, held) == Fail(Why.LIMITS)


@pytest.mark.parametrize("other", [Limits(2, 4, 1), Limits(1, 3, 1), Limits(1, 4, 0)], ids=["min", "max", "restarts"])
def test_join_under_any_one_other_limit_is_refused(other: Limits) -> None:
    state = arrived(register("1:4", 1), "a")
    assert action(join, holding("c", state, Settings(other))) == Fail(Why.LIMITS)
    assert action(join, holding("c", state)) == Arrive(profile("c"))


def runs(who: str, program: str, role: str = "default") -> Profile:
    return evolve(profile(who), program=program, role=role)


def seated_with(program: str, role: str = "default") -> RendezvousState:
    state = arrived(register("1:4"), "a")
    (seat,) = state.seats.values()
    return evolve(state, seats={node("a"): evolve(seat, profile=runs("a", program, role))})


def test_join_with_a_program_of_another_name_is_refused_within_one_role() -> None:
    other = but(holding("c", seated_with("train.py")), profile=runs("c", "eval.py"))
    assert action(join, other) == Fail(Why.PROGRAM)
    same = but(other, profile=runs("c", "train.py"))
    assert action(join, same) == Arrive(same.who.profile)
    for role in ("a role", "evaluator"):
        elsewhere = but(other, profile=runs("c", "eval.py", role))
        assert action(join, elsewhere) == Arrive(elsewhere.who.profile)
    assert action(join, but(other, profile=runs("c", "eval.py", anew("default")))) == Fail(Why.PROGRAM)


def beside(its: Profile, mine: Profile, status: Status = Status.IN) -> Held:
    """Return what a newcomer with this profile holds beside one other node."""
    state = arrived(register("1:4"), "a")
    (seat,) = state.seats.values()
    state = evolve(state, seats={node("a"): evolve(seat, profile=its, status=status)})
    return but(holding("c", state), profile=mine)


def on_host(host: str, address: str) -> Profile:
    return Profile(Endpoint(address, 1), host=host)


def with_other_arguments(
    size: str, who: str, arguments: str = "2e", compares: Comparison = Comparison.ARGUMENTS, role: str = "default"
) -> Held:
    """Return what a newcomer holds that has seen for long enough that all members live, whose arguments are 1f."""
    state = running(who, size)
    seats = {each: evolve(seat, profile=with_arguments("1f", "default")) for each, seat in state.seats.items()}
    held = holding("c", evolve(state, seats=seats), Settings(state.limits, same_program=compares))
    return seen_silent(but(held, profile=with_arguments(arguments, role)), "", who, until=10.0)


def test_join_with_other_arguments_is_refused_where_the_job_has_no_seat_for_it() -> None:
    for size, who in (("1", "a"), ("1:2", "a b")):
        assert action(join, with_other_arguments(size, who), now=10.0) == Fail(Why.ARGUMENTS)
        for held in (
            with_other_arguments(size, who, arguments=""),
            with_other_arguments(size, who, role="reader"),
            with_other_arguments(size, who, compares=Comparison.NAME),
            with_other_arguments(size, who, compares=Comparison.NONE),
        ):
            assert isinstance(action(join, held, now=10.0), Arrive)
    assert isinstance(action(join, with_other_arguments("1:2", "a b", arguments="1f"), now=10.0), Arrive)


def test_a_job_of_one_node_that_nobody_has_named_has_no_spare() -> None:
    """It had the same arguments, and another environment, in a sweep."""
    assert action(join, with_other_arguments("1", "a", arguments="1f"), now=10.0) == Fail(Why.ARGUMENTS)


def test_other_arguments_keep_nobody_out_who_had_a_place_there() -> None:
    """Arguments may differ by node."""
    held = with_other_arguments("1:2", "a b")
    assert held.view.state is not None
    had = (
        but(held, mine=held.view.state.world_id),
        but(held, spare_at=1.0),
        but(held, returns=True),
        but(held, node=node("b#2")),
    )
    for each in had:
        assert action(join, each, now=10.0) != Fail(Why.ARGUMENTS)


def test_join_with_other_arguments_is_taken_while_the_job_has_a_seat_for_it() -> None:
    """Arguments may differ by node."""
    for state in (arrived(register("1:2"), "a"), running("a", "1:2")):
        seats = {node("a"): evolve(state.seats[node("a")], profile=with_arguments("1f", "default"))}
        settings = Settings(state.limits, same_program=Comparison.ARGUMENTS)
        held = holding("c", evolve(state, seats=seats), settings)
        assert isinstance(action(join, but(held, profile=with_arguments("2e", "default"))), Arrive)


def test_join_with_other_arguments_is_refused_by_a_job_of_one_node_that_forms() -> None:
    opened = edited(running("a", "1", restarts=1), "a", End(0, Why.FAILED))
    seats = {node("a"): evolve(opened.seats[node("a")], profile=with_arguments("1f", "default"))}
    settings = Settings(opened.limits, same_program=Comparison.ARGUMENTS)
    held = but(holding("c", evolve(opened, seats=seats), settings), profile=with_arguments("2e", "default"))
    assert action(join, seen_silent(held, "", "a", until=10.0), now=10.0) == Fail(Why.ARGUMENTS)


def with_arguments(arguments: str, role: str) -> Profile:
    return evolve(profile("c"), program="train.py", arguments=arguments, role=role)


NUMBER = "10.0.0.7"


@pytest.mark.parametrize("local", ["localhost", "127.0.1.1", "::1"])
def test_join_with_a_loopback_address_between_two_hosts_is_refused(local: str) -> None:
    def decided(its: Profile, mine: Profile, status: Status = Status.IN, leased: bool = False) -> Action:
        held = beside(its, mine, status)
        held = but(held, settings=evolve(held.who.settings, leased=leased))
        return action(join, seen_silent(held, "", "a", until=15.0), now=15.0)

    theirs = on_host("gpu-01", local), on_host("gpu-01", NUMBER)
    for its, mine in ((theirs[0], NUMBER), (theirs[1], local)):
        assert decided(its, on_host("gpu-02", mine)) == Fail(Why.LOOPBACK)
        assert isinstance(decided(its, on_host("gpu-01", mine)), Arrive)
        assert isinstance(decided(its, on_host("gpu-02", mine), Status.GONE), Arrive)
    assert isinstance(decided(theirs[1], on_host("gpu-02", "10.0.0.8")), Arrive)
    assert isinstance(decided(theirs[0], on_host("gpu-02", local)), Arrive)  # containers of one host
    assert decided(theirs[0], on_host("gpu-02", local), leased=True) == Fail(Why.LOOPBACK)


def test_a_node_with_a_loopback_address_keeps_other_hosts_out_if_it_lives_two_ttls_later() -> None:
    held = beside(on_host("gpu-01", "localhost"), on_host("gpu-02", NUMBER))
    assert action(join, held, now=0.0) == Sync(math.inf)
    assert action(join, seen_silent(held, "", "a"), now=5.0) == Sync(10.0)
    assert action(join, seen_silent(held, "", "a"), now=5.0, deadline=7.0) == Sync(7.0)
    assert isinstance(action(join, seen_silent(held, "a"), now=5.0), Arrive)


def test_a_later_start_of_a_slot_may_be_on_another_host() -> None:
    held = but(beside(on_host("gpu-01", "localhost"), on_host("gpu-02", NUMBER)), node=node("a#2"))
    assert isinstance(action(join, held), Arrive)


def test_join_with_a_program_of_another_name_is_taken_where_nobody_compares() -> None:
    allowed = evolve(holding("c", seated_with("train.py")).who.settings, same_program=Comparison.NONE)
    for held in (
        but(holding("c", seated_with("train.py")), profile=runs("c", "eval.py"), settings=allowed),
        but(holding("c", seated_with("")), profile=runs("c", "eval.py")),
        holding("c", seated_with("train.py")),
    ):
        assert action(join, held) == Arrive(held.who.profile)


def test_join_is_not_refused_for_a_node_that_has_gone_or_for_an_earlier_start_of_its_own() -> None:
    again = but(holding("a#2", seated_with("train.py")), profile=runs("a#2", "eval.py"))
    assert action(join, again) == Arrive(again.who.profile)
    state = seated_with("train.py")
    (seat,) = state.seats.values()
    gone = evolve(state, seats={node("a"): evolve(seat, status=Status.ABSENT)})
    held = but(holding("c", gone), profile=runs("c", "eval.py"))
    assert action(join, held) == Arrive(held.who.profile)


@pytest.mark.parametrize("seated", ["a#2", "a#2 b"])
def test_join_2_a_later_incarnation_of_its_slot_that_lives_supersedes_it(seated: str) -> None:
    held = holding("a", arrived(register("1:2"), seated))
    assert action(join, held, deadline=99) == Sync(99)
    for second in range(11):
        held = heard(held, {node("a#2"): second}, float(second), float(second))
        lives_at = action(join, held, now=second, deadline=99)
        assert lives_at == (Sync(10.0) if second < 10 else Fail(Why.SUPERSEDED))
    assert action(join, seen_silent(holding("a", arrived(register("1:2"), seated)), "", "a#2"), 4.0, 4.0) == Fail(
        Why.TIMEOUT
    )


def test_join_2_a_node_that_has_run_lost_its_seat_to_a_later_start_that_lived() -> None:
    assert action(join, holding("a", edited(running("a b"), "a#2", Arrive(profile("a#2"))), ran=0)) == Fail(
        Why.SUPERSEDED
    )


def test_join_2_a_later_start_that_has_come_since_i_looked_lives() -> None:
    before = arrived(register("1:3"), "b")
    came = saw(holding("a", before), arrived(before, "a#2"), 1.0, 1.0)
    assert action(join, came, 1.0, 99) == Fail(Why.SUPERSEDED)
    taken = saw(holding("a", arrived(before, "a")), arrived(before, "a a#2"), 1.0, 1.0)
    assert action(join, taken, 1.0, 99) == Fail(Why.SUPERSEDED)
    known = saw(holding("a", arrived(before, "a#2")), arrived(before, "a#2 c"), 1.0, 1.0)
    assert action(join, known, 1.0, 99) == Sync(99)
    seated = saw(holding("a#2", arrived(before, "a")), arrived(before, "a a#2"), 1.0, 1.0)
    assert action(join, seated, 1.0, 5.0) == Sync(5.0)


def test_join_2_a_dead_later_incarnation_of_its_slot_has_a_successor() -> None:
    held = holding("a", arrived(register("1:3"), "a#2 b"))
    assert action(join, seen_silent(held, "a#2", "b", until=4.0), 4.0, 99) == Sync(10.0)
    assert action(join, seen_silent(held, "a#2", "b"), 5.0, 99) == Fail(Why.BEHIND)
    gone = reseated(running("a#2 b"), **{"a#2": Status.GONE})
    assert action(join, holding("a", gone)) == Fail(Why.BEHIND)


def test_join_2_a_later_incarnation_is_watched_anew_after_an_outage() -> None:
    """What was not heard says neither that it lives nor that it is dead."""
    held = seen_silent(holding("a", arrived(register("1:2"), "a#2")), "a#2", until=3.0)
    assert action(join, held, 30.0, 99) == Sync(99)
    held = heard(held, {node("a#2"): 7}, 30.0, 30.0)
    assert action(join, held, 30.0, 99) == Sync(40.0)


def test_join_2_a_lease_that_is_longer_than_the_ttl_may_still_run_out() -> None:
    settings = Settings(Limits(1, 2), keep_alive_interval=0.25, keep_alive_max_attempt=4, leased=True)
    held = holding("a", arrived(register("1:2"), "a#2"), settings)
    assert action(join, heard(held, {node("a#2"): 1}, 0.0, 0.0), 0.0, 99) == Sync(9.0)


def test_a_successor_is_later_than_the_dead_start_and_unlike_that_of_any_other_agent() -> None:
    state = arrived(register("1:3"), "a#5 b")
    assert successor(state, node("a#2")) == node("a#8")
    assert successor(state, Node("a", 3)) == node("a#9")
    assert successor(state, Node("a", 0)) == node("a#6")
    assert successor(state, node("c#7")) == node("c#8")
    assert successor(None, node("a")) == node("a#2")


def test_a_dead_start_that_is_the_last_one_there_can_be_has_no_successor() -> None:
    state = arrived(register("1:3"), f"a#{COUNT_MAX - 3} b")
    assert successor(state, node("a#2")) == Node("a", COUNT_MAX)
    assert successor(state, node("a#3")) is None


def test_join_2_an_earlier_incarnation_is_replaced() -> None:
    assert action(join, holding("a#2", arrived(register("1:2"), "a"))) == Arrive(profile("a"))


def test_join_2_incarnations_of_other_slots_are_nothing_to_it() -> None:
    assert action(join, holding("b", arrived(register("1:4"), "a#2 c#2"))) == Arrive(profile("b"))


def test_join_3_a_complete_round_later_than_mine_is_the_world() -> None:
    state = running()
    assert action(join, holding("a", state)) == Finish(state.world)
    assert action(join, holding("a", arrived(edited(running(restarts=1), "a", FAILED), "a b"), ran=0)) == Finish(
        arrived(edited(running(restarts=1), "a", FAILED), "a b").world
    )


def test_join_3_a_world_that_i_never_ran_in_is_the_world_whatever_its_round() -> None:
    """A store that lost its memory may show an earlier round and other worlds."""
    other = Life("other", 2)
    state = evolve(running(), life=other, completed_in=other)
    assert action(join, joined(holding("a", state), WorldId(LIFE, 7))) == Finish(state.world)


@pytest.mark.parametrize("round", [0, 6, 7])
def test_join_4_a_round_of_a_life_in_which_i_ran_a_later_one_is_ended_and_not_run(round: int) -> None:
    """A node that slept through rounds may restore an older one. Of each life it remembers only the last world."""
    state = evolve(running(), round=round)
    assert action(join, holding("a", state, ran=7), deadline=10) == End(round, Why.FENCED)


def test_join_3_a_later_round_of_a_life_is_the_world_though_another_life_came_between() -> None:
    held = joined(holding("a", evolve(running(), round=8), ran=7), WorldId(Life("other", 2), 9))
    assert action(join, held) == Finish(evolve(running(), round=8).world)


@pytest.mark.parametrize("state", [running(), edited(running(), "a", Done(0))], ids=["in", "done"])
def test_join_4_a_world_that_i_ran_in_before_the_last_one_is_ended_and_not_run_again(state: RendezvousState) -> None:
    """A store that came back with an older state shows the world again, but no worker runs in it."""
    held = joined(joined(holding("a", state), state.world.id), WorldId(Life("later", 2), 3))
    assert action(join, held, deadline=10) == End(0, Why.FENCED)


def test_join_3_comes_before_the_deadline() -> None:
    assert action(join, holding("a", running()), now=10, deadline=10) == Finish(running().world)


@pytest.mark.parametrize("state", [running(), edited(running(), "a", Done(0))], ids=["in", "done"])
def test_join_4_a_round_whose_workers_i_have_stopped_is_fenced(state: RendezvousState) -> None:
    assert action(join, holding("a", state, ran=0)) == End(0, Why.FENCED)


def test_join_4_a_thousand_rounds_in_a_round_is_still_the_same() -> None:
    # Numbers that Python does not keep as single objects.
    held = holding("a", evolve(running(), round=1_000), ran=int("1000"))
    assert action(join, held) == End(1_000, Why.FENCED)


def test_join_4_one_that_is_gone_waits_for_the_round_to_end() -> None:
    state = edited(edited(running(), "a", Done(0)), "a", Leave())
    assert action(join, holding("a", state, ran=0), deadline=10) == Sync(10)


def test_join_5_past_the_deadline_a_seated_node_leaves() -> None:
    held = holding("a", arrived(register("2:3"), "a"), at=0)
    assert action(join, held, now=9, deadline=10) == Sync(10)
    assert action(join, held, now=10, deadline=10) == Leave()


def test_join_5_past_the_deadline_a_node_that_is_not_seated_times_out() -> None:
    assert action(join, holding("c", arrived(register("3"), "a")), now=10, deadline=10) == Fail(Why.TIMEOUT)


def test_join_5_past_the_deadline_an_owed_arrival_is_voided_first() -> None:
    held = holding("c", arrived(register("3"), "a"))
    held = unanswered(held, held.token, 9)
    assert action(join, held, now=10, deadline=10) == Leave()


def test_join_5_past_the_deadline_an_owed_genesis_is_voided_first() -> None:
    # The register may still be made out of nothing by my write; then I would sit in it for a TTL.
    held = unanswered(holding("a", None), None, 9)
    assert action(join, held, now=10, deadline=10) == Leave()


def test_join_5_one_that_is_gone_times_out_whatever_it_owes() -> None:
    state = edited(edited(running(), "a", Done(0)), "a", Leave())
    held = unanswered(holding("a", state, ran=0), state.token, 9)
    assert action(join, held, now=10, deadline=10) == Fail(Why.TIMEOUT)


def test_join_5_a_spare_has_no_deadline() -> None:
    assert isinstance(action(join, holding("c", arrived(running(), "c")), now=10, deadline=10), Sync)


def test_join_5_a_reserve_that_was_held_for_lost_has_no_deadline() -> None:
    state = edited(edited(running(), "b", Reserve(0)), "a", Evict(nodes("b")))
    assert state.seats[node("b")].status is Status.ABSENT
    assert isinstance(action(join, holding("b", state), now=10, deadline=10), Sync)


def test_join_6_the_coordinator_evicts_the_dead() -> None:
    held = seen_silent(holding("a", arrived(register("3"), "a b")), "b")
    assert action(join, held, now=5) == Evict(nodes("b"))


def test_join_6_chores_come_before_arriving() -> None:
    held = seen_silent(holding("b", returning()), "a", alive="c")
    assert action(join, held, now=5) == Evict(nodes("a"))


def test_join_6_chores_come_after_the_deadline() -> None:
    held = seen_silent(holding("a", arrived(register("3"), "a b")), "b")
    assert action(join, held, now=10, deadline=10) == Leave()


def test_join_6_another_node_evicts_when_the_coordinator_has_not_for_its_patience() -> None:
    # a is alive by its heartbeat, and does not do its chore.
    held = seen_silent(holding("b", arrived(register("4"), "a b c")), "c", alive="a")
    patience = 0.6 * (1 + 1 / 2)
    assert isinstance(action(join, held, now=5 + patience - 0.01), Sync)
    assert action(join, held, now=5 + patience) == Evict(nodes("c"))


def test_join_6_a_node_that_is_not_seated_does_no_chores() -> None:
    held = seen_silent(holding("b", returning()), "a", alive="c")
    held = saw(held, edited(returning(), "c", Evict(nodes("b"))), 5, 5)
    assert action(join, held, now=7) == Arrive(profile("b"))


def test_join_6_a_look_of_more_than_two_heartbeats_ago_evicts_no_node() -> None:
    held = seen_silent(holding("b", returning()), "a", alive="c")
    assert action(join, held, now=7) == Evict(nodes("a"))
    assert action(join, held, now=7.1) == Arrive(profile("b"))


def test_join_6_how_old_a_look_may_be_is_two_heartbeats_of_any_length() -> None:
    slow = Settings(limits=returning().limits, keep_alive_interval=3.0)
    held = seen_silent(holding("b", returning(), slow), "a", alive="c", until=15)
    assert action(join, held, now=21) == Evict(nodes("a"))
    assert action(join, held, now=21.1) == Arrive(profile("b"))


def test_join_7_expected_or_not_seated_arrives() -> None:
    assert action(join, holding("b", returning(), ran=0)) == Arrive(profile("b"))
    assert action(join, holding("d", returning())) == Arrive(profile("d"))


def held_back(held: Held) -> Action:
    return join(context(evolve(operation(join), holds_back=True), held, 1.0), 600.0)


def lives_on(held: Held, alive: Generation) -> Action:
    return join(context(evolve(operation(join), alive=alive), held, 1.0), 600.0)


def test_join_1_whose_workers_live_comes_back_in_their_generation_only() -> None:
    first, lost = Generation("life", 0), edited(running("a b c"), "a", Evict(nodes("c")))
    assert lives_on(holding("a", lost, ran=0), first) == Arrive(profile("a"))
    for other in (Generation("another job", 0), Generation("some job", 0), Generation("life", 1)):
        assert lives_on(holding("a", lost, ran=0), other) == Finish(Over(0, lost.ended))
    failed = returning()
    assert lives_on(holding("a", failed, ran=0), Generation("life", 1)) == Arrive(profile("a"))
    assert lives_on(holding("a", failed, ran=0), first) == Finish(Over(0, failed.ended))
    assert lives_on(holding("c", lost, ran=0), first) == Finish(Over(0, lost.ended))
    assert lives_on(holding("a", None), first) == Finish(Over(0, None))
    assert lives_on(holding("a", closed()), first) == Fail(Why.CLOSED, CANCELLED)


def test_join_3_a_world_that_stands_again_is_that_of_workers_that_live() -> None:
    """A store was given back what it had forgotten."""
    for state in (running(), edited(running(), "a", Done(0)), edited(running(), "a", Reserve(0))):
        assert lives_on(holding("a", state, ran=0), Generation("life", 0)) == Finish(state.world)


def test_join_7_one_that_holds_back_asks_for_no_seat_while_a_world_runs_without_it() -> None:
    assert held_back(holding("d", running())) == Sync(600.0)
    assert action(join, holding("d", running())) == Arrive(profile("d"))


def test_join_7_one_that_holds_back_arrives_where_no_world_runs_or_it_is_expected() -> None:
    assert held_back(holding("d", returning())) == Arrive(profile("d"))
    assert held_back(holding("b", returning(), ran=0)) == Arrive(profile("b"))
    assert held_back(holding("d", None)) == Arrive(profile("d"))


def test_join_8_overdue_counts_from_when_i_saw_the_round_open() -> None:
    held = holding("a", returning(back="a"), at=100, ran=0)
    assert action(join, held, now=144.9, deadline=999) == Sync(145)
    assert action(join, held, now=145, deadline=999) == Overdue(1)


def test_join_8_a_spare_calls_nodes_overdue_if_no_node_before_it_does() -> None:
    held = holding("d", arrived(returning(size="3", back="a"), "d"), at=0)
    waiting = action(join, held, now=45)
    assert isinstance(waiting, Sync) and 45 < waiting.until < 50
    assert action(join, held, now=waiting.until) == Overdue(1)


def test_join_9_the_last_call_counts_from_when_i_saw_the_quorum() -> None:
    held = holding("a", arrived(register("1:3"), "a"), at=100)
    assert action(join, held, now=104, deadline=999) == Sync(105)
    assert action(join, held, now=105, deadline=999) == Complete(0)


def test_join_9_a_later_arrival_does_not_restart_the_last_call() -> None:
    held = holding("a", arrived(register("1:3"), "a"), at=100)
    held = saw(held, arrived(register("1:3"), "a b"), 104, 104)
    assert action(join, held, now=105) == Complete(0)


def test_join_9_the_last_call_starts_again_when_the_quorum_was_lost() -> None:
    two = arrived(register("2:4"), "a b")
    held = holding("a", two, at=100)
    for state in (one := edited(two, "b", Leave()), arrived(one, "b")):
        held = saw(held, state, 104, 104)
    assert action(join, held, now=105, deadline=999) == Sync(109)


def test_join_9_completes_nothing_while_somebody_is_expected() -> None:
    held = holding("a", returning(back="a b"), at=0, ran=0)
    assert action(join, held, now=44, deadline=999) == Sync(45)


def test_join_9_another_node_completes_when_the_coordinator_has_not_for_its_patience() -> None:
    held = holding("b", arrived(register("1:3"), "a b"), at=100)
    assert action(join, held, now=105, deadline=999) == Sync(105.9)
    assert action(join, held, now=105.9, deadline=999) == Complete(0)


def test_join_9_a_job_s_first_world_may_have_a_last_call_of_its_own() -> None:
    settings = Settings(Limits(1, 3, 9), last_call_timeout=0, first_call_timeout=60)
    first = holding("a", arrived(register("1:3", 9), "a"), at=100, settings=settings)
    assert action(join, first, now=101, deadline=999) == Sync(160)
    assert action(join, first, now=160, deadline=999) == Complete(0)
    later = edited(edited(edited(running("a b c", "1:3", restarts=9), "a", FAILED), "b", Leave()), "c", Leave())
    again = holding("a", arrived(edited(later, "a", Leave()), "a"), at=100, settings=settings)
    assert action(join, again, now=100, deadline=999) == Complete(1)


def test_join_10_waits_for_the_nearest_of_deadline_last_call_and_overdue() -> None:
    held = holding("a", arrived(register("1:3"), "a"), at=0)
    assert action(join, held, deadline=3) == Sync(3)
    assert action(join, held, deadline=99) == Sync(5)


# --- end


def test_end_ends_the_round_that_my_workers_run_in() -> None:
    assert action(end, holding("a", running(), ran=0), why=Why.FAILED) == FAILED


def test_end_spreads_the_word_of_n_members_over_n_times_a_fifth_of_a_millisecond() -> None:
    about = operation(end, since=1.0, jitter=0.5, why=Why.FAILED)
    three, two = (holding("a", running(nodes), ran=0) for nodes in ("a b c", "a b"))
    assert end(context(about, three, 1.0), math.inf) == Sync(1.0002)
    assert end(context(about, three, 1.0002), math.inf) == FAILED
    assert end(context(about, two, 1.0), math.inf) == Sync(1.0001)


@pytest.mark.parametrize(
    ("state", "ran"),
    [(closed(), 0), (returning(), 0), (arrived(returning(), "a b c"), 0), (None, None)],
    ids=["closed", "open", "another round", "no register"],
)
def test_end_is_settled_when_somebody_was_first(state: RendezvousState | None, ran: int | None) -> None:
    assert action(end, holding("a", state, ran=ran)) == Finish(Settled())


def test_end_is_settled_for_one_that_is_no_member() -> None:
    assert action(end, holding("c", arrived(running(), "c"), ran=0)) == Finish(Settled())


def test_end_gives_up_at_its_deadline() -> None:
    assert action(end, holding("a", running(), ran=0), now=5, deadline=5) == Fail(Why.UNCONFIRMED)


# --- watch


def test_watch_without_a_register_is_over() -> None:
    assert action(watch, holding("a", None)) == Finish(Over(0, None))


def test_watch_closed_is_finished_with_the_verdict() -> None:
    assert action(watch, holding("a", closed(), ran=0)) == Finish(CANCELLED)


def test_watch_is_over_when_the_round_moved_on_or_i_am_no_member() -> None:
    ended = Ended(0, Why.FAILED, node("a"))
    assert action(watch, holding("b", returning(), ran=0)) == Finish(Over(0, ended))
    assert action(watch, holding("b", arrived(returning(), "a b c"), ran=0)) == Finish(Over(0, ended))
    assert action(watch, holding("d", arrived(running(), "d"), ran=0)) == Finish(Over(0, None))


def test_watch_waits_while_all_is_well() -> None:
    assert action(watch, holding("a", running(), ran=0)) == Sync(math.inf)


def test_watch_the_coordinator_evicts_the_dead() -> None:
    held = seen_silent(holding("a", running(), ran=0), "b")
    assert action(watch, held, now=5) == Evict(nodes("b"))


def test_watch_the_next_node_is_coordinator_when_the_lowest_seat_is_dead() -> None:
    held = seen_silent(holding("b", running("a b c"), ran=0), "a", alive="c")
    assert action(watch, held, now=5) == Evict(nodes("a"))


def test_watch_the_last_call_of_the_exit_barrier_is_its_deadline() -> None:
    held = holding("a", edited(running(), "a", Done(0)), ran=0)
    assert action(watch, held, now=9, deadline=10) == Sync(10)
    assert action(watch, held, now=10, deadline=10) == Leave()


@pytest.mark.parametrize(
    "state",
    [running(), edited(edited(running(), "a", Done(0)), "a", Leave())],
    ids=["running", "gone"],
)
def test_watch_ignores_a_past_barrier_deadline_until_the_node_is_done(state: RendezvousState) -> None:
    assert action(watch, holding("a", state, ran=0), now=10, deadline=10) == Sync(math.inf)


def test_watch_ends_the_round_for_a_newcomer_with_room_that_has_waited() -> None:
    state = running("a b", size="1:3")
    held = saw(holding("a", state, ran=0), arrived(state, "c"), 7, 7)
    assert action(watch, held, now=7) == Sync(8)
    assert action(watch, held, now=8) == End(0, Why.UPSCALE)


def in_party(state: RendezvousState, who: str, party: Party) -> RendezvousState:
    return edited(state, who, Arrive(evolve(profile(who), party=party)))


def test_watch_ends_the_round_for_a_party_once_all_of_it_is_there() -> None:
    two, spans = Party("n", 2), Settings(limits=Limits(1, 5), upscale_after=0.0)
    state = running("a b", size="1:5")
    first = in_party(state, "c", two)
    held = saw(holding("a", state, spans, ran=0), first, 7, 7)
    assert action(watch, held, now=16) == Sync(17)
    assert action(watch, held, now=17) == End(0, Why.UPSCALE)
    both = saw(held, in_party(first, "d", two), 9, 9)
    assert action(watch, both, now=9) == End(0, Why.UPSCALE)
    more = saw(held, in_party(in_party(first, "d", two), "e", two), 9, 9)
    assert action(watch, more, now=9) == End(0, Why.UPSCALE)
    assert action(watch, saw(held, in_party(first, "d", Party("m", 2)), 9, 9), now=9) == Sync(17)
    assert action(watch, saw(held, in_party(first, "d", Party("m", 1)), 9, 9), now=9) == End(0, Why.UPSCALE)


def test_watch_counts_members_to_a_party_too() -> None:
    two, spans = Party("n", 2), Settings(limits=Limits(1, 3), upscale_after=0.0)
    state = edited(in_party(arrived(register("1:3"), "a"), "b", two), "a", Complete(0))
    held = saw(holding("a", state, spans, ran=0), in_party(state, "c", two), 7, 7)
    assert action(watch, held, now=7) == End(0, Why.UPSCALE)


def test_watch_waits_for_a_party_no_shorter_than_for_one_newcomer() -> None:
    state = running("a b", size="1:3")
    held = holding("a", state, Settings(limits=Limits(1, 3), upscale_after=30.0), ran=0)
    held = saw(held, in_party(state, "c", Party("n", 2)), 7, 7)
    assert action(watch, held, now=36) == Sync(37)


def grown(size: str) -> RendezvousState:
    """The round of a, b and c that began for c."""
    return arrived(edited(arrived(running("a b", size=size), "c"), "a", End(0, Why.UPSCALE)), "a b")


def test_watch_ends_a_round_that_began_for_a_newcomer_for_the_next_ones_together() -> None:
    held = saw(holding("a", grown("1:6"), at=7, ran=1), arrived(grown("1:6"), "d"), 8, 8)
    assert action(watch, held, now=10) == Sync(11)
    both = saw(held, arrived(grown("1:6"), "d e"), 10, 10)
    assert action(watch, both, now=11) == End(1, Why.UPSCALE)


def test_watch_ends_a_round_that_began_for_a_newcomer_long_ago_as_any_other() -> None:
    held = saw(holding("a", grown("1:6"), at=7, ran=1), arrived(grown("1:6"), "d"), 20, 20)
    assert action(watch, held, now=20) == Sync(21)
    assert action(watch, held, now=21) == End(1, Why.UPSCALE)


def test_watch_ends_a_round_that_began_for_a_newcomer_before_the_next_one_gives_up() -> None:
    spans = Settings(Limits(1, 6), upscale_after=20.0, join_timeout=60.0)
    held = saw(holding("a", grown("1:6"), spans, at=7, ran=1), arrived(grown("1:6"), "d"), 8, 8)
    assert action(watch, held, now=36) == Sync(37)
    assert action(watch, held, now=37) == End(1, Why.UPSCALE)
    late = saw(holding("a", grown("1:6"), spans, at=7, ran=1), arrived(grown("1:6"), "d"), 30, 30)
    assert action(watch, late, now=37) == Sync(50)


def test_watch_waits_for_no_others_once_the_newcomers_fill_the_job() -> None:
    held = saw(holding("a", grown("1:5"), at=7, ran=1), arrived(grown("1:5"), "d"), 7, 7)
    assert action(watch, held, now=8) == Sync(11)
    for more in ("d e", "d e f"):
        assert action(watch, saw(held, arrived(grown("1:5"), more), 8, 8), now=8) == End(1, Why.UPSCALE)


def test_watch_throws_the_dead_out_before_it_ends_a_round_for_a_newcomer_or_leaves_the_exit_barrier() -> None:
    state = running("a b", size="1:3")
    both_due = saw(seen_silent(holding("a", state, ran=0), "b"), arrived(state, "c"), 5, 5)
    both_due = heard(both_due, {node("b"): 7}, 6, 6)
    assert action(watch, both_due, now=6) == Evict(nodes("b"))
    done = seen_silent(holding("a", edited(running(), "a", Done(0)), ran=0), "b")
    assert action(watch, done, now=5, deadline=5) == Evict(nodes("b"))


def test_watch_leaves_the_upscale_to_the_coordinator_for_its_patience() -> None:
    state = running("a b", size="1:3")
    held = saw(holding("b", state, ran=0), arrived(state, "c"), 7, 7)
    assert action(watch, held, now=8) == Sync(8 + 0.6 * (1 + 1 / 3))


def test_watch_ends_no_round_for_a_spare_without_room() -> None:
    assert action(watch, holding("a", arrived(running(), "c"), ran=0), now=99) == Sync(math.inf)


@pytest.mark.parametrize("also", [(), (Leave(),)], ids=["done", "gone"])
def test_watch_ends_no_round_for_a_newcomer_when_a_node_is_done(also: tuple[Leave, ...]) -> None:
    state = edited(running("a b", size="1:3"), "b", Done(0))
    for edit in also:
        state = edited(state, "b", edit)
    assert action(watch, holding("a", arrived(state, "c"), ran=0), now=99) == Sync(math.inf)


def test_watch_a_success_that_the_store_forgot_is_told_again() -> None:
    held = marked(holding("a", running("a b"), ran=0))
    assert action(watch, held) == Done(0)
    told = edited(running("a b"), "a", Done(0))
    assert action(watch, marked(holding("a", told, ran=0)), deadline=math.inf) == Sync(math.inf)


# --- done


def test_done_marks_me_in_the_round_that_my_workers_ran_in() -> None:
    assert action(done, holding("a", running(), ran=0)) == Done(0)


def test_done_closed_is_finished_with_the_verdict() -> None:
    assert action(done, holding("a", closed(), ran=0)) == Finish(CANCELLED)


def test_done_is_over_in_another_round_or_for_one_that_is_not_seated() -> None:
    ended = Ended(0, Why.FAILED, node("a"))
    assert action(done, holding("b", returning(), ran=0)) == Finish(Over(0, ended))
    assert action(done, holding("d", running(), ran=0)) == Finish(Over(0, None))
    assert action(done, holding("d", None)) == Finish(Over(0, None))


def test_done_is_settled_when_the_register_says_so() -> None:
    state = edited(running(), "a", Done(0))
    assert action(done, holding("a", state, ran=0)) == Finish(Settled())
    assert action(done, holding("a", edited(state, "a", Leave()), ran=0)) == Finish(Settled())


# --- leave


def test_leave_closed_is_finished_with_the_verdict() -> None:
    assert action(leave, holding("a", closed(), ran=0)) == Finish(CANCELLED)


def test_leave_gives_up_the_seat() -> None:
    assert action(leave, holding("a", running(), ran=0), deadline=5) == Leave()


def test_leave_is_settled_for_one_that_is_not_seated_and_owes_nothing() -> None:
    assert action(leave, holding("c", running())) == Finish(Settled())
    assert action(leave, holding("c", None)) == Finish(Settled())


@pytest.mark.parametrize("state", [None, register(), closed(), arrived(register("3"), "b")])
def test_declare_dead_is_settled_where_the_dead_have_no_seat_that_counts(state: RendezvousState | None) -> None:
    assert action(declare_dead, holding("a", state)) == Finish(Settled())


def test_declare_dead_is_settled_for_one_that_is_gone() -> None:
    assert action(declare_dead, holding("a", edited(edited(running(), "a", Done(0)), "a", Leave()))) == Finish(
        Settled()
    )


def test_declare_dead_evicts_its_own_seat() -> None:
    assert action(declare_dead, holding("a", running())) == Evict(nodes("a"))
    assert edited(running(), "a", Evict(nodes("a"))).ended == Ended(0, Why.LOST, node("a"))


def test_declare_dead_keeps_the_seat_of_a_member_for_the_process_that_replaces_it() -> None:
    def kept(state: RendezvousState) -> Held:
        return holding("a", state, Settings(limits=state.limits, replace_timeout=0.5))

    assert action(declare_dead, kept(running()), 0.25) == End(0, Why.FAILED)
    assert action(declare_dead, kept(returning()), 0.25) == Sync(0.5)
    for state in (running(), returning()):
        assert action(declare_dead, kept(state), 0.5) == Evict(nodes("a"))
        assert action(declare_dead, kept(state), 0.75) == Evict(nodes("a"))
    for state in (edited(running(), "a", Done(0)), returning(back="a")):
        assert action(declare_dead, kept(state), 0.0) == Evict(nodes("a"))


def test_the_next_incarnation_takes_the_seat_that_was_kept_and_nobody_is_missed() -> None:
    again = node("a")._replace(incarnation=9)
    whole = apply(returning(back="b c"), Arrive(profile("a")), again)
    assert (whole.complete, whole.members) == (True, (node("b"), node("c"), again))


def test_declare_dead_gives_the_round_back_to_peers_that_failed_because_of_the_dead_but_not_to_a_culprit() -> None:
    for culprit, failures in (("b", 0), ("a", 1)):
        open_again = edited(running(restarts=1), culprit, FAILED)
        assert edited(open_again, "a", Evict(nodes("a"))).failures == failures


def test_leave_voids_what_is_owed_although_not_seated() -> None:
    held = holding("c", arrived(register("3"), "a"))
    assert action(leave, unanswered(held, held.token, 0)) == Leave()


def test_leave_owes_nothing_any_longer_when_the_register_has_moved_on() -> None:
    state = arrived(register("3"), "a")
    held = unanswered(holding("c", state), state.token, 0)
    held = saw(held, arrived(state, "b"), 1, 1)
    assert action(leave, held) == Finish(Settled())


@pytest.mark.parametrize("owes", [False, True])
def test_leave_is_settled_for_one_that_is_gone_whatever_it_owes(owes: bool) -> None:
    state = edited(edited(running(), "a", Done(0)), "a", Leave())
    held = holding("a", state, ran=0)
    assert action(leave, unanswered(held, state.token, 0) if owes else held) == Finish(Settled())


def test_leave_gives_up_at_its_deadline() -> None:
    assert action(leave, holding("a", running(), ran=0), now=5, deadline=5) == Fail(Why.UNCONFIRMED)


# --- close


def test_close_is_finished_with_the_verdict_that_stands() -> None:
    assert action(close, holding("a", closed(), ran=0)) == Finish(CANCELLED)


def test_close_names_the_round_the_node_and_the_reason() -> None:
    state = arrived(returning(), "a b c")
    assert action(close, holding("a", state), deadline=5) == Close(Verdict(Ending.CANCELLED, 1, node("a"), Why.ASKED))


def test_close_ends_a_job_that_has_no_register_yet() -> None:
    assert action(close, holding("a", None)) == Close(Verdict(Ending.CANCELLED, 0, node("a"), Why.ASKED))


def test_an_operator_closes_no_job_that_is_not_there() -> None:
    assert action(close, holding("op", None), why=Why.OPERATOR) == Fail(Why.NO_JOB)
    cancels = Close(Verdict(Ending.CANCELLED, 0, node("op"), Why.OPERATOR))
    assert action(close, holding("op", running()), deadline=5, why=Why.OPERATOR) == cancels


def test_close_gives_up_at_its_deadline() -> None:
    assert action(close, holding("a", running()), now=5, deadline=5) == Fail(Why.UNCONFIRMED)


CANNOT = Close(Verdict(Ending.FAILED, 0, node("a"), Why.CANNOT_START))
SPARE = arrived(running("a b c"), "d")


def cannot_start(held: Held, now: float = 0.0, deadline: float = 9.0) -> Action:
    about = evolve(operation(close, deadline=deadline, why=Why.CANNOT_START), ending=Ending.FAILED)
    return close(context(about, held, now), deadline)


NOTHING = Finish(Settled())


@pytest.mark.parametrize(
    ("held", "answer"),
    [
        (holding("a", None, Settings(Limits(2, 2))), CANNOT),
        (holding("a", arrived(register("2"), "b")), CANNOT),
        (holding("a", running(), ran=0), CANNOT),
        (holding("a", running("a b c", "3:4"), ran=0), CANNOT),
        (holding("a", running("a b", "1:2"), ran=0), Leave()),
        (holding("a", returning("2:3"), ran=0), Leave()),
        (holding("a", returning("3"), ran=0), evolve(CANNOT, verdict=evolve(CANNOT.verdict, round=1))),
        (holding("d", running("a b c")), NOTHING),
        (holding("d", SPARE), Leave()),
        (holding("c", arrived(register("2:3"), "a b")), NOTHING),
        (holding("d", edited(edited(running("a b c"), "a", Done(0)), "a", Leave())), NOTHING),
        (holding("c", edited(running("a b c", "2:3"), "c", Leave()), ran=0), NOTHING),
        (holding("c", edited(edited(running("a b c", "2:3"), "c", Leave()), "a", Leave()), ran=0), NOTHING),
        (holding("d", running("a b"), Settings(Limits(1, 9))), Fail(Why.LIMITS)),
        (holding("b", arrived(register("3"), "a b#2")), NOTHING),
        (holding("b#2", arrived(register("2:2"), "a b")), NOTHING),
        (holding("b#2", arrived(register("2:3"), "a b")), Sync(5.0)),
        (holding("a", closed()), Finish(CANCELLED)),
    ],
    ids=[
        *("nothing is there", "another waits", "a member", "a member of the minimum", "a member too many"),
        *("expected", "expected and needed", "a newcomer", "a spare", "an open round has its minimum"),
        *("a member has gone well", "it has left", "it has left, and then another"),
        *("another job", "a later start is there", "a world stands", "an earlier start is no other", "closed"),
    ],
)
def test_a_node_that_cannot_start_ends_the_job_only_if_that_has_too_few_without_it(held: Held, answer: Action) -> None:
    assert cannot_start(held) == answer


@pytest.mark.parametrize("state", [None, arrived(register("2:4"), "b")], ids=["nothing", "too few"])
def test_a_node_that_cannot_start_gives_others_a_last_call_to_come_where_their_number_is_open(
    state: RendezvousState | None,
) -> None:
    settings = Settings(Limits(2, 4), last_call_timeout=3.0)
    held = holding("a", state, settings)
    assert cannot_start(held, 2.0) == Sync(3.0)
    assert cannot_start(held, 2.0, 2.5) == Sync(2.5)
    assert cannot_start(held, 3.0) == CANNOT


# --- what all of them read


@pytest.mark.parametrize(
    ("handler", "held"),
    [
        (join, holding("a", None)),
        (join, holding("a", arrived(register("2:3"), "a"))),
        (watch, holding("a", edited(running(), "a", Done(0)), ran=0)),
        (end, holding("a", running(), ran=0)),
        (leave, holding("a", running(), ran=0)),
        (close, holding("a", running())),
    ],
    ids=["join nothing", "join", "watch at the barrier", "end", "leave", "close"],
)
def test_long_past_its_deadline_an_operation_ends_as_at_it(handler: Handler, held: Held) -> None:
    at_it = action(handler, held, now=10, deadline=10)
    assert not isinstance(at_it, Sync)
    assert action(handler, held, now=99, deadline=10) == at_it


def test_owed_is_a_write_that_may_still_land_on_the_state_that_stands() -> None:
    state = arrived(register("3"), "a")
    held = unanswered(holding("a", state), Token(LIFE, state.version - 1), 0)
    assert not context(operation(leave), held, 0).owed
    assert context(operation(leave), unanswered(held, state.token, 0), 0).owed
    assert context(operation(leave), unanswered(held, Token(LIFE, state.version + 1), 0), 0).owed


@pytest.mark.parametrize("handler", ALL, ids=lambda handler: handler.__name__)
def test_no_handler_counts_me_among_the_dead(handler: Handler) -> None:
    held = seen_silent(holding("a", running(), ran=0), "a")
    answer: Action = action(handler, held, now=6.9)
    assert not isinstance(answer, Evict)


def test_nobody_is_coordinator_of_a_register_without_seats() -> None:
    ctx = context(operation(join), holding("a", None), 0)
    assert (ctx.coordinator, ctx.awake, ctx.dead) == (None, (), frozenset())


def test_one_that_has_left_but_is_still_here_does_chores_last() -> None:
    """Else no node would notice the death of the last one that was not done."""
    state = edited(edited(running("a b c"), "a", Done(0)), "a", Leave())
    held = seen_silent(holding("a", state, ran=0), "c", alive="b")
    assert action(watch, held, now=5 + 1.1) == Sync(math.inf)
    assert action(watch, held, now=5 + 1.2) == Evict(nodes("c"))


def test_one_without_a_seat_does_no_chores() -> None:
    held = seen_silent(holding("d", running("a b c", size="4")), "c", alive="a b")
    assert context(operation(join), held, 7).patience == math.inf
