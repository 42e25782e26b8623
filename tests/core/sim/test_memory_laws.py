"""The law of what a node remembers (L19) finds a memory in which something else stands than what the node has heard."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve
from worlds import arrived, but, circling, edited, heard, holding, node, profile, register, running, with_one_aside

from elastic.core.properties.law import Strength
from elastic.core.rendezvous import (
    Advance,
    Arrive,
    Client,
    Close,
    Counted,
    End,
    Gather,
    Heartbeats,
    Held,
    Input,
    Look,
    Missed,
    NoState,
    Notice,
    Observe,
    Passed,
    Proposal,
    Proposals,
    Propose,
    Pushed,
    Question,
    Restore,
    Seen,
    Settled,
    Shown,
    Silent,
    Standstill,
    Told,
    Unknown,
    Woke,
    Write,
    join,
    restored,
    step,
)
from elastic.core.rendezvous.context import Fact, Found
from elastic.core.rendezvous.handlers import done, reserve
from elastic.core.rendezvous.memory import woke
from elastic.core.rendezvous.state import Failing
from elastic.core.sim.memory_laws import KNOWN, Remembering
from elastic.core.violation import Violation
from elastic.core.world import Ending, Endpoint, Life, Verdict, Why

RUNS = running("a b")
OVER = edited(RUNS, "b", End(0, Why.FAILED))
CLOSED = edited(RUNS, "b", Close(Verdict(Ending.CANCELLED, 0, node("b"), Why.ASKED)))
GROWS, GREW = arrived(circling("a b"), "c"), edited(arrived(circling("a b"), "c"), "a", End(0, Why.UPSCALE))
FAR = edited(register("1:3"), "b", Arrive(evolve(profile("b"), host="far")))
LOOPBACK = Endpoint("127.0.0.1", 29_500)
LATER = arrived(register("1:2"), "a#2")
FAILS = edited(running("a b c", "1:3", 5), "b", End(0, Why.FAILED, Failing(2, 600.0)))
ANOTHER = restored(Restore(OVER, "another"), None)
WRITE, ENTER = Write(OVER, RUNS.token, End(0, Why.FAILED)), Proposal(RUNS.era, Arrive(profile("a")), enters=True)
BLANK = holding("a", None)
"""It has read the register, and there is none."""
FRESH = but(BLANK, held_at=None)
HELD = holding("a", RUNS, ran=0)
HEARD = heard(HELD, {node("b"): 1}, 0.0, 0.0)
DEAF = heard(heard(HEARD, {node("b"): 1}, 1.9, 1.9), {node("b"): 1}, 3.8, 3.8)
"""b has not moved since 0."""
SILENCE = but(HEARD, silent_since=1.0)
ASLEEP = woke(HEARD, 5.0)
UNSURE = but(HELD, unsure_at=4.0, owed=RUNS.token)
LINKED = but(HELD, profile=evolve(profile("a"), link_port=1))
FOUND = but(HELD, instead=Found(None, RUNS, 3.0))
ALL = " ".join([*(name for name in KNOWN if name not in ("woke_at", "found", "trouble")), "instead"])
SEEN = ("state", "spans", "silent_since", "unsure_at", "found", "trouble")
UNSEEN = " ".join([*(name for name in KNOWN if name not in SEEN), "instead"])
"""A read of heartbeats that changes no span is by far the most, so the law looks at few fields then."""
LIES: dict[str, Any] = dict.fromkeys(KNOWN, "a lie") | {
    "state": evolve(RUNS, version=99),
    "instead": Found(OVER, RUNS, 99.0),
}
LIES["spans"] = {Fact.OPEN: ("a lie", 99.0)}
del LIES["trouble"], LIES["found"]


def out(held: Held, question: Question | None = None, asked_at: float = 5.0) -> Client:
    return Client(held, out=question, asked_at=asked_at)


def is_found(before: Client, fed: Input, after: Client, *notices: Notice) -> bool:
    try:
        Remembering().takes(before, fed, after, notices, 6.0)
    except Violation as violation:
        return violation.number == "L19"
    return False


@pytest.mark.parametrize(
    ("before", "fed", "free"),
    [
        (out(HEARD), Woke(), ""),
        (out(HEARD), Standstill(2.0), ""),
        (out(holding("a", circling(), ran=0)), Advance(0), ""),
        (out(but(holding("a", circling(), ran=0), silent_since=1.0)), Advance(7), ""),
        (out(HEARD, Look()), Silent(), ""),
        (out(SILENCE, Look()), Silent(), ""),
        (out(SILENCE), Missed(Silent()), ""),
        (out(FOUND, Look()), NoState("nonsense"), ""),
        (out(FRESH, Look()), NoState("nobody serves", is_unserved=True), ""),
        (out(HELD, WRITE), Unknown(), ""),
        (out(BLANK, evolve(WRITE, token=None)), Unknown(), "nonce"),
        (out(FOUND, WRITE), Unknown(), "nonce"),
        (out(SILENCE, Observe(())), Heartbeats({node("b"): 2}, RUNS.life), UNSEEN),
        (out(SILENCE, Observe(())), Heartbeats({node("b"): 2}, Life("another")), ""),
        (out(HEARD, Observe(())), Heartbeats({node("b"): None}, RUNS.life), UNSEEN),
        (out(DEAF, Observe(())), Heartbeats({node("b"): 1}, RUNS.life), ""),
        (out(but(BLANK, profile=evolve(profile("a"), endpoint=LOOPBACK)), Look()), Shown(FAR), "nonce"),
        (out(SILENCE, Propose(ENTER)), Counted(1), ""),
        (out(HEARD, Gather(()), 0.5), Proposals({}), ""),
        (out(BLANK, Look()), Shown(None), ""),
        (out(FRESH, Look()), Shown(None), ""),
        (out(BLANK, Look()), Shown(RUNS), "nonce"),
        (out(HELD, Look()), Shown(RUNS), ""),
        (out(UNSURE, Look()), Shown(RUNS), ""),
        (out(UNSURE, Look(), 3.0), Shown(OVER), ""),
        (out(UNSURE, Look()), Shown(OVER), ""),
        (out(HELD), Pushed(OVER, 0.5), ""),
        (out(HELD), Pushed(CLOSED, 0.5), ""),
        (out(holding("a", CLOSED), Look()), Shown(CLOSED), ""),
        (out(holding("b", with_one_aside()), Look()), Shown(with_one_aside()), ""),
        (out(holding("b", FAILS), Look()), Shown(with_one_aside()), ""),
        (out(holding("a", circling(), ran=0), Look()), Shown(GROWS), ""),
        (out(holding("a", GROWS, ran=0), Look()), Shown(GREW), ""),
        (out(holding("a", GREW, ran=0), Look()), Shown(arrived(GREW, "a b")), ""),
        (out(heard(holding("a", LATER), {node("a#2"): 1}, 0.0, 0.0), Look()), Shown(LATER), ""),
        (out(LINKED, Look()), Shown(evolve(OVER, seats={node("b"): OVER.seats[node("b")]}, target=1)), ""),
        (out(but(HELD, nonce=ANOTHER.life), Look()), Shown(ANOTHER), "nonce"),
        (out(but(LINKED, owed=RUNS.token), Look()), Shown(ANOTHER), ""),
        (out(HELD, Look(), -1.0), Shown(ANOTHER), ""),
        (out(HELD, Look()), Shown(None), ""),
        (out(FOUND, Look()), Shown(None), ""),
        (out(FOUND, Look()), Shown(RUNS), ""),
        (out(HELD, Look()), Shown(evolve(OVER, target=7)), ""),
        (out(SILENCE, Look()), Shown(evolve(OVER, target=7)), ""),
        (out(ASLEEP, Look(), 4.0), Shown(OVER), ""),
        (out(ASLEEP, Look()), Shown(OVER), ""),
        (out(ASLEEP, Look()), Shown(ANOTHER), ALL),
        (out(ASLEEP, Look(), 4.0), NoState("nonsense"), ""),
        (out(ASLEEP, Look()), NoState("nonsense"), ""),
        (out(woke(FOUND, 5.0), Look(), 4.0), NoState("nobody serves", is_unserved=True), ""),
        (out(ASLEEP), Missed(NoState("nonsense")), ""),
        (out(ASLEEP, Look()), Missed(NoState("nonsense")), ""),
    ],
)
def test_each_input_makes_of_a_memory_what_the_law_says(before: Client, fed: Input, free: str) -> None:
    """`free`: the fields in which anything may stand then."""
    after, _, _ = step(before, fed, 6.0)
    assert not is_found(before, fed, after)
    lies = {name: evolve(after, held=but(after.held, **{name: lie})) for name, lie in LIES.items()}
    assert [name for name, lie in lies.items() if not is_found(before, fed, lie)] == free.split()


def test_the_end_of_an_operation_makes_its_part() -> None:
    old = RUNS.world_id._replace(life=Life("old")) if RUNS.world_id else None
    before = out(but(holding("a", RUNS), ran=frozenset({old} if old else ())))
    joined = but(before.held, mine=RUNS.world_id, ran=before.held.past.ran | {RUNS.world.id})
    for handler, answer, was, after in (
        (join, RUNS.world, before, joined),
        (done, Settled(), out(HELD), but(HELD, done_in=HELD.past.mine)),
        (reserve, Settled(), out(HELD), but(HELD, reserve_in=HELD.past.mine)),
    ):
        told = Told(handler, answer, after)
        assert not is_found(was, Passed(), evolve(was, held=after), told)
        assert is_found(was, Standstill(1.0), was, told)
    still = evolve(before, held=but(before.held, still_since=1.0))
    assert not is_found(before, Standstill(1.0), still, Seen(RUNS, 1.0))
    left = Told(done, Verdict(Ending.FAILED, 0, node("b"), Why.FAILED), before.held)
    assert not is_found(before, Standstill(None), before, left)


def test_a_push_that_is_kept_changes_nothing_and_a_step_of_two_inputs_is_left_out() -> None:
    pushed = Pushed(OVER, 0.5)
    kept, _, _ = step(out(HELD, Look()), pushed, 6.0)
    assert kept.pushed is pushed and not is_found(out(HELD, Look()), pushed, kept)
    assert is_found(out(HELD, Look()), pushed, evolve(kept, held=but(HELD, state=OVER)))
    both, _, _ = step(kept, Shown(RUNS), 6.0)
    assert not is_found(kept, Shown(RUNS), evolve(both, held=but(HELD, mine=None)))


def test_what_changes_nothing_arms_nothing() -> None:
    strength = Strength()
    for before, fed in ((out(HELD), Passed()), (out(HEARD, Look(), 0.0), Shown(RUNS))):
        Remembering(strength).takes(before, fed, before, (), 6.0)
    assert not strength.armed["L19"]
