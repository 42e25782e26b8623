"""What `elastic stacks` prints: equal stacks in one line, the odd ones last, and who has not answered."""

from __future__ import annotations

from attrs import evolve
from worlds import node, running

from elastic.adapters.store.queries import Query, Reply
from elastic.cli.render.stacks import PLACES_SHOWN, Answered, data, lines
from elastic.core.world import Stacks

ID = "0" * 16
STATE = running("a b c d")


def answered(*stacks: Stacks, rank: int | None = None, text: str = "") -> Answered:
    replies = {each.node: Reply(ID, each, text) for each in stacks}
    return Answered("job", "store", STATE, Query(ID, 0, rank), replies)


MANY = Stacks(node("a"), 0, tuple((rank, "in all_reduce (t.py:1 in step)") for rank in range(12)))
ODD = Stacks(node("b"), 0, ((12, "in recv (d.py:4 in __next__)"), (13, "in all_reduce (t.py:1 in step)")))


def test_the_odd_ones_come_last_with_their_nodes_then_those_without_workers_and_those_without_an_answer() -> None:
    assert lines(answered(MANY, ODD, Stacks(node("c"), 0))) == [
        "13 ranks in all_reduce (t.py:1 in step)",
        "rank 12 in recv (d.py:4 in __next__) · b",
        "no workers: c",
        "no answer: d",
    ]


def test_of_one_worker_all_is_told_that_is_known() -> None:
    assert lines(answered(ODD, rank=12, text="one\n\ntwo"))[-5:] == ["", "rank 12:", "one", "", "two"]
    assert lines(answered(ODD, rank=17))[-2:] == ["", "rank 17: nobody has told of it"]


def test_of_very_many_places_the_rest_is_counted() -> None:
    far = Stacks(node("a"), 0, tuple((rank, f"at t.py:{rank} in step") for rank in range(PLACES_SHOWN + 5)))
    told = lines(answered(far))
    assert len(told) == PLACES_SHOWN + 2 and told[-2] == "5 ranks in 5 other places (--json has all)"


def test_programs_are_told_the_same() -> None:
    told = data(answered(ODD, Stacks(node("c"), 0), text="all"))
    assert (told["format"], told["round"], told["full"]) == (1, 0, "all")
    assert [each["ranks"] for each in told["stacks"]] == [[12], [13]]
    assert [(each["host"], each["answered"], each["ranks"]) for each in told["nodes"]] == [
        ("a", False, []),
        ("b", True, [12, 13]),
        ("c", True, []),
        ("d", False, []),
    ]
    assert data(evolve(answered(ODD), replies={}))["full"] is None
