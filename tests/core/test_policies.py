"""Rank policies: active members and ranks. Names are slots: 0, 1, 2 …, two on each host, four in each rack."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from worlds import LIFE

from elastic.core.policies import (
    Layer,
    LineUp,
    Place,
    Placing,
    Policy,
    at_most,
    by,
    by_host,
    by_label,
    by_role,
    chain,
    count_at_least,
    count_is,
    count_multiple_of,
    digest,
    fill_gaps,
    filter_groups,
    multiple_of,
    place,
    shift,
    tree,
)
from elastic.core.world import Endpoint, Member, Node, Profile, World, WorldId, came_later, world_of


def member(slot: str) -> Member:
    number = int(slot) if slot.isdecimal() else 0
    labels = (("rack", f"r{number // 4}"),) if number < 8 else ()
    profile = Profile(Endpoint("h", 1), role="odd" if number % 2 else "even", host=f"h{number // 2}", labels=labels)
    return Member(Node(slot, 1), profile)


def world(slots: str) -> World:
    """Return a world of these slots, in the order of arrival."""
    return world_of(WorldId(LIFE, 0), tuple(map(member, slots.split())))


def lined_up(policy: Policy, slots: str) -> str:
    """Return the slots by rank, with the reserves behind a bar."""
    places = place(policy, world(slots)).places
    by_rank = sorted(places, key=lambda node: places[node].rank)
    assert [places[node].rank for node in by_rank] == list(range(len(by_rank)))
    active = [node.slot for node in by_rank if places[node].active]
    reserves = [node.slot for node in by_rank if not places[node].active]
    assert [node.slot for node in by_rank] == active + reserves
    return " ".join(active) + (" | " + " ".join(reserves) if reserves else "")


def test_without_a_policy_ranks_are_by_arrival() -> None:
    assert lined_up(chain(), "2 0 1") == "2 0 1"


def test_shift_goes_by_slot_whatever_the_order_of_arrival() -> None:
    assert lined_up(shift(), "10 2 0") == "0 2 10"
    assert lined_up(shift(), "x 2 a 0") == "0 2 x a"


@pytest.mark.parametrize(
    ("slots", "ranks"),
    [
        ("0 1 2 3", "0 1 2 3"),
        ("3 0 2", "0 3 2"),
        ("4 5 0 2 3", "0 5 2 3 4"),
        ("0 2 3 4 5", "0 5 2 3 4"),
        ("x 0 2", "0 x 2"),
    ],
)
def test_fill_gaps_keeps_every_rank_that_it_can(slots: str, ranks: str) -> None:
    assert lined_up(fill_gaps(), slots) == ranks


def test_ranks_of_nodes_that_came_later_follow_by_the_round_in_which_they_came() -> None:
    assert [came_later(2, 3), came_later(2, 10)] == ["2+3", "2+10"]
    assert lined_up(shift(), "x 2+10 3+3 2+3 0") == "0 2+3 3+3 2+10 x"
    assert lined_up(shift(), "+3 2+x 1 0+") == "0+ 1 +3 2+x"


def test_they_fill_the_gap_of_their_number_unless_another_has_it() -> None:
    assert lined_up(fill_gaps(), "0 3 2+3 1+4") == "0 1+4 2+3 3"
    assert lined_up(fill_gaps(), "0 1 2 1+4") == "0 1 2 1+4"
    assert lined_up(fill_gaps(), "0 1+3 1+5 7") == "0 1+3 7 1+5"


def test_a_gap_is_filled_from_the_reserves() -> None:
    assert lined_up(chain(fill_gaps(), at_most(4)), "0 1 2 3 4 5") == "0 1 2 3 | 4 5"
    assert lined_up(chain(fill_gaps(), at_most(4)), "0 2 3 4 5") == "0 5 2 3 | 4"


def test_at_most_and_multiple_of_cut_the_end_off() -> None:
    assert lined_up(at_most(2), "0 1 2") == "0 1 | 2"
    assert lined_up(at_most(8), "0 1 2") == "0 1 2"
    assert lined_up(multiple_of(4), "0 1 2 3 4 5") == "0 1 2 3 | 4 5"
    assert lined_up(multiple_of(4), "0 1 2") == " | 0 1 2"


def test_policies_compose_and_reserves_stay_reserves() -> None:
    assert lined_up(chain(shift(), at_most(3), multiple_of(2), shift()), "4 3 2 1 0") == "0 1 | 2 3 4"


def test_groups_that_do_not_meet_the_condition_are_reserves() -> None:
    assert lined_up(filter_groups(by_host(), count_is(2)), "0 1 2 4 5") == "0 1 4 5 | 2"
    assert lined_up(filter_groups(by_role(), count_at_least(3)), "0 1 2 4 5") == "0 2 4 | 1 5"
    assert lined_up(filter_groups(by_label("rack"), count_multiple_of(4)), "0 1 2 3 4 8 9") == "0 1 2 3 | 4 8 9"
    assert lined_up(filter_groups(by(lambda each: each.node.slot[-1]), count_is(2)), "0 10 1") == "0 10 | 1"


def test_the_members_of_a_group_that_is_left_out_stand_before_those_that_were_reserves_already() -> None:
    assert lined_up(chain(at_most(5), filter_groups(by_host(), count_is(2))), "0 1 2 4 5 6 7") == "0 1 4 5 | 2 6 7"


def test_a_branch_has_its_own_reserves() -> None:
    hosts = tree(Layer(by_host(), at_most=1))
    assert lined_up(hosts, "0 1 2 3") == "0 2 | 1 3"
    assert lined_up(hosts, "1 2 3") == "1 2 | 3"


def test_a_branch_that_is_too_small_is_no_longer_active() -> None:
    racks = tree(Layer(by_label("rack")), Layer(by_host(), at_least=2))
    assert lined_up(racks, "0 1 2 4 5 6 7") == "0 1 4 5 6 7 | 2"


def test_a_branch_is_back_filled_from_the_smallest() -> None:
    hosts = tree(Layer(by_host(), at_least=2, at_most=2, back_fill=True))
    assert lined_up(hosts, "0 1 2 4 5") == "0 1 4 5 | 2"
    assert lined_up(hosts, "0 1 2 4") == "0 1 2 4"
    assert lined_up(hosts, "0") == " | 0"
    threes = tree(Layer(by_host(), at_least=3, at_most=3, back_fill=True))
    assert lined_up(threes, "0 1") == " | 0 1"


def test_a_condition_is_of_the_number_alone() -> None:
    assert [count for count in range(998, 1_003) if count_is(1_000).holds(count)] == [1_000]
    assert [count for count in range(998, 1_003) if count_at_least(1_000).holds(count)] == [1_000, 1_001, 1_002]


def test_a_group_may_be_any_multiple() -> None:
    assert [count for count in range(1, 9) if count_multiple_of(2).holds(count)] == [2, 4, 6, 8]


def test_branches_that_miss_several_are_filled_up_to_what_they_need_and_no_further() -> None:
    racks = tree(Layer(by_label("rack"), at_least=3, back_fill=True), Layer(by_host(), at_most=1))
    assert lined_up(racks, "0 4 5 6 7 8 9 10 11 12 13") == "0 7 9 4 6 5 8 10 12 | 11 13"


def test_a_branch_is_topped_up_when_it_may_be() -> None:
    racks = tree(Layer(by_label("rack"), at_most=4, back_fill=True), Layer(by_host(), at_most=2))
    assert lined_up(racks, "0 1 2 3 4 5 8 9 10 11 12") == "0 1 2 3 4 5 12 8 9 10 11"
    assert lined_up(racks, "0 4 5 6 7 8 9 10 11 12 13 14") == "0 12 13 14 4 5 6 7 8 9 10 11"
    halves = tree(Layer(by_label("rack"), at_most=4, back_fill=True), Layer(by_host(), at_most=1))
    assert lined_up(halves, "0 1 2 3 8 9 10 11 12 13") == "0 2 1 3 8 10 12 9 | 11 13"
    unbounded = tree(Layer(by_host(), at_least=2, back_fill=True))
    assert lined_up(unbounded, "0 1 2 4") == "0 1 2 4"


def test_a_tree_leaves_earlier_reserves_alone() -> None:
    assert lined_up(chain(at_most(2), tree(Layer(by_host(), at_least=2))), "0 1 2") == "0 1 | 2"


def test_a_placing_tells_the_sizes() -> None:
    placing = place(at_most(2), world("0 1 2"))
    assert (placing.world_size, placing.active_world_size) == (3, 2)


def test_the_digest_tells_policies_and_results_apart() -> None:
    def told(policy: Policy, slots: str) -> str:
        return digest(policy, place(policy, world(slots)))

    assert told(at_most(2), "0 1 2") == told(at_most(2), "0 1 2")
    assert re.fullmatch("[0-9a-f]{16}", told(chain(), "0 1"))
    assert len({told(at_most(2), "0 1"), told(at_most(3), "0 1"), told(shift(), "0 1"), told(at_most(2), "1 0")}) == 4


def test_the_digest_tells_who_is_active() -> None:
    first, second = (Node(slot, 1) for slot in "01")
    ranks = {first: Place(0, active=True)}
    both = Placing({**ranks, second: Place(1, active=True)}, 2)
    assert digest(chain(), both) != digest(chain(), Placing({**ranks, second: Place(1, active=False)}, 1))


def test_members_that_are_cut_come_before_earlier_reserves() -> None:
    assert lined_up(chain(at_most(3), at_most(1)), "0 1 2 3") == "0 | 1 2 3"


def test_gaps_are_filled_by_slot_whatever_the_order_of_arrival() -> None:
    assert lined_up(fill_gaps(), "9 7 1 8") == "7 1 8 9"


def test_a_name_tells_the_parameters() -> None:
    assert chain().name == "by arrival"
    layers = Layer(by_label("rack"), 2, 4, back_fill=True), Layer(by_host())
    assert chain(fill_gaps(), at_most(4)).name == "fill gaps + at most 4"
    assert tree(*layers).name == "tree of label rack 2..4 back-filled, host 1.."
    assert filter_groups(by_host(), count_is(8)).name == "groups by host = 8"


@pytest.mark.parametrize(
    ("make", "shown"),
    [
        (lambda: at_most(2), "Policy(name='at most 2')"),
        (by_host, "Key(name='host')"),
        (lambda: count_is(2), "Condition(name='= 2')"),
    ],
)
def test_what_has_one_name_does_the_same_and_shows_its_name_alone(make: Callable[[], object], shown: str) -> None:
    assert make() == make() and hash(make()) == hash(make())
    assert repr(make()) == shown


@pytest.mark.parametrize("kept", [slice(1), slice(1, 2)])
def test_a_policy_that_loses_a_member_is_refused(kept: slice) -> None:
    forgetful = Policy("forgetful", lambda line: LineUp(line.active[kept]))
    with pytest.raises(ValueError, match="forgetful: 1 places for the 2 members of the world"):
        place(forgetful, world("0 1"))


def test_impossible_numbers_are_refused() -> None:
    for wrong in (at_most, multiple_of, count_multiple_of):
        with pytest.raises(ValueError, match=f"{wrong.__name__}: at least 1, not 0"):
            wrong(0)
    with pytest.raises(ValueError, match="at_least: at least 1, not 0"):
        Layer(by_host(), 0)
    with pytest.raises(ValueError, match=r"at_most: 3 \(at_least\) or more, not 2"):
        Layer(by_host(), 3, 2)
