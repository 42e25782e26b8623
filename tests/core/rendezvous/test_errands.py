"""The errands that a node remembers are few."""

from __future__ import annotations

from elastic.core.rendezvous.errands import ERRANDS_MAX, NONE, Errand, failed, forgotten, moved, next_due, succeeded

HALF = ERRANDS_MAX // 2


def test_a_node_remembers_the_first_errands_and_the_last() -> None:
    errands = NONE
    for number in range(ERRANDS_MAX + 3):
        errands = succeeded(errands, Errand(number))
    assert [each.what for each in errands.done] == [*range(HALF), *range(HALF + 3, ERRANDS_MAX + 3)]


def test_of_the_errands_that_no_store_took_the_last_ones_are_remembered() -> None:
    errands = NONE
    for number in range(ERRANDS_MAX + 3):
        errands = failed(errands, Errand(number))
    assert [each.what for each in errands.missing] == [*range(3, ERRANDS_MAX + 3)]


def test_what_is_given_back_is_in_its_order() -> None:
    errands = failed(succeeded(succeeded(NONE, Errand(1)), Errand(2)), Errand(3))
    due = forgotten(errands).due
    assert [each.what for each in due] == [1, 2, 3]
    first, others = next_due(forgotten(errands))
    assert (first, moved(failed(others, first)).due) == (Errand(1), due)
