"""A disk of logs that stands still: a real file system, which is frozen. The job goes on, and obeys signals."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from attrs import frozen
from launches import Launch, Launcher
from processes import comes_true

BYTES = 8 << 20
ALONE = "has not answered for 2 s: the output of round"
PROGRAM = """
import os, sys
sys.path.insert(0, os.environ["PYTHONPATH"])
import stage
print("began", flush=True)
stage.tell("runs")
stage.wait_for_gate(stage.round)
print("ends", file=sys.stderr, flush=True)
sys.exit(3 if stage.round < int(sys.argv[1]) else 0)
"""


@frozen
class Disk:
    """A file system that can be frozen."""

    path: Path

    @contextmanager
    def stands_still(self) -> Iterator[None]:
        """Meanwhile what writes there waits, and no signal ends that."""
        subprocess.run(["fsfreeze", "-f", self.path], check=True)
        try:
            yield
        finally:
            subprocess.run(["fsfreeze", "-u", self.path], check=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    image, path = tmp_path / "image", tmp_path / "disk"
    path.mkdir()
    with open(image, "wb") as file:
        file.truncate(BYTES)
    if os.geteuid() != 0 or not all(map(shutil.which, ("mkfs.ext4", "fsfreeze"))):
        pytest.skip("only root can freeze a file system")
    subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
    if subprocess.run(["mount", "-o", "loop", image, path], check=False, capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    yield Disk(path)
    subprocess.run(["umount", "-l", path], check=True)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(PROGRAM)
    return tmp_path / "train.py"


def has_left(job: Launch) -> bool:
    """Return True if the launcher has ended, as far as the kernel lets it: a thread of it may wait for the disk."""
    return b"\nState:\tZ" in Path(f"/proc/{job.pid}/status").read_bytes()


def test_a_disk_that_stands_still_costs_the_next_round_its_files_and_the_report_has_the_last_lines(
    launch: Launcher, disk: Disk, program: Path, tmp_path: Path
) -> None:
    report = tmp_path / "report.json"
    where = [f"--log-dir={disk.path}/logs", f"--report={report}", f"--trace={disk.path}/traces/"]
    job = launch("--tee=3", *where, "--max-restarts=1", program, "9", traced=False)
    job.hears(1)
    (log,) = disk.path.glob("logs/*/attempt_0/0/stdout.log")
    assert comes_true(lambda: log.read_text() == "began\n")
    with disk.stands_still():
        job.open_gate(0)
        (again,) = job.hears(1)
        job.says(f"{ALONE} {again.round} is on the console only")
        job.open_gate(1)
        job.says("/stderr.log: the disk does not answer, the end of this output is not written")
        job.says("the disk does not answer, the end of the trace is not written")
        assert comes_true(lambda: has_left(job))
    ended = job.ends()
    assert ended.code == 1 and "Traceback" not in ended.err, ended.err
    assert ended.out == "[default0]:began\n" * 2 and ended.err.count("[default0]:ends\n") == 2
    assert "the report could not be written: " in ended.err
    failures = json.loads(report.read_text())["failures"]
    assert [failure["tail"] for failure in failures] == [["ends"], ["ends"]]


def test_a_disk_that_stands_still_from_the_start_costs_the_files_until_it_answers_and_sigterm_has_its_effect(
    launch: Launcher, disk: Disk, program: Path
) -> None:
    where = [f"--log-dir={disk.path}/logs", f"--trace={disk.path}/traces/"]
    with disk.stands_still():
        job = launch("--tee=3", *where, "--max-restarts=9", program, "9", traced=False)
        job.hears(1)
        job.says(f"{ALONE} 0 is on the console only")
        job.says("has not answered for 2 s: the trace waits for it")
        job.open_gate(0)
        job.hears(1)
    assert comes_true(lambda: all(any(disk.path.glob(made)) for made in ("logs/*", "traces/*.ndjson")))
    job.open_gate(1)
    job.hears(1)
    (log,) = disk.path.glob("logs/*/attempt_2/0/stdout.log")
    assert comes_true(lambda: log.read_text() == "began\n")
    (written,) = disk.path.glob("traces/*.ndjson")
    assert written.stat().st_size > 0
    with disk.stands_still():
        job.open_gate(2)
        job.hears(1)
        job.signal(signal.SIGTERM)
        assert comes_true(lambda: has_left(job))
    assert job.ends().code == 143
