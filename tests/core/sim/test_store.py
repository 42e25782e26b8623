"""The store of a simulated world: what it remembers, and of which instance that is."""

from __future__ import annotations

from attrs import evolve
from worlds import LIFE, arrived, node, profile, register

from elastic.core.rendezvous import Arrive, RendezvousState, Restore, Write, restored
from elastic.core.sim.store import PAST_MAX, Shown, Store
from elastic.core.sim.story import Backend

ONE = arrived(register("3"), "a")
TWO = arrived(ONE, "b")


def written(*states: RendezvousState) -> Store:
    """One state each second, from 1 on."""
    store = Store(Backend.CAS, 5.0)
    for second, state in enumerate(states, 1):
        assert wrote(store, state, store.register, second)
    return store


def wrote(
    store: Store, state: RendezvousState, based_on: RendezvousState | None, now: float, instance: int | None = None
) -> bool:
    """Whether this came to stand; by a writer that knows this instance."""
    write = Write(state, based_on.token if based_on else None, Arrive(profile("a")))
    return store.set(write, based_on, now, store.instance if instance is None else instance)


def test_a_write_is_made_on_what_it_names_only() -> None:
    store = written(ONE, TWO)
    assert not wrote(store, TWO, ONE, 3.0)
    assert not wrote(store, ONE, None, 3.0)
    assert store.shown == Shown(TWO, True, 0)
    assert store.named == LIFE


def test_a_state_of_the_same_version_is_not_the_one_that_a_write_is_based_on() -> None:
    """A copy went on as another one did: both are of one life and version."""
    other = arrived(ONE, "c")
    assert other.token == TWO.token
    assert not wrote(written(ONE, TWO), arrived(other, "d"), other, 3.0)
    assert wrote(written(ONE, TWO), arrived(TWO, "c"), evolve(TWO), 3.0)


def test_an_empty_store_is_another_one_that_knows_nothing() -> None:
    store = written(ONE, TWO)
    store.beat(node("a"), 1, 3.0)
    store.empties()
    assert store.shown == Shown(None, True, 1)
    assert (store.token, store.named, store.pulses) == (None, None, {})
    assert wrote(store, ONE, None, 4.0)
    assert store.here


def test_a_backup_is_a_copy_of_what_was_there_then() -> None:
    store = written(ONE, TWO)
    store.is_restored(1.5)
    assert store.shown == Shown(ONE, False, 1)
    assert (store.token, store.named) == (ONE.token, None)


def test_a_backup_of_a_time_before_everything_is_empty() -> None:
    store = written(ONE, TWO)
    store.is_restored(0.5)
    assert store.shown == Shown(None, True, 1)


def test_a_copy_stays_one_when_somebody_edits_it_who_does_not_know() -> None:
    store = written(ONE, TWO)
    store.is_restored(1.5)
    assert wrote(store, TWO, ONE, 3.0, instance=0)
    assert not store.here


def test_what_is_restored_is_the_store_s_own() -> None:
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
