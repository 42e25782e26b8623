"""What stands against a drain: the reasons that --force overrides."""

from __future__ import annotations

import pytest
from attrs import evolve
from worlds import node, running

from elastic.cli.drain import _reasons_against
from elastic.cli.render.job import Job, data, lines
from elastic.core.rendezvous import RendezvousState

NEEDED = "the job needs the node"
SERVES = "its agent serves the store"


def served_by_a(names: str, limits: str) -> RendezvousState:
    state = running(names, limits)
    seat = state.seats[node("a")]
    return evolve(
        state,
        seats={**state.seats, node("a"): evolve(seat, profile=evolve(seat.profile, serves_store=True))},
    )


@pytest.mark.parametrize(
    ("names", "limits", "name", "reasons"),
    [
        ("a b c", "1:3", "b", []),
        ("a b c", "1:3", "a", [SERVES]),
        ("a b c", "3:3", "b", [NEEDED]),
        ("a b c", "3:3", "a", [NEEDED, SERVES]),
        ("a", "1:1", "a", [NEEDED]),
    ],
)
def test_each_reason_is_named(names: str, limits: str, name: str, reasons: list[str]) -> None:
    """A node alone serves nobody else."""
    told = _reasons_against(served_by_a(names, limits), node(name))
    assert [each[: len(reason)] for each, reason in zip(told, reasons, strict=True)] == reasons


def test_a_status_names_the_node_that_serves_the_store() -> None:
    state = served_by_a("a b", "1:3")
    job = Job("job", "store", state)
    assert [each["serves_store"] for each in data(job, state)["nodes"]] == [True, False]
    told = {line.split()[0]: line for line in lines(job, state) if line.startswith(("a ", "b "))}
    assert "running, serves the store" in told["a"] and "serves" not in told["b"]
