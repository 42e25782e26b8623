"""The agent is kept from the out-of-memory killer, and what it starts is not: on a made file, and on the kernel's own."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest
from processes import comes_true

from elastic.adapters.workers.watch.oom_score import Protection

REAL = """
import subprocess
from elastic.adapters.workers.watch.oom_score import Protection

def child():
    return int(subprocess.run(["cat", "/proc/self/oom_score_adj"], stdout=subprocess.PIPE, check=True).stdout)

protection = Protection()
protection.begin()
inside = child()
with protection.lifted(), protection.lifted():
    lifted = child()
after = child()
protection.end()
print(inside in (-1000, 0), lifted, after == inside, child())
"""


def test_what_is_started_while_it_is_lifted_has_the_score_of_before() -> None:
    begin = 'echo 300 >/proc/self/oom_score_adj; exec "$@"'
    run = subprocess.run(
        ["sh", "-c", begin, "sh", sys.executable, "-c", REAL], capture_output=True, text=True, check=True
    )
    assert run.stdout == "True 300 True 300\n"


@pytest.fixture
def score(tmp_path: Path) -> Path:
    (tmp_path / "score").write_text("7\n")
    return tmp_path / "score"


def test_the_least_score_that_may_be_had_is_taken_and_given_back(score: Path) -> None:
    protection = Protection(score)
    protection.begin()
    assert score.read_text() == "-1000\n"
    with protection.lifted():
        assert score.read_text() == "7\n"
    assert score.read_text() == "-1000\n"
    protection.end()
    protection.end()
    assert score.read_text() == "7\n"


def test_what_is_started_after_a_lift_within_a_lift_has_the_score_of_before_too(score: Path) -> None:
    protection = Protection(score)
    protection.begin()
    with protection.lifted():
        with protection.lifted():
            pass
        assert score.read_text() == "7\n"
    assert score.read_text() == "-1000\n"


def test_the_start_of_a_reaper_waits_while_another_thread_lifts(score: Path) -> None:
    protection, seen = Protection(score), list[str]()
    protection.begin()

    def starts() -> None:
        with protection.kept():
            seen.append(score.read_text())

    def waits() -> bool:
        stat = Path(f"/proc/self/task/{thread.native_id}/stat")
        return not thread.is_alive() or stat.read_text().rpartition(") ")[2][0] == "S"

    thread = threading.Thread(target=starts)
    with protection.lifted():
        thread.start()
        assert comes_true(waits)
    thread.join()
    assert seen == ["-1000\n"]


def test_a_score_that_cannot_be_restored_is_not_taken_for_spared(tmp_path: Path, score: Path) -> None:
    made_pod(tmp_path, "1")
    protection = Protection(score)
    protection.begin()
    with protection.lifted():
        score.unlink()
        score.mkdir()
    assert protection.warning(tmp_path / "proc")


def test_a_host_without_scores_has_no_protection(tmp_path: Path) -> None:
    protection = Protection(tmp_path / "none")
    protection.begin()
    with protection.lifted():
        protection.end()
    assert not (tmp_path / "none").exists()


def made_pod(tmp_path: Path, group: str) -> Path:
    """Make a /proc and a /sys; return the cgroup of a pod with this `memory.oom.group`."""
    pod, own = tmp_path / "sys/pod", tmp_path / "proc/self"
    (pod / "main").mkdir(parents=True)
    own.mkdir(parents=True)
    (pod / "memory.oom.group").write_text(f"{group}\n")
    (own / "cgroup").write_text("0::/pod/main\n")
    (own / "mountinfo").write_text(f"30 23 0:26 / {tmp_path}/sys rw - cgroup2 cgroup2 rw\n")
    return pod


@pytest.mark.parametrize(("group", "is_spared", "warns"), [("1", False, True), ("1", True, False), ("0", False, False)])
def test_a_cgroup_that_is_killed_as_one_is_said_where_the_agent_is_not_spared(
    tmp_path: Path, score: Path, group: str, is_spared: bool, warns: bool
) -> None:
    pod = made_pod(tmp_path, group)
    protection = Protection(score)
    if is_spared:
        protection.begin()
    warning = protection.warning(tmp_path / "proc")
    assert warning.startswith(f"{pod}/memory.oom.group is 1: when its memory is used up") if warns else warning == ""
