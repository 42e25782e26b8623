"""The check of a node: whatever its command does, it ends in a finding, and nothing of it is left."""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path
from queue import SimpleQueue

import pytest
from processes import TIMEOUT_S, comes_true, dies, is_alive

from elastic.adapters.launch_settings import NodeCheck
from elastic.adapters.workers.start.node_check import LINE_MAX, Finding, NodeChecks, _end_of, found
from elastic.adapters.workers.watch.process_groups import died_within


def checked(tmp_path: Path, program: str, timeout: float = TIMEOUT_S, path: str = "/usr/bin:/bin") -> tuple[bool, str]:
    """What comes of a check by this program of Python."""
    told = SimpleQueue[tuple[bool, str]]()
    command = (sys.executable, "-c", program)
    checks = NodeChecks(
        NodeCheck(command, timeout), {"PATH": path, "HERE": str(tmp_path)}, lambda *each: told.put(each)
    )
    try:
        checks.start()
        return told.get(timeout=2 * TIMEOUT_S)
    finally:
        checks.close()


@pytest.mark.parametrize(
    ("code", "output", "finding"),
    [
        (0, b"all is well\n", Finding(True)),
        (1, b"looking\nGPU 3 \x1b[2Jlost \xff\n \n", Finding(False, r"GPU 3 \x1b[2Jlost �")),
        (1, b"", Finding(False, "the node check said nothing and ended with exit code 1")),
        (1, b"x" * 5_000, Finding(False, "x" * LINE_MAX)),
        (2, b"usage\n", Finding(True, "the node check ended with exit code 2: usage")),
        (127, b"", Finding(True, "the node check ended with exit code 127")),
        (-9, b"", Finding(True, "the node check was killed by SIGKILL")),
    ],
)
def test_the_exit_code_and_the_last_line_are_the_finding(code: int, output: bytes, finding: Finding) -> None:
    assert found(code, output) == finding


@pytest.mark.parametrize(
    "program",
    [
        "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.pause()",
        "while True: print('x' * 4096)",
        "import os, time; os.closerange(0, 3); time.sleep(1e6)",
    ],
    ids=["hangs", "prints without end", "closes its output"],
)
def test_a_check_that_does_not_end_is_killed_and_the_node_joins(tmp_path: Path, program: str) -> None:
    is_fit, text = checked(tmp_path, program, timeout=0.5)
    assert is_fit and text == "the node check did not end within 0.5 s (--node-check-timeout)"


def test_what_a_check_leaves_behind_dies_with_it_and_its_pipe_keeps_nobody_waiting(tmp_path: Path) -> None:
    program = (
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n"
        "    open(os.environ['HERE'] + '/new', 'w').write(str(os.getpid()))\n"
        "    os.rename(os.environ['HERE'] + '/new', os.environ['HERE'] + '/pid')\n    time.sleep(1e6)\n"
        "while not os.path.exists(os.environ['HERE'] + '/pid'): time.sleep(0.01)\n"
        "print('the disk is full')\nraise SystemExit(1)"
    )
    assert checked(tmp_path, program) == (False, "the disk is full")
    assert dies(int((tmp_path / "pid").read_text()))


def test_a_check_that_is_killed_or_cannot_start_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    killed = "the node check was killed by SIGKILL"
    assert checked(tmp_path, "import os; os.kill(os.getpid(), 9)") == (True, killed)
    monkeypatch.setenv("PATH", "/nowhere")
    is_fit, text = checked(tmp_path, "")
    assert is_fit and text.startswith("the node check cannot be started: setpriv: not found")


def test_a_check_that_cannot_be_watched_is_killed_and_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = list[int]()

    def none_left(pid: int) -> int:
        started.append(pid)
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(os, "pidfd_open", none_left)
    told = checked(tmp_path, "import time; time.sleep(1e6)")
    assert told == (True, "the node check cannot be watched: too many open files")
    assert not Path(f"/proc/{started[0]}").exists()


TAKES_ALL_DESCRIPTORS = """
import os, resource
from contextlib import suppress
from pathlib import Path

agent = os.getppid()

def is_watched():
    for each in Path(f"/proc/{agent}/fdinfo").iterdir():
        with suppress(OSError):
            if f"Pid:\\t{os.getpid()}\\n" in each.read_text():
                return True

while not is_watched():
    pass
resource.prlimit(agent, resource.RLIMIT_NOFILE, (3, resource.prlimit(agent, resource.RLIMIT_NOFILE)[1]))
print("the disk is full")
raise SystemExit(1)
"""


