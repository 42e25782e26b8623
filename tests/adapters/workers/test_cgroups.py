"""The count of out-of-memory kills is found in trees as kernels show them; e2e/test_death_remarks.py has a real one."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import frozen

from elastic.adapters.workers.cgroups import Counter, Kills, counter, cpu_quota

V2 = "30 23 0:26 / {mount} rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
V1 = "35 31 0:32 / {mount} rw,relatime shared:9 - cgroup cgroup rw,memory\n"


@frozen
class Host:
    """A /proc and a cgroup tree."""

    folder: Path

    def group(self, path: str, **files: str) -> Path:
        folder = self.folder / "cgroup" / path
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name.replace("_", ".", 1)).write_text(text)
        return folder

    def counter(self, groups: str, mount: str = V2, vmstat: str = "") -> Counter | None:
        return counter(self.proc(groups, mount, vmstat))

    def proc(self, groups: str, mount: str = V2, vmstat: str = "") -> Path:
        proc = self.folder / "proc"
        (proc / "self").mkdir(parents=True)
        (proc / "self" / "cgroup").write_text(groups, errors="surrogateescape")
        (proc / "self" / "mountinfo").write_text(mount.format(mount=self.folder / "cgroup"), errors="surrogateescape")
        (proc / "vmstat").write_text(vmstat)
        return proc


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_version_2_counts_in_the_nearest_group_that_accounts_for_memory(host: Host) -> None:
    job = host.group("job", memory_events="low 0\noom 3\noom_kill 2\n", memory_max="2048\n")
    host.group("job/step")
    host.group("", memory_max="1024")
    found = host.counter("0::/job/step\n")
    assert found == Counter(job / "memory.events", True)
    assert found.since(1) == Kills(1, True, 1024)


def test_version_1_counts_in_the_controller_s_own_tree(host: Host) -> None:
    job = host.group("job", memory_oom_control="oom_kill_disable 0\noom_kill 4\n", memory_limit_in_bytes="4096")
    found = host.counter("9:cpu:/x\n4:cpuset,memory:/job\n0::/\n", V1)
    assert found == Counter(job / "memory.oom_control", True)
    assert found.since(3) == Kills(1, True, 4096)
    assert found.since(4) == Kills(0, True)


@pytest.mark.parametrize("limit", ["max", str(2**63 - 4096)])
def test_no_limit_is_none(host: Host, limit: str) -> None:
    host.group("job", memory_events="oom_kill 2\n", memory_max=limit, memory_limit_in_bytes=limit)
    found = host.counter("0::/job\n")
    assert found
    assert found.since(0) == Kills(2, True, None)


def test_a_group_below_the_mount_s_root_is_found_from_there(host: Host) -> None:
    """As in a container that sees its own part of the tree only."""
    inner = host.group("inner", memory_events="oom_kill 0\n")
    found = host.counter("0::/kubepods/pod7/inner\n", V2.replace(" / {", " /kubepods/pod7 {"))
    assert found == Counter(inner / "memory.events", True)


def test_a_mount_or_a_group_whose_name_is_no_utf_8_does_not_hide_the_others(host: Host, tmp_path: Path) -> None:
    job = host.group("job\udcff", memory_events="oom_kill 5\n")
    found = host.counter("0::/job\udcff\n", "31 23 0:27 / /mnt/\udcc3 rw - tmpfs tmpfs rw\n" + V2)
    assert found == Counter(job / "memory.events", True)
    assert found.since(4) == Kills(1, True)


def test_without_a_group_s_count_the_host_s_stands_in_and_without_any_there_is_none(host: Host, tmp_path: Path) -> None:
    found = host.counter("0::/\n", vmstat="pgfault 7\noom_kill 3\n")
    assert found == Counter(tmp_path / "proc" / "vmstat", False)
    assert found.since(1) == Kills(2, False)
    assert counter(tmp_path / "nowhere") is None


def test_a_group_that_is_gone_tells_nothing(host: Host) -> None:
    job = host.group("job", memory_events="oom_kill 2\n")
    found = host.counter("0::/job\n")
    assert found
    (job / "memory.events").unlink()
    assert found.since(2) is None


def test_the_narrowest_quota_of_cpus_counts(host: Host) -> None:
    host.group("job/step", cpu_max="max 100000\n")
    host.group("job", cpu_max="250000 100000\n")
    host.group("", cpu_max="800000 100000\n")
    assert cpu_quota(host.proc("0::/job/step\n")) == 2.5


def test_version_1_has_the_quota_in_two_files(host: Host) -> None:
    host.group("job", cpu_cfs_quota_us="150000\n", cpu_cfs_period_us="50000\n")
    host.group("", cpu_cfs_quota_us="-1\n", cpu_cfs_period_us="100000\n")
    assert cpu_quota(host.proc("3:cpu,cpuacct:/job\n", V1.replace("rw,memory", "rw,cpu,cpuacct"))) == 3.0


@pytest.mark.parametrize("text", ["max 100000", "", "x y", "100 0"])
def test_no_quota_is_read_from_a_file_that_has_none(host: Host, text: str) -> None:
    host.group("job", cpu_max=text)
    assert cpu_quota(host.proc("0::/job\n")) is None
