"""Reserves: members of a world whose workers are not waited for, and the policy that makes them."""

from __future__ import annotations

import pytest
from attrs import evolve
from worlds import action, arrived, but, edited, holding, node, nodes, register, reseated, running, seats

from elastic.core.rendezvous import (
    Complete,
    Done,
    End,
    Evict,
    Finish,
    Held,
    Leave,
    Over,
    RendezvousState,
    Reserve,
    Settings,
    Settled,
    Status,
    Sync,
    Violation,
    Write,
    apply,
    done,
    join,
    operation,
    reserve,
    saw,
    turn,
    verify,
    verify_step,
    watch,
)
from elastic.core.rendezvous.agenda import Agenda, Request, answered, begun, submitted
from elastic.core.rendezvous.codec import decode, encode
from elastic.core.rendezvous.explain import explain
from elastic.core.rendezvous.handlers import declare_dead
from elastic.core.rendezvous.memory import reserved as marked
from elastic.core.sim.narration import verb
from elastic.core.world import Ending, Why


def reserved(names: str = "a b c", who: str = "c") -> RendezvousState:
    """Return a world in which the last node is a reserve."""
    return edited(running(names, "1:4"), who, Reserve(0))


def test_a_reserve_is_a_member_and_its_mark_is_made_once() -> None:
    state = reserved()
    assert seats(state) == {"a": "in", "b": "in", "c": "reserve"}
    assert state.members == tuple(map(node, "abc"))
    assert apply(state, Reserve(0), node("c")) is state
    assert decode(encode(state)) == state


def test_a_mark_for_another_round_or_by_a_stranger_changes_nothing() -> None:
    state = running("a b", "1:3")
    assert apply(state, Reserve(1), node("a")) is state
    assert apply(state, Reserve(0), node("x")) is state


def test_no_round_waits_for_a_reserve() -> None:
    closed = edited(edited(reserved(), "a", Done(0)), "b", Done(0)).closed
    assert closed is not None
    assert closed.ending is Ending.SUCCEEDED


def test_reserves_alone_have_succeeded_in_nothing() -> None:
    state = edited(reserved("a b", "b"), "a", Reserve(0))
    assert state.closed is None
    assert edited(state, "a", Leave()).closed is None


def test_the_last_reserve_s_mark_may_be_what_the_job_waited_for() -> None:
    state = edited(edited(running("a b c", "1:3"), "a", Done(0)), "a", Leave())
    assert edited(edited(state, "b", Reserve(0)), "c", Reserve(0)).closed is not None


@pytest.mark.parametrize("loss", [Leave(), Evict(nodes("c"))], ids=["leave", "evict"])
def test_the_loss_of_a_reserve_ends_no_round(loss: Leave | Evict) -> None:
    state = edited(reserved(), "c" if isinstance(loss, Leave) else "a", loss)
    assert (state.round, seats(state)) == (0, {"a": "in", "b": "in", "c": "absent"})
    assert apply(state, loss, node("c")) is state
    assert state.present == (node("a"), node("b"))
    assert seats(edited(state, "a", End(0, Why.FAILED))) == {"a": "expected", "b": "expected"}


def test_an_absent_reserve_may_come_again_as_another_incarnation() -> None:
    state = edited(reserved(), "c", Leave())
    assert seats(arrived(state, "c#2")) == {"a": "in", "b": "in", "c": "absent", "c#2": "waiting"}


def test_a_reserve_is_expected_back_when_the_round_ends() -> None:
    state = edited(reserved(), "a", End(0, Why.FAILED))
    assert (seats(state), state.target) == ({"a": "expected", "b": "expected", "c": "expected"}, 3)


def test_a_newcomer_may_end_a_round_with_a_reserve_but_none_with_a_done_node() -> None:
    assert not reserved().finishing
    assert edited(reserved(), "a", Done(0)).finishing


def test_the_sentence_does_not_count_reserves() -> None:
    assert explain(reserved(), node("a")) == "round 0: 2 nodes running"
    assert explain(reserved("a b c d", "d"), node("a")) == "round 0: 3 nodes running"
    assert explain(edited(reserved(), "a", Done(0)), node("a")).startswith("round 0: 1 of 2 nodes done")


# --- what a node does


def member(who: str, state: RendezvousState) -> Held:
    return holding(who, state, ran=0)


