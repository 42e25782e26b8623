"""What the launcher takes from Slurm's environment."""

from __future__ import annotations

from functools import partial

import pytest
from commandlines import settings

from elastic.cli.slurm import place


def test_the_place_of_a_task_is_its_node_then_its_own_number() -> None:
    assert place({"SLURM_NODEID": "3", "SLURM_PROCID": "24"}) == (3, 24)


@pytest.mark.parametrize(
    "environment",
    [{}, {"SLURM_NODEID": "3"}, {"SLURM_PROCID": "3"}, {"SLURM_NODEID": "x", "SLURM_PROCID": "3"},
     {"SLURM_NODEID": "-1", "SLURM_PROCID": "3"}, {"SLURM_NODEID": "1" * 16, "SLURM_PROCID": "²"}],
)  # fmt: skip
def test_whoever_is_no_task_of_slurm_has_no_place(environment: dict[str, str]) -> None:
    assert place(environment) == ()


def test_slurm_orders_the_nodes_unless_the_user_does() -> None:
    with_slurm = partial(settings, {"SLURM_NODEID": "1", "SLURM_PROCID": "1"})
    assert with_slurm("x").place == (1, 1)
    assert with_slurm("--node-rank=0", "x").place == (0,)
