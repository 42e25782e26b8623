"""Restart inside the process with torch.distributed: who waits in a collective comes back, and meets in a new group."""

from __future__ import annotations

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
