"""The laws of whole units: what each write and each wait may not do."""

from __future__ import annotations

import pytest
from attrs import evolve
from worlds import arrived, come, edited, holding, node, nodes, register, running

from elastic.core.properties.facts import Decided, Fact, WaitsForever, Wrote
from elastic.core.properties.judge import ASKED, Judge
from elastic.core.properties.law import Strength
from elastic.core.properties.law import findings as found
from elastic.core.rendezvous import Arrive, Complete, Edit, End, Evict, RendezvousState, Restore, Status
from elastic.core.rendezvous.handlers import join
from elastic.core.rendezvous.lives import restored
from elastic.core.world import Why

FIVE = running("a b c d e", "2:6:2", 9)
"""a to d run, e is over the last whole unit."""
SHORT = edited(arrived(edited(FIVE, "a", Evict(nodes("b c"))), "a"), "d", Arrive(holding("d", None).who.profile))
"""a and d, which ran before, and e waits."""


def findings(fact: Fact, judge: Judge | None = None) -> set[str]:
    """Return the laws that this fact breaks, but for those that `verify` judges."""
    return {number for number, _ in found(ASKED[type(fact)], judge or Judge(), fact, Strength())}


def wrote(before: RendezvousState, who: str, edit: Edit) -> Wrote:
    return Wrote(node(who), before, edit, edited(before, who, edit))


def swapped(state: RendezvousState, member: str, spare: str) -> RendezvousState:
    """Return the state with these two in each other's places, though not in each other's seats."""
    one, other = node(member), node(spare)
    seats = {
        **state.seats,
        one: state.seats[one].become(Status.WAITING),
        other: state.seats[other].become(Status.IN),
    }
    return evolve(state, seats=seats)


def test_V23_who_ran_before_is_left_out_for_a_newcomer() -> None:
    judge, before = Judge(stayed=nodes("a d")), arrived(edited(FIVE, "a", Evict(nodes("b c"))), "a")
    fact = Wrote(node("d"), before, Arrive(holding("d", None).who.profile), SHORT)
    assert findings(fact, judge) == set()
    assert findings(evolve(fact, after=swapped(SHORT, "d", "e")), judge) == {"V23"}


def test_V23_says_nothing_of_who_had_lost_its_seat() -> None:
    """b has come again with the last number: it is no member that stayed."""
    judge, state = Judge(), arrived(register("2:6:2", 9), "a b c d")
    facts = [wrote(state, "a", Complete(0))]
    facts.append(wrote(facts[-1].after, "a", Evict(nodes("b"))))
    facts.append(wrote(facts[-1].after, "e", Arrive(holding("e", None).who.profile)))
    facts.append(wrote(facts[-1].after, "b", Arrive(holding("b", None).who.profile)))
    for fact in facts:
        judge.saw(fact)
    assert judge.stayed == nodes("a c d")


def test_nobody_has_stayed_in_an_open_round_that_is_restored() -> None:
    judge, opened = Judge(), edited(FIVE, "a", Evict(nodes("b")))
    judge.saw(wrote(FIVE, "a", Evict(nodes("b"))))
    judge.saw(wrote(opened, "a", Arrive(holding("a", None).who.profile)))
    judge.stayed = frozenset(nodes("a c"))
    deed = Restore(opened, "again")
    judge.saw(Wrote(node("a"), None, deed, restored(deed, None)))
    assert judge.stayed == frozenset()
    judge.saw(wrote(FIVE, "f", Arrive(holding("f", None).who.profile)))
    assert judge.stayed == nodes("a b c d")


@pytest.mark.parametrize(("spares", "wrong"), [("", True), ("f", False)])
def test_O4_a_round_ends_for_newcomers_only_if_they_make_a_unit(spares: str, wrong: bool) -> None:
    state = arrived(FIVE, spares)
    fact = Decided(holding("a", state), End(0, Why.UPSCALE), 1e6)
    told = {text for number, text in found(ASKED[Decided], Judge(), fact, Strength()) if number == "O4"}
    assert any("make no unit" in text for text in told) is wrong


def test_L6_a_node_that_makes_a_unit_with_others_is_no_spare() -> None:
    lonely = WaitsForever(holding("e", FIVE), join)
    assert findings(lonely) == set()
    both = arrived(FIVE, "f")
    assert findings(WaitsForever(holding("e", both), join)) == {"L6"}
    hidden = evolve(both)
    hidden.memo.update(wait_list=(), redundancy_list=(node("e"), node("f")))
    assert findings(WaitsForever(holding("e", hidden), join)) == {"L6"}


def test_V6_the_participants_over_the_last_unit_count_towards_the_target() -> None:
    before = arrived(edited(running("a b c d", "2:6:2", 9), "a", Evict(nodes("b"))), "a c")
    assert findings(wrote(before, "d", Arrive(holding("d", None).who.profile))) == set()


# --- segments

RACKED = come(register("2:4:2", 9, "rack"), "abde")
"""a and b run in rack 1, d and e in rack 2."""


def left_out(for_whom: str) -> Wrote:
    """Return the write that completes the world after b is lost. These spares have the places of a and c in it."""
    before = come(edited(come(RACKED, "cgh"), "a", Evict(nodes("b"))), "ad")
    fact = Wrote(node("e"), before, Arrive(before.seats[node("e")].profile), come(before, "e"))
    for old, new in zip("ac", for_whom, strict=False):
        fact = evolve(fact, after=swapped(fact.after, old, new))
    return fact


def test_V23_a_segment_that_ran_and_is_whole_is_left_out_for_another_one() -> None:
    judge = Judge(stayed=nodes("a d e"))
    assert findings(left_out(""), judge) == set()
    assert "V23" in findings(left_out("gh"), judge)


def test_V23_a_node_that_ran_is_left_out_for_another_one_of_its_rack() -> None:
    judge, fact = Judge(stayed=nodes("a d e")), left_out("")
    others = evolve(fact.after.seats[node("g")], status=Status.IN, profile=fact.after.seats[node("a")].profile)
    after = evolve(swapped(fact.after, "a", "g"), seats={**swapped(fact.after, "a", "g").seats, node("g"): others})
    assert "V23" in findings(evolve(fact, after=after), judge)


def test_V23_a_rack_that_is_whole_no_longer_may_be_left_out_for_another_one() -> None:
    before = come(edited(come(RACKED, "gh"), "a", Evict(nodes("b"))), "ad")
    fact = Wrote(node("e"), before, Arrive(before.seats[node("e")].profile), come(before, "e"))
    assert [each.slot for each in fact.after.members] == ["d", "e", "g", "h"]
    assert findings(fact, Judge(stayed=nodes("a d e"))) == set()


@pytest.mark.parametrize(("spares", "wrong"), [("cg", True), ("cgh", False), ("cf", True), ("cx", True)])
def test_O4_a_round_ends_for_newcomers_only_if_they_make_a_segment(spares: str, wrong: bool) -> None:
    wide = edited(come(register("2:6:2", 9, "rack"), "abde"), "a", Complete(0))
    fact = Decided(holding("a", come(wide, spares)), End(0, Why.UPSCALE), 1e6)
    told = {text for number, text in found(ASKED[Decided], Judge(), fact, Strength()) if number == "O4"}
    assert any("make no unit" in text for text in told) is wrong
