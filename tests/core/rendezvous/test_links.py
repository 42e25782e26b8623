"""Links between agents: who watches whom, what the end of a link tells, and when that counts."""

from __future__ import annotations

import pytest
from attrs import evolve
from worlds import LIFE, action, arrived, but, edited, heard, holding, name, node, nodes, profile, register, running

from elastic.core.rendezvous import (
    Arrive,
    Client,
    Close,
    Done,
    Evict,
    Heartbeats,
    Held,
    Leave,
    Linked,
    Observe,
    Passed,
    RendezvousState,
    Sync,
    Wait,
    Write,
    introduced,
    join,
    saw,
    step,
    turn,
    unanswered,
    watch,
    woke,
)
from elastic.core.rendezvous import operation as begin
from elastic.core.rendezvous.agenda import Agenda
from elastic.core.rendezvous.context import Suspect, dead, stranded
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
    followed,
    neighbours,
    transition,
)
from elastic.core.rendezvous.memory import told_by_link
from elastic.core.world import Ending, Life, Verdict, Why

B = node("b")
SUSPECT, GONE, ANSWERS, REFUSES = Says


def linked(state: RendezvousState, without: str = "") -> RendezvousState:
    """Return this state with a port of links in each seat but these."""
    seats = {
        who: evolve(seat, profile=evolve(seat.profile, link_port=0 if name(who) in without.split() else 7))
        for who, seat in state.seats.items()
    }
    return evolve(state, seats=seats)


ABC = linked(running("a b c"))


# --- whom a node watches


def watched(who: str, names: str = "a b c d e f", without: str = "") -> str:
    state = linked(running(names), without)
    return " ".join(map(name, neighbours(state, node(who))))


def test_a_node_watches_the_next_three_in_the_order_of_seats() -> None:
    assert [watched("a"), watched("d"), watched("f")] == ["b c d", "e f a", "a b c"]


def test_a_node_watches_nobody_twice_and_not_itself() -> None:
    assert [watched("a", "a"), watched("a", "a b"), watched("b", "a b c")] == ["", "b", "c a"]


def test_a_node_without_a_port_is_passed_over_and_watches_others() -> None:
    assert [watched("a", without="c d"), watched("c", without="c d")] == ["b e f", "e f a"]


def test_who_has_left_is_not_watched() -> None:
    state = edited(edited(ABC, "b", Done(0)), "b", Leave())
    assert [neighbours(state, node("a")), neighbours(state, B)] == [(node("c"),), ()]


def test_nobody_is_watched_without_a_seat_without_a_register_and_after_the_end() -> None:
    closed = edited(ABC, "a", Close(Verdict(Ending.CANCELLED, 0, node("a"), Why.ASKED)))
    assert [neighbours(ABC, node("z")), neighbours(None, B), neighbours(closed, B)] == [(), (), ()]


# --- one link


def after(*events: Event) -> tuple[Link, tuple[Command, ...]]:
    """Return the link to b after these events, at one time each second, and the commands of the last one."""
    link, commands = Link(B), tuple[Command, ...]()
    for at, event in enumerate(events):
        link, commands = transition(link, event, float(at))
    return link, commands


UP, BROKEN = Answered(1), Ended()


def test_a_link_that_comes_up_tells_nothing() -> None:
    assert after(UP) == (Link(B, up=True), ())


def test_a_link_that_ends_without_a_goodbye_makes_its_node_a_suspect_and_is_tried_again_at_once() -> None:
    assert after(UP, BROKEN) == (Link(B, suspected=True), (Tell(SUSPECT), Connect(1.0)))


def test_a_link_that_ends_with_a_goodbye_is_over() -> None:
    assert after(UP, Ended(goodbye=True)) == (Link(B, over=True), ())


def test_the_same_incarnation_that_answers_is_no_suspect() -> None:
    assert after(UP, BROKEN, Answered(1)) == (Link(B, up=True), (Tell(ANSWERS),))


