"""A node with a check joins when the check finds it fit: before its first round, and after a failure that began on it."""

from __future__ import annotations

import pytest
from groups import CHECKED, FAIL, FIT, RUN, commands, exited, led, over
from worlds import node

from elastic.core.group import Phase, transition
from elastic.core.group.state import Check, Checked, Gone, Join, Leave, Over, Reaped, RecordUnfit, Refused, Unstartable
from elastic.core.world import Node, Why

FAILED = led(FIT, *FAIL, exited(1, -15), settings=CHECKED)


def told(by: Node | None) -> Over:
    return Over(0, Why.FAILED if by else None, by, 2.0)


@pytest.mark.parametrize(("by", "then"), [("a", Check()), (None, Check()), ("b", Join())])
@pytest.mark.parametrize("late", [False, True])
def test_only_a_node_whose_failure_ended_the_round_is_checked_again(
    by: str | None, then: Check | Join, late: bool
) -> None:
    word, dead = told(node(by) if by else None), Reaped(3.0)
    assert commands(FAILED, *((dead, word) if late else (word, dead))) == (then,)


def test_a_failure_elsewhere_and_one_without_a_check_need_no_word() -> None:
    assert (
        commands(led(FIT, *FAIL[:-1], settings=CHECKED), over(), exited(0, -15), exited(1, -15), Reaped(2.0))[-1]
        == Join()
    )
    assert commands(led(*FAIL, exited(1, -15)), Reaped(2.0)) == (Join(),)


@pytest.mark.parametrize(("by", "then"), [("a", Check()), ("b", Join())])
def test_a_node_whose_workers_cannot_start_is_checked_before_it_joins_again(by: str, then: Check | Join) -> None:
    lacking = led(FIT, *RUN, Unstartable("no memory", 1.0, passes=True), settings=CHECKED)
    assert commands(lacking, Reaped(1.0), told(node(by))) == commands(lacking, told(node(by)), Reaped(1.0)) == (then,)


def test_an_unfit_node_says_why_leaves_and_ends_refused() -> None:
    group, words = transition(led(settings=CHECKED), Checked(False, "no memory", 1.0))
    assert words == (RecordUnfit("no memory"), Leave()) and group.until == 1.0 + CHECKED.leave_timeout
    assert transition(group, Gone(2.0))[0].outcome == Refused(Why.UNFIT, "no memory", 1.0)


def test_while_the_check_runs_the_end_of_an_old_round_is_no_answer() -> None:
    group = led(settings=CHECKED)
    assert transition(group, told(node("b"))) == (group, ()) and group.phase is Phase.CHECKING
