"""Wrapped functions on the ranks of several agents: who is active, and who takes over for whom."""

from __future__ import annotations

import pytest
from jobs import Jobs
from launches import PROGRAMS, Launch

PLACED = PROGRAMS / "placed.py"


def hear(*agents: Launch, count: int) -> list[str]:
    """Return what the workers of all these agents tell next, `count` of each."""
    return sorted(f"{told.rank} {told.words}" for agent in agents for told in agent.hears(count))


@pytest.mark.parametrize(
    ("job", "group", "options"),
    [
        ("tcpstore", "rack", ("--labels=rack=r1,row=a", "--labels=rack=r2,row=a")),
        ("etcd", "role", ("--role=trainer", "--role=actor")),
    ],
    indirect=["job"],
)
def test_a_reserve_takes_over_in_its_own_rack_or_role_on_another_node(
    job: Jobs, group: str, options: tuple[str, str]
) -> None:
    made = job("3", "--restart-scope=rank", "--max-restarts=1")
    one = made.node("a", options[0], program=(PLACED, group))
    made.reaches(lambda state: len(state.seats) == 1)
    two = made.node("b", options[0], program=(PLACED, group))
    made.reaches(lambda state: len(state.seats) == 2)
    three = made.node("c", options[1], program=(PLACED, group))
    began = hear(one, two, three, count=1)
    assert began == ["0 in 0 of 2 as 0", "1 reserve in 0", "2 in 0 of 2 as 1"]
    one.open_gate()
    assert hear(two, three, count=1) == ["1 in 1 of 2 as 0", "2 in 1 of 2 as 1"]
    assert hear(two, three, count=1) == ["1 returned 1 in 1", "2 returned 2 in 1"]
    one.open_gate(1)
    assert hear(one, count=1) == ["0 returned None"]
    assert [agent.ends().code for agent in (one, two, three)] == [0, 0, 0]