def test_a_suspect_that_hangs_up_without_an_answer_is_tried_again_at_once_and_then_later_and_later() -> None:
    # Its reaper held the port until now: whether it refuses is known at once.
    link, commands = after(UP, BROKEN, Ended())
    assert (link.suspected, link.tries, commands) == (True, 1, (Connect(2.0),))
    assert after(UP, BROKEN, Ended(), Ended())[1] == (Connect(3.0 + 2 * AGAIN_S),)
    assert after(UP, BROKEN, Failed(), Ended())[1] == (Connect(3.0 + 2 * AGAIN_S),)


def test_one_refusal_is_no_evidence_and_two_are() -> None:
    assert after(UP, BROKEN, Refused())[1] == (Connect(2.02),)
    link, commands = after(UP, BROKEN, Refused(), Refused())
    assert (link.over, commands) == (True, (Tell(GONE),))


@pytest.mark.parametrize("between", [Failed(), BROKEN], ids=["failed", "accepted, and ended"])
def test_refusals_count_in_a_row_only(between: Event) -> None:
    link, commands = after(UP, BROKEN, Refused(), between, Refused())
    assert (link.refusals, commands) == (1, (Connect(4.02),))


def test_another_incarnation_that_answers_is_evidence() -> None:
    link, commands = after(UP, BROKEN, Answered(2))
    assert (link.over, commands) == (True, (Tell(GONE),))


@pytest.mark.parametrize("event", [Refused(), Failed(), BROKEN, Answered(2)], ids=lambda event: type(event).__name__)
def test_what_was_never_up_tells_nothing_of_its_node(event: Event) -> None:
    for times in range(1, 5):
        link, commands = after(*[event] * times)
        assert (link.suspected, link.over) == (False, False)
        assert commands == (Connect(times - 1 + 0.02 * 2 ** (times - 1)),)


def test_silence_and_unreachability_are_no_evidence_however_often() -> None:
    link, commands = after(UP, BROKEN, *[Failed()] * 9)
    assert (link.suspected, link.over, commands) == (True, False, (Connect(11.0),))


# --- while the store is silent


def silenced(*events: Event) -> tuple[Link, tuple[Command, ...]]:
    """Return the link to b after these events while the store is silent, and the commands of the last one."""
    link, commands = Link(B), tuple[Command, ...]()
    for at, event in enumerate(events):
        link, commands = transition(link, event, float(at), silent=True)
    return link, commands


def test_a_port_that_refuses_twice_counts_while_the_store_is_silent_though_its_link_never_stood() -> None:
    link, commands = silenced(Refused())
    assert (link.is_gone, commands) == (False, (Connect(AGAIN_S),))
    link, commands = silenced(Refused(), Refused())
    assert (link.is_gone, link.over, commands) == (True, False, (Tell(REFUSES), Connect(1.02)))
    assert silenced(Refused(), Refused(), Refused())[1] == (Tell(REFUSES), Connect(2.04))


def test_a_node_that_answers_after_its_port_has_refused_is_not_gone() -> None:
    assert silenced(Refused(), Refused(), UP) == (Link(B, up=True), (Tell(ANSWERS),))
    assert not silenced(Refused(), Refused(), Failed())[0].is_gone
    refused, _ = silenced(Refused(), Refused())
    assert not transition(refused, Refused(), 3.0)[0].is_gone  # the store answers: heartbeats decide


def test_evidence_is_evidence_while_the_store_is_silent() -> None:
    link, commands = silenced(UP, BROKEN, Refused(), Refused())
    assert (link.is_gone, link.over, commands) == (True, True, (Tell(GONE),))


SIX = linked(running("a b c d e f"))


def gone(*names: str) -> dict[str, Link]:
    """Return the links to these nodes, which were up and whose ports refuse."""
    return {each: Link(node(each), suspected=True, over=True) for each in names}


