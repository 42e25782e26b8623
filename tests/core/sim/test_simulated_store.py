"""The store of a simulated world: what it remembers, and what it marks as a copy."""

from __future__ import annotations

from worlds import LIFE, arrived, node, profile, register

from elastic.core.rendezvous import Arrive, Done, Proposal, RendezvousState, Restore, Shown, Token, Write, restored
from elastic.core.sim.simulated_store import PAST_MAX, Store
from elastic.core.sim.story import Backend

ONE = arrived(register("3"), "a")
TWO = arrived(ONE, "b")


def written(*states: RendezvousState) -> Store:
    """Return a store to which one state was written each second, from 1 on."""
    store = Store(Backend.CAS, 5.0)
    for second, state in enumerate(states, 1):
        assert wrote(store, state, store.register, second)
    return store


def wrote(store: Store, state: RendezvousState, based_on: RendezvousState | None, now: float) -> bool:
    """Return True if the write succeeded."""
    return store.set(Write(state, based_on.token if based_on else None, Arrive(profile("a"))), now)


def test_a_write_succeeds_only_on_the_token_that_it_names() -> None:
    store = written(ONE, TWO)
    assert not wrote(store, TWO, ONE, 3.0)
    assert not wrote(store, ONE, None, 3.0)
    assert store.shown == Shown(TWO)
    assert store.named == LIFE


def test_an_empty_store_is_another_one_that_knows_nothing() -> None:
    store = written(ONE, TWO)
    store.beat(node("a"), 1, 3.0)
    store.empties()
    assert store.shown == Shown(None)
    assert (store.token, store.named, store.pulses) == (None, None, {})
    assert wrote(store, ONE, None, 4.0)
    assert store.here


def test_the_last_proposal_of_each_node_is_kept_and_each_kind_counted() -> None:
    store = written(ONE)
    back, mark = Proposal(ONE.era, Arrive(profile("a"))), Proposal(ONE.era, Done(0))
    assert [store.propose(node("a"), back), store.propose(node("b"), back), store.propose(node("a"), mark)] == [1, 2, 1]
    assert store.proposals_of((node("a"), node("b"), node("c"))) == {node("a"): mark, node("b"): back}


def test_who_proposes_to_enter_is_found_by_its_era() -> None:
    store = Store(Backend.CAS, 5.0)
    enters, later = (Proposal(Token(ONE.life, version), Arrive(profile("b")), enters=True) for version in (0, 1))
    assert [store.propose(node("b"), enters), store.propose(node("c"), later)] == [1, 1]
    assert store.proposals_of((), enters.era) == {node("b"): enters}
    assert store.proposals_of((node("b"), node("d")), later.era) == {node("b"): enters, node("c"): later}


def test_an_empty_store_knows_no_proposal_but_a_backup_may_know_too_many() -> None:
    store = written(ONE)
    store.propose(node("a"), proposal := Proposal(ONE.era, Arrive(profile("a"))))
    store.is_restored(0.5)
    assert store.proposals_of((node("a"),)) == {node("a"): proposal}
    store.empties()
    assert store.proposals_of((node("a"),)) == {}
    assert store.propose(node("a"), proposal) == 1


def test_a_backup_is_a_copy_of_the_register_at_that_time() -> None:
    store = written(ONE, TWO)
    store.is_restored(1.5)
    assert store.shown == Shown(ONE, False)
    assert (store.token, store.named) == (ONE.token, None)


def test_a_backup_of_a_time_before_everything_is_empty() -> None:
    store = written(ONE, TWO)
    store.is_restored(0.5)
    assert store.shown == Shown(None)


def test_a_copy_takes_no_write_of_the_life_that_it_copies() -> None:
    """Its writer does not know yet that the register is a copy."""
    store = written(ONE, TWO)
    store.is_restored(1.5)
    assert not wrote(store, TWO, ONE, 3.0)
    assert store.shown == Shown(ONE, False)


def test_a_restored_register_is_the_store_s_own() -> None:
    store = written(ONE, TWO)
    store.is_restored(1.5)
    deed = Restore(TWO, "again")
    assert wrote(store, restored(deed, ONE), ONE, 3.0)
    assert (store.here, store.named) == (True, restored(deed, ONE).life)


def test_backups_go_back_a_bounded_way() -> None:
    store = written(ONE)
    for second in range(2, 2 * PAST_MAX):
        store.past.append((float(second), TWO))
    assert len(store.past) == PAST_MAX
    store.is_restored(1.5)
    assert store.register is None