def test_a_finding_counts_also_where_no_descriptor_is_left_to_look_for_what_the_check_leaves_behind(
    tmp_path: Path,
) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        assert checked(tmp_path, TAKES_ALL_DESCRIPTORS) == (False, "the disk is full")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_the_end_of_the_agent_ends_a_check(tmp_path: Path) -> None:
    told = SimpleQueue[tuple[bool, str]]()
    program = "import os, time; open('pid', 'w').write(f'{os.getpid()} '); time.sleep(1e6)"
    command = (sys.executable, "-c", f"import os; os.chdir({str(tmp_path)!r}); {program}")
    checks = NodeChecks(NodeCheck(command, 1e6), {}, lambda *each: told.put(each))
    checks.start()
    file = tmp_path / "pid"
    assert comes_true(lambda: file.exists() and file.read_text().endswith(" "))
    checks.close()
    checks.close()
    assert dies(int(file.read_text())) and told.get(timeout=TIMEOUT_S)[0]


def test_the_end_of_the_agent_does_not_wait_for_a_check_that_no_signal_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process in an uninterruptible call of a driver takes no signal before that returns."""
    sent = SimpleQueue[int]()
    monkeypatch.setattr("elastic.adapters.workers.start.node_check.send", lambda pid, signum: sent.put(pid))
    checks = NodeChecks(NodeCheck(("sleep", "1000000"), 1e6, every=0.0), {}, lambda *each: None)
    checks.start()
    assert comes_true(lambda: checks._pid is not None)
    checks.close()
    pid = sent.get_nowait()
    assert is_alive(pid)
    os.kill(pid, signal.SIGKILL)
    assert comes_true(lambda: checks._thread is not None and not checks._thread.is_alive())


def watched(tmp_path: Path, program: str, timeout: float = TIMEOUT_S) -> tuple[bool, str]:
    """Return the first finding of a check that goes on, other than that all is well."""
    told = SimpleQueue[tuple[bool, str]]()
    command = (sys.executable, "-c", program)
    settings, environment = NodeCheck(command, timeout, every=0.01), {"HERE": str(tmp_path)}
    checks = NodeChecks(settings, environment, lambda *each: told.put(each))
    try:
        checks.start()
        while (found := told.get(timeout=2 * TIMEOUT_S)) == (True, ""):
            pass
        return found
    finally:
        checks.close()


FOURTH = """
import os
with open(f"{os.environ['HERE']}/ran", "a+") as ran:
    ran.write("x")
    ran.flush()
    ran.seek(0)
    often = len(ran.read())
"""


def test_a_check_goes_on_until_it_finds_the_node_unfit(tmp_path: Path) -> None:
    fourth = f"{FOURTH}\nif often == 4: print('no disk')\nraise SystemExit(often == 4)"
    assert watched(tmp_path, fourth) == (False, "no disk")
    assert (tmp_path / "ran").read_text() == "xxxx"


def test_one_that_hangs_beside_workers_finds_the_node_unfit(tmp_path: Path) -> None:
    limit = "the watch check did not end within 0.2 s (--node-check-timeout)"
    assert watched(tmp_path, "import time; time.sleep(1e6)", 0.2) == (False, limit)


def test_one_that_says_nothing_of_the_node_is_a_warning(tmp_path: Path) -> None:
    assert watched(tmp_path, "raise SystemExit(2)") == (True, "the watch check ended with exit code 2")
    assert found(1, b"", "the watch check").text == "the watch check said nothing and ended with exit code 1"


def test_a_limit_that_passes_while_the_agent_stands_still_counts_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([0.0, 100.0, 100.5, 101.1])
    monkeypatch.setattr("elastic.adapters.workers.start.node_check.time.monotonic", lambda: next(times))
    with subprocess.Popen(["sleep", "1000000"], stdout=subprocess.PIPE) as lives:
        assert lives.stdout
        pidfd = os.pidfd_open(lives.pid)
        assert _end_of(pidfd, lives.stdout.fileno(), 1.0) is None
        assert next(times, None) is None
        os.close(pidfd)
        lives.kill()


def test_a_closed_check_starts_nothing(tmp_path: Path) -> None:
    checks = NodeChecks(NodeCheck(("touch", str(tmp_path / "ran")), 1e6), {}, lambda *each: None)
    checks.close()
    checks.start()
    checks.close()
    assert not (tmp_path / "ran").exists()


def test_a_check_that_ended_while_the_agent_stood_still_has_ended_in_time(tmp_path: Path) -> None:
    with subprocess.Popen(["sh", "-c", "echo no disk; exit 1"], stdout=subprocess.PIPE) as ended:
        assert ended.stdout
        pidfd = os.pidfd_open(ended.pid)
        assert died_within(pidfd, TIMEOUT_S)
        assert _end_of(pidfd, ended.stdout.fileno(), 0.0) == b"no disk\n"
        os.close(pidfd)