def after_follow(links: dict[str, Link], silent: bool = True) -> str:
    """Return the nodes that a follows in a world of six."""
    kept = followed({node(each): link for each, link in links.items()}, SIX, node("a"), silent)
    assert all(kept[node(each)] is link for each, link in links.items() if node(each) in kept and not link.over)
    return " ".join(sorted(map(name, kept)))


def test_links_move_on_from_dead_nodes_while_the_store_is_silent_until_all_are_known() -> None:
    assert after_follow({}) == "b c d"
    assert after_follow(gone("b")) == "b c d e"
    assert after_follow(gone("b", "d")) == "b c d e f"
    assert after_follow(gone("b", "c", "d", "e", "f")) == "b c d e f"
    assert after_follow({**gone("c", "d"), "b": silenced(Refused(), Refused())[0]}) == "b c d e f"


def test_links_stay_with_their_neighbours_while_the_store_answers() -> None:
    assert after_follow(gone("b", "d"), silent=False) == "b c d"
    assert after_follow({**gone("b"), "e": Link(node("e"), up=True)}, silent=False) == "b c d"


def test_what_a_link_knows_is_kept_and_a_node_that_said_goodbye_is_asked_again_in_a_silence() -> None:
    dead, parted = gone("b")["b"], Link(B, over=True)
    assert followed({B: dead}, SIX, node("a"), silent=True)[B] is dead
    assert followed({B: parted}, SIX, node("a"), silent=True)[B] == Link(B)
    assert followed({B: parted}, SIX, node("a"), silent=False)[B] is parted


def test_a_dead_node_that_has_lost_its_seat_is_followed_no_longer() -> None:
    assert node("z") not in followed({node("z"): gone("z")["z"]}, SIX, node("a"), silent=True)


# --- when evidence counts


def told(held: Held, *says: Says, about: str = "b", beaten_at: float | None = 10.0, now: float = 10.0) -> Held:
    for each in says:
        held = told_by_link(held, node(about), each, beaten_at, now)
    return held


A_HOLDS = holding("a", ABC)


def are_dead(held: Held, now: float = 10.0) -> str:
    return " ".join(sorted(map(name, dead(held, now))))


def test_evidence_makes_a_node_dead_at_once_and_suspicion_alone_does_not() -> None:
    assert [are_dead(told(A_HOLDS, SUSPECT)), are_dead(told(A_HOLDS, SUSPECT, GONE))] == ["", "b"]
    assert are_dead(told(A_HOLDS, SUSPECT, now=0.0), 0.0) == ""


@pytest.mark.parametrize("says", [(REFUSES,), (SUSPECT, REFUSES)])
def test_a_port_that_refuses_in_a_silence_evicts_nobody(says: tuple[Says, ...]) -> None:
    assert are_dead(told(but(A_HOLDS, silent_since=5.0), *says)) == ""


def test_who_answers_is_no_suspect_any_longer() -> None:
    assert are_dead(told(A_HOLDS, SUSPECT, GONE, ANSWERS)) == are_dead(told(A_HOLDS, SUSPECT, ANSWERS, GONE)) == ""


def test_evidence_counts_while_my_own_heartbeat_was_acknowledged_within_two_intervals() -> None:
    held = told(A_HOLDS, SUSPECT, GONE, beaten_at=8.0)
    assert [are_dead(held, 10.0), are_dead(held, 10.01)] == ["b", ""]
    assert are_dead(told(A_HOLDS, SUSPECT, GONE, beaten_at=None)) == ""
    slow = but(A_HOLDS, settings=evolve(A_HOLDS.who.settings, keep_alive_interval=3.0))
    held = told(slow, SUSPECT, GONE, beaten_at=4.0)
    assert [are_dead(held, 10.0), are_dead(held, 10.01)] == ["b", ""]


def test_evidence_counts_only_for_a_node_with_a_seat() -> None:
    assert are_dead(told(holding("z", ABC), SUSPECT, GONE)) == ""


