"""What is said of a death beyond the exit code."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from elastic.adapters.workers.cgroups import Counter, Kills
from elastic.adapters.workers.watch.death_causes import NOT_OURS, process_deaths, remark
from elastic.adapters.workers.worker_port import Exit

GIB = 2**30
SAID = [
    (-9, Kills(1, True, 64 * GIB), "out of memory (cgroup limit 64 GiB, oom_kill +1)"),
    (-9, Kills(2, True), "out of memory (cgroup, oom_kill +2)"),
    (-9, Kills(1, False), "out of memory (this host, oom_kill +1)"),
    (-9, Kills(0, True, GIB), NOT_OURS),
    (-9, None, "not sent by elastic; this host does not tell if it was out of memory"),
    (1, Kills(1, True, GIB // 2), "meanwhile a process was killed for memory (cgroup limit 512 MiB, oom_kill +1)"),
    (1, Kills(0, True), ""),
    (-11, None, ""),
]


@pytest.mark.parametrize(("code", "kills", "sentence"), SAID)
def test_who_killed_it(code: int, kills: Kills | None, sentence: str) -> None:
    assert remark(Exit(0, 7, code, 1.0, 2.0, kills=kills)) == sentence


@pytest.mark.parametrize(("kills", "sentence"), [(Kills(0, True), ""), (None, ""), (Kills(2, True), SAID[1][2])])
def test_what_its_error_file_explains_is_not_guessed_at(kills: Kills | None, sentence: str) -> None:
    assert remark(Exit(0, 7, -9, 1.0, 2.0, kills=kills), explained=True) == sentence


def test_a_kill_for_memory_explains_the_death_that_it_was_seen_with_and_no_later_one(tmp_path: Path) -> None:
    count = tmp_path / "vmstat"
    count.write_text("oom_kill 3\n")
    told = process_deaths(lambda: Counter(count, False))
    count.write_text("oom_kill 4\n")
    assert told(-9) == "was killed by SIGKILL, out of memory (this host, oom_kill +1)"
    assert told(-9) == f"was killed by SIGKILL, {NOT_OURS}"
    assert told(1) == "ended with exit code 1"


def dumped(folder: Path, pattern: str, uses_pid: str = "0") -> str:
    (folder / "core_pattern").write_bytes(os.fsencode(pattern + "\n"))
    (folder / "core_uses_pid").write_text(uses_pid + "\n")
    return remark(Exit(0, 77, -11, 0.0, 2.0, dumped=True), folder)


def test_a_core_dump_that_a_program_takes_is_looked_for_there(tmp_path: Path) -> None:
    systemd = "/lib/systemd/systemd-coredump"
    assert dumped(tmp_path, f"|{systemd} %P %u") == f"core dumped to {systemd}: coredumpctl info 77"
    assert dumped(tmp_path, "|/usr/share/apport %p") == "core dumped to /usr/share/apport"


@pytest.mark.parametrize(
    ("pattern", "uses_pid", "name"),
    [
        ("core", "0", "core"),
        ("core", "1", "core.77"),
        ("core.%p", "1", "core.77"),
        ("%e-%t-%s-%p", "0", "a-9-11-77"),
        ("k\udcf6rne", "0", "k\udcf6rne"),
    ],
)
def test_a_core_dump_is_found_by_the_kernel_s_pattern(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pattern: str, uses_pid: str, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).touch()
    assert dumped(tmp_path, pattern, uses_pid) == f"core dumped: {tmp_path / name}"
    os.rename(tmp_path / name, tmp_path / "elsewhere")
    (tmp_path / "cores").mkdir()
    (tmp_path / "cores" / name).touch()
    assert dumped(tmp_path, f"{tmp_path}/cores/{pattern}", uses_pid) == f"core dumped: {tmp_path / 'cores' / name}"


def test_an_older_dump_is_not_taken_for_this_one_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "core").touch()
    os.utime(tmp_path / "core", (0, 0))
    assert dumped(tmp_path, "core") == "core dumped as core, where the worker was"


def test_a_dump_that_is_gone_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "core").symlink_to("nowhere")
    assert dumped(tmp_path, "core") == "core dumped as core, where the worker was"


def test_a_directory_that_is_gone_holds_no_dump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert dumped(tmp_path, "core") == "core dumped as core, where the worker was"
    (tmp_path / "core").touch()
    assert dumped(tmp_path, f"{tmp_path}/core") == f"core dumped: {tmp_path}/core"
