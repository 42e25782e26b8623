"""Hosts that lack something that a launcher needs: real seccomp filters, mount namespaces and disks without inodes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from launches import ELASTIC, TIMEOUT_S
from seccomp import known, refusing

from elastic.adapters.kernel import CALLS, missing


def test_a_host_that_runs_this_has_all_of_them() -> None:
    assert missing() == ""


@known
@pytest.mark.parametrize(
    "command", [("launch", "--no-python", "true"), ("store", "--endpoint=localhost:0")], ids=["launch", "store"]
)
@pytest.mark.parametrize("call", sorted(CALLS))
@pytest.mark.parametrize(("error", "words"), [(1, "operation not permitted"), (38, "function not implemented")])
def test_a_call_that_a_filter_refuses_is_named_before_anything_is_started(
    nothing_left: str, call: str, error: int, words: str, command: tuple[str, ...]
) -> None:
    run = subprocess.run(
        [*refusing(call, error), ELASTIC, *command],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith("elastic: this kernel (")
    assert f"or its seccomp filter has no {call} ({words}): it takes Linux {CALLS[call][0]}" in run.stderr
    assert "Traceback" not in run.stderr


@known
@pytest.mark.parametrize("error", [1, 38])
def test_without_pidfds_a_job_restarts_and_ends_as_ever_and_a_line_says_why_it_is_slower(
    nothing_left: str, tmp_path: Path, error: int
) -> None:
    """What the failed worker left is killed, and its peer, which waits for ever, too."""
    script = (
        f'if [ "$ELASTIC_ROUND" = 1 ]; then echo again; exit 0; fi; sleep 1000 & '
        f'until [ "$(cat /proc/$!/comm)" = sleep ]; do :; done; echo began >>{tmp_path}/began; '
        f'if [ "$RANK" = 1 ]; then until [ "$(grep -c began {tmp_path}/began)" = 2 ]; do :; done; exit 3; fi; wait'
    )
    options = ("--nproc-per-node=2", "--max-restarts=1", "--grace=1", "--tee=3", "--no-python", "sh", "-c", script)
    run = subprocess.run(
        [*refusing("pidfd_open", error), ELASTIC, "launch", *options],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert sorted(run.stdout.splitlines()) == ["[default0]:again", "[default1]:again"]
    (line,) = [line for line in run.stderr.splitlines() if "pidfd_open" in line]
    assert "a thread watches each process" in line
    assert "1 process killed with it: sleep" in run.stderr and "Traceback" not in run.stderr


@known
def test_a_filter_that_refuses_sessions_is_named(nothing_left: str) -> None:
    command = ("launch", "--no-python", "true")
    run = subprocess.run(
        [*refusing("setsid", 1), ELASTIC, *command],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert run.returncode == 1
    assert "operation not permitted: setsid" in run.stderr and "Traceback" not in run.stderr, run.stderr


def in_a_mount_namespace(script: str, *command: str) -> subprocess.CompletedProcess[str]:
    words = ["unshare", "--mount", "sh", "-c", f'{script} && exec "$@"', "sh", ELASTIC, *command]
    environment = {name: text for name, text in os.environ.items() if name != "TMPDIR"}
    return subprocess.run(words, capture_output=True, text=True, timeout=TIMEOUT_S, check=False, env=environment)


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root makes a mount namespace")


@needs_root
def test_a_host_without_proc_is_told_so(nothing_left: str) -> None:
    run = in_a_mount_namespace("umount -l /proc", "launch", "--no-python", "true")
    assert (run.returncode, run.stdout) == (2, "")
    assert (
        run.stderr
        == "elastic: /proc is not mounted here, and processes are looked for there: mount -t proc proc /proc\n"
    )


READ_ONLY = "mount -t tmpfs -o ro none /tmp"


@needs_root
def test_a_read_only_place_for_temporary_files_costs_the_error_files_and_one_line(nothing_left: str) -> None:
    run = in_a_mount_namespace(READ_ONLY, "launch", "--no-python", "true")
    assert run.returncode == 0, run
    (line,) = [line for line in run.stderr.splitlines() if " /tmp" in line]
    assert "workers run without error files: /tmp: read-only file system" in line


@needs_root
def test_the_reason_of_an_exception_is_told_without_a_place_for_error_files(nothing_left: str, tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text("def step():\n    raise ValueError('no such batch')\nstep()\n")
    script = f"cp {program} /dev/shm/{tmp_path.name}.py && {READ_ONLY}"
    run = in_a_mount_namespace(script, "launch", f"/dev/shm/{tmp_path.name}.py")
    Path(f"/dev/shm/{tmp_path.name}.py").unlink()
    assert run.returncode == 1
    assert f"exit code 1: ValueError: no such batch ({tmp_path.name}.py:2 in step)" in run.stderr, run.stderr


@needs_root
def test_logs_that_have_no_place_are_a_mistake_that_blames_no_variable_which_is_not_set(nothing_left: str) -> None:
    run = in_a_mount_namespace(READ_ONLY, "launch", "--tee=3", "--no-python", "true")
    assert run.returncode == 2
    assert run.stderr == (
        "elastic: --log-dir is missing, and there is no place for temporary files: /tmp: read-only file system; "
        "name a directory that can be written to\n"
    )


@needs_root
@pytest.mark.parametrize("stream", ["--tee", "--redirects"])
def test_a_disk_without_inodes_costs_the_log_files_and_no_round(nothing_left: str, tmp_path: Path, stream: str) -> None:
    """There are inodes for the directories of the first round, and for no file in them."""
    disk = f"mount -t tmpfs -o nr_inodes=4 none {tmp_path}"
    says = ("--no-python", "sh", "-c", "echo out; echo err >&2; exit 3")
    run = in_a_mount_namespace(disk, "launch", f"--log-dir={tmp_path}", f"{stream}=3", *says)
    assert (run.returncode, run.stdout) == (1, "[default0]:out\n"), run
    assert "stdout.log: no space left on device: this output is on the console only" in run.stderr
    assert "[default0]:err\n" in run.stderr
    assert "│ err\n" in run.stderr, "its last lines are in the report"