def test_evidence_counts_not_against_a_node_without_a_port_nor_one_that_has_left() -> None:
    seat = ABC.seats[B]
    for port, counts in ((0, ""), (1, "b")):
        seats = {**ABC.seats, B: evolve(seat, profile=evolve(seat.profile, link_port=port))}
        assert are_dead(told(holding("a", evolve(ABC, seats=seats)), SUSPECT, GONE)) == counts
    left = edited(edited(ABC, "b", Done(0)), "b", Leave())
    assert are_dead(told(holding("a", left), SUSPECT, GONE)) == ""


def test_evidence_against_nobody_or_without_a_register_says_nothing() -> None:
    assert are_dead(told(A_HOLDS, SUSPECT, GONE, about="z")) == ""
    assert are_dead(told(holding("a", None), SUSPECT, GONE)) == ""


def test_a_change_of_its_seat_is_a_sign_of_life() -> None:
    held = told(A_HOLDS, SUSPECT)
    assert are_dead(told(saw(held, edited(ABC, "b", Done(0)), 10, 10), GONE)) == ""
    assert are_dead(told(saw(held, edited(ABC, "c", Done(0)), 10, 10), GONE)) == "b"


def test_who_lost_its_seat_is_no_suspect_when_it_returns() -> None:
    gone = edited(ABC, "a", Evict(nodes("b")))
    held = saw(told(A_HOLDS, SUSPECT, GONE), gone, 10, 10)
    assert held.view.suspects == {}


def read(held: Held, counter: int | None, sent_at: float) -> Held:
    return heard(held, {B: counter}, sent_at, sent_at)


def test_a_heartbeat_that_moves_between_two_reads_since_the_link_ended_is_a_sign_of_life() -> None:
    held = told(read(A_HOLDS, 1, 9), SUSPECT)
    assert are_dead(told(read(read(held, 2, 10), 3, 11), GONE, beaten_at=11), 11) == ""


def test_a_heartbeat_from_before_the_end_of_the_link_is_none() -> None:
    held = told(read(A_HOLDS, 1, 9), SUSPECT)
    assert are_dead(told(read(held, 2, 10), GONE), 10) == "b"
    assert are_dead(told(read(read(held, 2, 10), 2, 11), GONE, beaten_at=11), 11) == "b"
    assert are_dead(told(read(read(held, 2, 9.5), 3, 11), GONE, beaten_at=11), 11) == "b"  # asked before that
    assert are_dead(told(read(read(held, 2, 10), None, 11), GONE, beaten_at=11), 11) == "b"  # gone from the store


def test_what_others_heartbeats_do_says_nothing() -> None:
    held = told(read(A_HOLDS, 1, 9), SUSPECT)
    for counter in (1, 2):
        held = heard(held, {node("c"): counter}, 10 + counter, 10 + counter)
    assert are_dead(told(held, GONE, beaten_at=12), 12) == "b"


def test_who_wakes_has_no_suspects() -> None:
    assert woke(told(A_HOLDS, SUSPECT, GONE), 10).view.suspects == {}


def test_who_adopts_another_life_has_no_suspects() -> None:
    found = evolve(ABC, life=Life("found", 2), version=ABC.version + 1, completed_in=Life("found", 2))
    held = saw(told(A_HOLDS, SUSPECT, GONE), found, 10, 10)
    assert (held.view.state, held.view.suspects, held.past.returns) == (found, {}, False)


# --- what follows


def test_evidence_evicts_without_patience_also_by_a_node_that_is_no_coordinator() -> None:
    held = told(holding("c", ABC, ran=0), SUSPECT, GONE)
    assert action(watch, held, 10.0) == Evict(nodes("b"))
    assert isinstance(action(watch, told(holding("c", ABC, ran=0), SUSPECT), 10.0), Sync)


