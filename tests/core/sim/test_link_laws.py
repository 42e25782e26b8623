"""The laws of links find the smallest lie: about a connection (L15), about whom a node links to (L16) and suspects (L17)."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from attrs import evolve
from worlds import LIFE, arrived, but, edited, holding, name, node, running

from elastic.core.rendezvous import (
    Client,
    End,
    Evict,
    Heartbeats,
    Held,
    Input,
    Linked,
    Look,
    Pushed,
    RendezvousState,
    Shown,
    Violation,
    Woke,
)
from elastic.core.rendezvous.context import Suspect
from elastic.core.rendezvous.links import (
    AGAIN_S,
    Answered,
    Command,
    Connect,
    Ended,
    Event,
    Failed,
    Link,
    Refused,
    Says,
    Tell,
    transition,
)
from elastic.core.sim.link_laws import LinkLaws, LinkPast
from elastic.core.world import Life, Why

B = node("b")
UP, OTHER, BREAKS, BYE = Answered(B.incarnation), Answered(B.incarnation + 1), Ended(), Ended(goodbye=True)
SOON = Connect(1.0 + AGAIN_S)


def becomes(*events: Event, silent: bool = False, lie: tuple[Command, ...] | None = None) -> LinkLaws:
    """Let the ladder take these events, and the law judge what it makes of each. It makes `lie` of the last one."""
    laws, past, link = LinkLaws(), LinkPast(), Link(B)
    for left, event in enumerate(reversed(range(len(events)))):
        link, commands = transition(link, events[left], 1.0, silent)
        laws.hears(past, B, events[left], silent, commands if event or lie is None else lie, 1.0)
    return laws


@pytest.mark.parametrize(
    ("events", "silent", "lie"),
    [
        ((UP, BREAKS), False, (Connect(1.0),)),
        ((UP, BREAKS), False, (Tell(Says.SUSPECT), Connect(2.0))),
        ((UP, BREAKS), False, (Tell(Says.SUSPECT),)),
        ((UP, BYE), False, (Tell(Says.SUSPECT), Connect(1.0))),
        ((UP, BREAKS, Refused()), False, (Tell(Says.GONE),)),
        ((UP, BREAKS, Refused(), Failed(), Refused()), False, (Tell(Says.GONE),)),
        ((UP, BREAKS, Refused(), Refused()), False, (Connect(1.5),)),
        ((UP, BREAKS, OTHER), False, ()),
        ((UP, BREAKS, UP), False, ()),
        ((UP, BREAKS, BREAKS), False, (SOON,)),
        ((UP, BREAKS, BREAKS, BREAKS), False, (Connect(1.0),)),
        ((Refused(), Refused()), False, (Tell(Says.GONE),)),
        ((OTHER,), False, (Tell(Says.GONE),)),
        ((Failed(),), False, (Connect(9.0),)),
        ((Refused(), Refused()), True, (SOON,)),
        ((UP,), True, ()),
    ],
)
def test_L15_a_link_tells_what_came_of_its_connections(
    events: tuple[Event, ...], silent: bool, lie: tuple[Command, ...]
) -> None:
    assert becomes(*events, silent=silent).strength.armed["L15"] == len(events)
    with pytest.raises(Violation, match=r"^L15: "):
        becomes(*events, silent=silent, lie=lie)


def linked(names: str, without: str = "") -> RendezvousState:
    """Return a world of these nodes, all but some with a port for links."""
    state = running(names)
    seats = {
        who: evolve(seat, profile=evolve(seat.profile, link_port=0 if name(who) in without.split() else 7))
        for who, seat in state.seats.items()
    }
    return evolve(state, seats=seats)


def past(**changes: bool | int) -> LinkPast:
    found = LinkPast()
    for what, value in changes.items():
        setattr(found, what, value)
    return found


def follows(held: Held, pasts: Mapping[str, LinkPast]) -> str:
    try:
        LinkLaws().follows(held, {node(who): each for who, each in pasts.items()})
    except Violation as violation:
        return violation.number
    return ""


def test_L16_a_node_links_to_the_next_three_and_beyond_the_dead_only_while_the_store_is_silent() -> None:
    six, new, gone, left = linked("a b c d e f", "c"), past(), past(is_gone=True), past(said_goodbye=True)
    held = holding("e", six)
    silent = but(held, silent_since=1.0)
    assert follows(held, {"f": new, "a": new, "b": new}) == ""
    assert follows(held, {"f": new, "a": new, "d": new}) == follows(held, {"f": new, "a": new}) == "L16"
    assert follows(held, {"f": gone, "a": left, "b": new}) == ""
    assert follows(silent, {"f": gone, "a": new, "b": new}) == "L16"
    assert follows(silent, {"f": gone, "a": new, "b": new, "d": new}) == ""
    assert follows(silent, {"f": left, "a": new, "b": new}) == "L16"
    assert follows(held, {"f": gone, "a": new, "b": new, "d": new}) == "L16"
    assert follows(holding("g", six), {}) == follows(holding("a", None), {}) == ""
    assert follows(holding("g", six), {"a": new}) == "L16"


WORLD = linked("a b c")
SUSPECTED, GONE, ANSWERED, REFUSED = (Linked(B, says, 3.0) for says in Says)


def knows(state: RendezvousState = WORLD, **suspects: Suspect) -> Client:
    held = but(holding("a", state), suspects={node(who): each for who, each in suspects.items()})
    return Client(held, out=Look(), asked_at=5.0)


def beats(counter: int | None) -> Heartbeats:
    return Heartbeats({B: counter}, LIFE)


def judged(*steps: tuple[Input, Client], first: Client | None = None) -> str:
    laws, was = LinkLaws(), first or knows()
    for fed, client in steps:
        try:
            laws.suspects(was, fed, client, 1.0)
        except Violation as violation:
            return violation.number
        was = client
    return ""


NOBODY, DOUBTS = knows(), knows(b=Suspect(1.0))
SURE = knows(b=Suspect(1.0, 3.0, is_gone=True))


def test_L17_a_node_suspects_whose_link_broke_until_it_answers() -> None:
    assert judged((SUSPECTED, DOUBTS), (ANSWERED, NOBODY)) == ""
    assert judged((SUSPECTED, NOBODY)) == judged((SUSPECTED, DOUBTS), (ANSWERED, DOUBTS)) == "L17"
    assert judged((SUSPECTED, DOUBTS), (Woke(), NOBODY)) == ""
    assert judged((SUSPECTED, DOUBTS), (Woke(), DOUBTS)) == "L17"


def test_L17_evidence_counts_only_of_a_suspect_and_as_it_was_told() -> None:
    assert judged((SUSPECTED, DOUBTS), (GONE, SURE)) == judged((GONE, NOBODY)) == ""
    assert judged((GONE, SURE)) == judged((SUSPECTED, DOUBTS), (GONE, DOUBTS)) == "L17"
    assert judged((SUSPECTED, DOUBTS), (GONE, knows(b=Suspect(1.0, 3.0)))) == "L17"
    silent = evolve(NOBODY, held=but(NOBODY.held, silent_since=0.0))
    asked = knows(b=Suspect(1.0, is_gone=True))
    assert judged((REFUSED, NOBODY)) == judged((REFUSED, asked), first=silent) == ""
    assert judged((REFUSED, asked)) == judged((REFUSED, SURE), first=silent) == "L17"


def test_L17_a_heartbeat_that_moves_after_the_first_read_clears_a_node() -> None:
    read = (SUSPECTED, DOUBTS), (beats(4), DOUBTS)
    assert judged(*read, (beats(4), DOUBTS)) == judged(*read, (beats(None), DOUBTS)) == ""
    assert judged(*read, (beats(5), NOBODY)) == ""
    assert judged(*read, (beats(5), DOUBTS)) == judged(*read[:1], (beats(4), NOBODY)) == "L17"
    early = evolve(DOUBTS, asked_at=0.5)
    assert judged((SUSPECTED, early), (beats(4), DOUBTS), (beats(5), DOUBTS)) == ""
    assert judged(*read, (Heartbeats({B: 5}, None), DOUBTS)) == ""


def shown(state: RendezvousState, **suspects: Suspect) -> tuple[Input, Client]:
    return Shown(state), knows(state, **suspects)


def test_L17_a_suspect_that_loses_its_seat_or_returns_to_it_is_none() -> None:
    doubt, open_ = Suspect(1.0), edited(WORLD, "c", End(0, Why.FAILED))
    back, without = arrived(open_, "b"), edited(WORLD, "a", Evict(frozenset({B})))
    begun = (SUSPECTED, DOUBTS), shown(open_, b=doubt)
    assert judged(*begun, shown(back)) == judged((SUSPECTED, DOUBTS), shown(without)) == ""
    assert judged(*begun, shown(back, b=doubt)) == judged((SUSPECTED, DOUBTS), shown(without, b=doubt)) == "L17"
    other = evolve(WORLD, life=Life("another", 1))
    assert judged((SUSPECTED, DOUBTS), shown(other)) == ""
    assert judged((SUSPECTED, DOUBTS), shown(other, b=doubt)) == "L17"
    assert judged((SUSPECTED, DOUBTS), shown(evolve(WORLD, version=WORLD.version + 1))) == "L17"
    assert judged(*begun, shown(edited(open_, "c", Evict(frozenset({B}))))) == ""
    twice = evolve(DOUBTS, pushed=Pushed(WORLD, 0.0))
    assert judged((SUSPECTED, twice), (Shown(WORLD), NOBODY)) == ""