def test_reserve_says_so_until_the_register_knows() -> None:
    assert action(reserve, member("c", running("a b c"))) == Reserve(0)
    assert action(reserve, member("c", reserved())) == Finish(Settled())
    assert action(reserve, member("c", edited(reserved(), "a", End(0, Why.FAILED)))) == Finish(
        Over(0, edited(reserved(), "a", End(0, Why.FAILED)).ended)
    )
    closed = edited(edited(reserved(), "a", Done(0)), "b", Done(0))
    assert closed.closed is not None
    assert action(reserve, member("c", closed)) == Finish(closed.closed)
    assert action(reserve, holding("c", None)) == Finish(Over(0, None))


def test_a_reserve_that_joins_again_ends_the_round_it_ran_in() -> None:
    assert action(join, member("c", reserved())) == End(0, Why.FENCED)


def test_a_mark_that_the_store_forgot_is_made_again() -> None:
    forgotten = running("a b c")
    held = marked(member("c", forgotten))
    assert action(watch, held) == Reserve(0)
    assert isinstance(action(watch, marked(member("c", reserved()))), Sync)


def test_after_its_mark_a_reserve_watches() -> None:
    state = reserved()
    agenda, held, _ = begun(submitted(Agenda(), Request(reserve)), member("c", state), 0.0, 0.0)
    agenda, held = answered(agenda, held, Settled())
    assert (agenda.watching, held.past.reserve_in, held.past.done_in) == (True, state.world_id, None)


def test_a_reserve_s_mark_is_a_sign_of_life() -> None:
    held = member("a", running("a b c", "1:4"))
    seen = saw(held, reserved(), 5.0, 5.0)
    assert seen.view.state == reserved()


# --- the policy


def test_the_node_that_completes_a_world_applies_the_policy() -> None:
    settings = Settings(limits=register("1:2").limits, last_call_timeout=0.0)
    alone = arrived(register("1:2"), "a")
    held = but(holding("a", alone, settings), policy=lambda world: f"{len(world.members)} ranks")
    ask = turn(operation(join, settings, 0.0), held, 1.0)
    assert isinstance(ask, Write)
    assert ask.edit == Complete(0)
    assert (ask.state.policy, ask.state.world.policy) == ("1 ranks", "1 ranks")
    assert decode(encode(ask.state)) == ask.state
    assert edited(ask.state, "a", End(0, Why.FAILED)).policy == ""


def mine(world: object) -> str:
    return "mine"


def test_a_write_that_completes_no_world_signs_none() -> None:
    signed = evolve(arrived(register("2"), "a b"), policy="theirs")
    ask = turn(operation(done, Settings(), 0.0), but(holding("a", signed, ran=0), policy=mine), 1.0)
    assert isinstance(ask, Write)
    assert (ask.edit, ask.state.policy) == (Done(0), "theirs")


def test_one_write_may_end_a_round_and_complete_the_next_which_is_signed_anew() -> None:
    signed = evolve(arrived(register("1"), "a"), policy="theirs")
    ask = turn(operation(join, Settings(), 0.0), but(holding("a#2", signed), policy=mine), 1.0)
    assert isinstance(ask, Write)
    assert (ask.state.complete, ask.state.round, ask.state.policy) == (True, 1, "mine")


def test_a_policy_belongs_to_a_world_and_does_not_change_under_it() -> None:
    with pytest.raises(Violation, match="V13"):
        verify(evolve(arrived(register("1:2"), "a"), policy="x"))
    before = running("a b c", "1:4")
    for was, becomes in (("", "x"), ("x", ""), ("x", "y")):
        with pytest.raises(Violation, match="V13"):
            verify_step(evolve(before, policy=was), evolve(edited(before, "c", Reserve(0)), policy=becomes))


def test_a_job_of_reserves_alone_has_not_succeeded() -> None:
    closed = edited(edited(reserved("a b", "b"), "a", Done(0)), "x", Leave())
    with pytest.raises(Violation, match="S14: closed as succeeded though nobody"):
        verify(reseated(closed, a=Status.RESERVE))


def test_a_reserve_in_an_open_round_is_refused() -> None:
    state = edited(running("a b", "1:3"), "a", End(0, Why.FAILED))
    with pytest.raises(Violation, match="V2: done or reserve"):
        verify(reseated(state, b=Status.RESERVE))


def test_a_mark_is_told_in_words() -> None:
    assert verb(Reserve(3)) == "is a reserve in round 3"


def test_a_reserve_whose_process_is_dead_is_buried_once() -> None:
    assert action(declare_dead, holding("c", reserved())) == Evict(nodes("c"))
    away = edited(reserved(), "c", Evict(nodes("c")))
    assert seats(away)["c"] == "absent"
    assert action(declare_dead, holding("c", away)) == Finish(Settled())