def test_evidence_evicts_in_an_open_round_too() -> None:
    state = linked(arrived(register("3:5"), "a b"))
    assert action(join, told(holding("a", state), SUSPECT, GONE), 10.0) == Evict(nodes("b"))


def test_a_node_reads_the_heartbeats_of_its_suspects_beside_the_coordinators() -> None:
    watches = begin(watch, A_HOLDS.who.settings, 10.0, 0.0)
    quiet = heard(holding("c", ABC, ran=0), {node("a"): 1}, 10, 10)
    assert isinstance(turn(watches, quiet, 10.0), Wait)
    assert turn(watches, told(quiet, SUSPECT), 10.0) == Observe((node("a"), B))
    assert turn(watches, told(quiet, SUSPECT, about="a"), 10.0) == Wait(quiet.token, 11.0)


def test_a_node_that_lost_its_seat_returns_without_a_port() -> None:
    mine = evolve(profile("b"), link_port=7)
    held = introduced(holding("b", ABC), mine)
    assert action(join, introduced(holding("z", ABC), mine)) == Arrive(mine)
    evicted = saw(held, edited(ABC, "a", Evict(nodes("b"))), 1, 1)
    assert action(join, evicted) == Arrive(evolve(mine, link_port=0))
    again = saw(evicted, edited(evicted.view.state, "b", Arrive(evolve(mine, link_port=0))), 2, 2)  # type: ignore[arg-type]
    assert again.past.returns


def test_a_node_that_had_no_seat_arrives_with_its_port_whatever_it_was_shown() -> None:
    mine = evolve(profile("z"), link_port=7)
    shown = saw(introduced(holding("z", ABC), mine), edited(ABC, "a", Evict(nodes("b"))), 1, 1)
    assert action(join, shown) == Arrive(mine)


def test_a_node_whose_arrival_may_have_landed_returns_without_a_port_too() -> None:
    fresh = introduced(holding("b", None), evolve(profile("b"), link_port=7))
    unsure = unanswered(fresh, None, 0.0)
    assert saw(unsure, linked(arrived(register("3:5"), "a")), 1, 1).past.returns
    assert not saw(unsure, linked(arrived(register("3:5"), "a b")), 1, 1).past.returns
    assert not saw(fresh, linked(arrived(register("3:5"), "a")), 1, 1).past.returns


# --- the client


def watching(who: str = "a") -> Client:
    held = heard(holding(who, ABC, ran=0), {node("b"): 1, node("c"): 1}, 10, 10)
    return Client(held, Agenda((), begin(watch, held.who.settings, 10.0, 0.0), watching=True))


def test_evidence_that_comes_while_nothing_is_asked_is_acted_upon_at_once() -> None:
    client, ask, _ = step(watching(), Linked(B, SUSPECT, 10.0), 10.0)
    assert isinstance(ask, Wait)
    client, ask, _ = step(client, Linked(B, GONE, 10.0), 10.02)
    assert isinstance(ask, Write)
    assert ask.edit == Evict(nodes("b"))


def test_evidence_that_comes_while_a_question_is_out_counts_after_its_answer() -> None:
    client, ask, _ = step(watching(), Linked(B, SUSPECT, 10.0), 10.0)
    client, ask, _ = step(client, Passed(), 11.0)
    assert isinstance(ask, Observe)
    client, ask, _ = step(client, Linked(B, GONE, 10.5), 11.0)
    assert ask is None
    client, ask, _ = step(client, Heartbeats({B: 1, node("c"): 2}, LIFE), 11.0)
    assert isinstance(ask, Write)
    assert ask.edit == Evict(nodes("b"))


def test_a_member_that_has_left_keeps_no_node_whose_other_peers_are_dead() -> None:
    left = edited(edited(running("a b c"), "b", Done(0)), "b", Leave())
    held = but(holding("a", left, ran=0), suspects={node("c"): Suspect(1.0, is_gone=True)}, still_since=0.0)
    assert stranded(held, held.who.settings.join_timeout) == (node("c"),)
