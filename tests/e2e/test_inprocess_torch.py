"""Restart inside the process with torch.distributed: who waits in a collective comes back, and meets in a new group."""

from __future__ import annotations

import re

import pytest
from launches import PROGRAMS, Launcher

PROGRAM = PROGRAMS / "collectives.py"


def test_ranks_blocked_in_gloo_come_back_and_meet_in_a_new_group(launch: Launcher) -> None:
    running = launch("--restart-scope=rank", "--nproc-per-node=3", PROGRAM, "0:1:exception", "1:2:kill")
    first = running.hears(3)
    assert [told.words for told in first] == ["in 0 of 3"] * 3
    second = running.hears(3)
    assert [told.words for told in second] == ["in 1 of 3"] * 3
    assert [told.pid for told in second] == [told.pid for told in first]
    third = running.hears(2)
    assert [(told.rank, told.words) for told in third] == [(0, "in 2 of 2"), (1, "in 2 of 2")]
    assert [told.words for told in running.hears(2)] == ["returned 2.0"] * 2
    assert running.ends().code == 0
    assert len(list(launch.traces.glob("rank_*.ndjson"))) == 3, "for `launch` to replay"


def test_the_rank_that_failed_is_named_first_and_not_one_that_lost_its_peer(launch: Launcher) -> None:
    """It raises, closes its connections too, and is killed at last."""
    running = launch(
        "--restart-scope=rank", "--nproc-per-node=3", PROGRAMS / "echoes.py", *["raises", "closes"] * 2, "dies"
    )
    for iteration in range(1, 5):
        told = [each.words for each in running.hears(3)]
        assert told == [f"in {iteration} after 2 ValueError: the true cause"] * 3
    first = re.compile(r"in 5 after 2 (killed by SIGKILL|its process died)")
    told = [each.words for each in running.hears(2)]
    assert all(first.fullmatch(words) for words in told), told
    ended = running.ends()
    assert ended.code == 0
    begun = re.findall(r"iteration \d begins, world size 3: it went wrong on a rank \((.*)\)", ended.err)
    assert begun == ["rank 2"] * 4
    assert "iteration 5 begins, world size 2: a rank was lost" in ended.err


RANKS = 4
AWAITED = (PROGRAMS / "replaced.py", "2", "replace_wait=60")


@pytest.mark.long
def test_a_killed_rank_is_replaced_by_a_standby_before_the_next_iteration_begins(launch: Launcher) -> None:
    """One interruption, the world as large as before, and the weights of a run without any."""
    running = launch("--restart-scope=rank", "--max-restarts=1", "--standby=1", "--nproc-per-node=4", *AWAITED)
    first = running.hears(RANKS)
    assert [told.words for told in first] == ["in 0 of 4 at 0"] * RANKS
    (standby,) = running.stands_by(1, first)
    running.open_gate()
    assert [told.words for told in running.hears(1)] == ["dies"]
    again = running.hears(RANKS)
    assert [told.words for told in again] == ["in 1 of 4 at 3"] * RANKS
    pids = [told.pid for told in first]
    assert [told.pid for told in again] == [pids[0], pids[1], standby, pids[3]]
    assert [told.words for told in running.hears(RANKS)] == ["returned -24.0"] * RANKS
    ended = running.ends()
    assert ended.code == 0
    assert "1 worker of this node started again alone, 1 restart of wrapped functions" in ended.err


@pytest.mark.long
def test_ranks_that_wait_for_the_store_of_rank_0_come_back_when_it_fails_and_when_it_is_killed(
    launch: Launcher,
) -> None:
    """torch's own client holds a signal for a failed try, and goes on trying for half an hour."""
    running = launch("--restart-scope=rank", "--nproc-per-node=3", PROGRAMS / "connecting.py", "raises", "dies")
    first = running.hears(5)
    assert [told.words for told in first] == ["in 0 of 3", *["in 0 of 3", "waits"] * 2]
    running.open_gate(0)
    second = running.hears(5)
    assert [told.words for told in second] == ["in 1 of 3", *["in 1 of 3", "waits"] * 2]
    assert [told.pid for told in second] == [told.pid for told in first]
    running.open_gate(1)
    third = running.hears(2)
    assert [told.words for told in third] == ["in 2 of 2"] * 2
    assert [told.pid for told in third] == [first[1].pid, first[3].pid]
    assert [told.words for told in running.hears(2)] == ["returned 2"] * 2
    assert running.ends().code == 0
