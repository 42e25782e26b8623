"""The ranks of lost nodes are thrown out of the registers of workers, also of those that are opened later."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import partial
from typing import NoReturn

import pytest
from attrs import evolve
from processes import comes_true
from relayed import clients
from worlds import edited, profile, register, running

from elastic.adapters.clock import SystemClock
from elastic.adapters.rendezvous.evictions import Evictions
from elastic.adapters.store.memory_store import MemoryBackend, MemoryStore
from elastic.adapters.store.port import Backend, OutOfReach, Shown
from elastic.adapters.store.relay.relay_server import Relay
from elastic.core.rendezvous import Arrive
from elastic.core.world import Node, Party, Profile, Why

PARTIES = {"0": Party("n#1", 2), "1": Party("n#1", 2), "2": Party("m#1", 1)}


def test_the_ranks_of_a_lost_node_are_thrown_out_of_every_register_that_is_open() -> None:
    stores = {name: MemoryStore() for name in ("one", "other")}
    evictions = Evictions()
    relay = Relay(lambda name: MemoryBackend(stores[name], SystemClock()), evictions.follow)
    evictions.evict(of_n, Node("agent", 1), nobody)  # nobody has come
    ranks = running("0 1 2")
    seats = {
        who: evolve(seat, profile=evolve(seat.profile, party=PARTIES[who.slot])) for who, seat in ranks.seats.items()
    }
    with clients(relay, "one") as one, clients(relay, "other") as other:
        there = [one(), other()]
        for client in there:
            client.set(evolve(ranks, seats=seats), None)
        evictions.evict(of_n, Node("agent", 1), nobody)
        for client in there:
            assert comes_true(partial(are_seated, client, ["2"]))
            state = client.get().state
            assert state and state.ended and (state.ended.why, state.round) == (Why.LOST, 1)
    relay.close()


def nobody() -> Mapping[str, int]:
    return {}


def of_n() -> Mapping[str, int]:
    return {"n#1": 0}


def test_the_ranks_of_a_node_that_has_returned_are_not_thrown_out_of_a_register_that_is_opened_later() -> None:
    """A round failed after it had returned, so all ranks begin in a new register. There the first round waits for them."""
    shared, lost = MemoryStore(), ["n#1", "m#1"]
    evictions = Evictions()
    relay = Relay(lambda name: MemoryBackend(shared, SystemClock()), evictions.follow)
    evictions.evict(lambda: dict.fromkeys(lost, 0), Node("agent", 1), nobody)
    lost.remove("n#1")
    forming = edited(evolve(register("1:4"), target=4), "0", Arrive(evolve(profile("0"), party=PARTIES["0"])))
    forming = edited(forming, "2", Arrive(evolve(profile("2"), party=PARTIES["2"])))
    MemoryBackend(shared, SystemClock()).set(forming, None)
    with clients(relay, "later") as later:
        there = later()
        assert comes_true(partial(are_seated, there, ["0"]))
    relay.close()


def test_a_first_round_waits_for_no_more_ranks_than_the_nodes_that_are_left_have() -> None:
    """One agent hears of the loss before its ranks have come, one while they come."""
    stores = {name: MemoryStore() for name in ("before", "between")}
    evictions = Evictions()
    relay = Relay(lambda name: MemoryBackend(stores[name], SystemClock()), evictions.follow)
    forming = edited(evolve(register("1:4"), target=4), "0", Arrive(of_party("0")))
    with clients(relay, "between") as between:
        there = between()
        there.set(forming, None)
        evictions.evict(of_n, Node("agent", 1), lambda: {"m#1": 2})
        with clients(relay, "before") as before:
            later = before()
            later.set(forming, None)
            for client in (later, there):
                client.set(edited(forming, "2", Arrive(of_party("2"))), forming.token)
                assert comes_true(partial(is_complete, client))
                assert are_seated(client, ["0", "2"])
    relay.close()


def of_party(slot: str) -> Profile:
    return evolve(profile(slot), party=Party("m#1", 2))


def is_complete(client: Backend) -> bool:
    state = client.get().state
    return state is not None and state.complete


def are_seated(client: Backend, slots: list[str]) -> bool:
    state = client.get().state
    return state is not None and [node.slot for node in state.seats] == slots


class Silent(MemoryBackend):
    """It leaves the first questions unanswered."""

    asked = 0

    def clone(self) -> Silent:
        return self

    def get(self) -> Shown:
        Silent.asked += 1
        if Silent.asked < 4:
            raise OutOfReach("not now")
        return super().get()


def test_a_store_that_does_not_answer_is_asked_again_to_throw_them_out() -> None:
    Silent.asked = 0
    store, clock = MemoryStore(), SystemClock()
    ranks = running("0 1 2")
    seats = {
        who: evolve(seat, profile=evolve(seat.profile, party=PARTIES[who.slot])) for who, seat in ranks.seats.items()
    }
    plain = MemoryBackend(store, clock)
    plain.set(evolve(ranks, seats=seats), None)
    evictions = Evictions()
    end = evictions.follow(Silent(store, clock))
    evictions.evict(of_n, Node("agent", 1), nobody)
    assert comes_true(partial(are_seated, plain, ["2"]))
    end()


class Slow(MemoryBackend):
    """While it answers, the agent hears that the lost node has returned."""

    def __init__(self, store: MemoryStore, lost: set[str]) -> None:
        super().__init__(store, SystemClock())
        self._lost = lost

    def clone(self) -> Slow:
        return self

    def get(self) -> Shown:
        self._lost.clear()
        return super().get()


def test_a_node_that_returns_while_the_register_is_read_keeps_its_ranks() -> None:
    lost, backend = {"n#1"}, MemoryBackend(MemoryStore(), SystemClock())
    ranks = running("0 1 2")
    seats = {
        who: evolve(seat, profile=evolve(seat.profile, party=PARTIES[who.slot])) for who, seat in ranks.seats.items()
    }
    backend.set(evolve(ranks, seats=seats), None)
    evictions = Evictions()
    end = evictions.follow(Slow(backend._store, lost))
    evictions.evict(lambda: dict.fromkeys(lost, 0), Node("agent", 1), nobody)
    assert comes_true(lambda: not lost)
    assert comes_true(lambda: "elastic-evicts" not in [thread.name for thread in threading.enumerate()])
    end()
    assert are_seated(backend, ["0", "1", "2"])


class Mute(MemoryBackend):
    """It never answers."""

    def clone(self) -> Mute:
        return Mute(MemoryStore(), SystemClock())

    def get(self) -> Shown:
        raise OutOfReach("never")


def test_who_throws_ranks_out_of_a_store_that_never_answers_ends_when_the_register_is_used_no_longer() -> None:
    evictions = Evictions()
    end = evictions.follow(Mute(MemoryStore(), SystemClock()))
    evictions.evict(of_n, Node("agent", 1), nobody)
    end()
    assert "elastic-evicts" not in [thread.name for thread in threading.enumerate()]
    evictions.evict(of_n, Node("agent", 1), nobody)
    assert "elastic-evicts" not in [thread.name for thread in threading.enumerate()]


def test_without_a_thread_for_it_nobody_is_thrown_out_and_the_agent_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(thread: threading.Thread) -> NoReturn:
        raise RuntimeError("can't start new thread")

    evictions = Evictions()
    end = evictions.follow(Mute(MemoryStore(), SystemClock()))
    monkeypatch.setattr(threading.Thread, "start", start)
    evictions.evict(of_n, Node("agent", 1), nobody)
    end()
