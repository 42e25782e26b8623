"""The process's end of its monitor: one call's, and the next one's."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from processes import comes_true
from worlds import node

from elastic.adapters.inprocess.beside.supervisor import SHORT_LIFE_S, Charge, Supervisor
from elastic.adapters.inprocess.shared_page import BYE, Page
from elastic.core.inprocess.monitoring import Bye, Rules

TIMEOUT_S = 60.0

CLOSED = """
import os, sys
from pathlib import Path
for number in sys.argv[2:]:
    os.close(int(number))
from elastic.adapters.inprocess.shared_page import BYE, Page
from elastic.core.inprocess.monitoring import Bye
from elastic.adapters.inprocess.beside.supervisor import Charge, Supervisor
from elastic.core.inprocess.monitoring import Rules
from elastic.core.world import Node

page = Page.new()
charge = Charge(Node("a", 1), {"relay": "/none", "space": "one"}, Rules(), 1.0, Path(sys.argv[1]))
supervisor = Supervisor(page, charge)
supervisor.start()
page.words[BYE] = Bye.SETTLED
page.ring()
supervisor.close(60.0)
"""

pytestmark = pytest.mark.usefixtures("nothing_left")


def test_a_monitor_that_is_done_before_it_is_let_go_of_is_followed_by_none(caplog: pytest.LogCaptureFixture) -> None:
    """The call is over, and this process has other things to let go of first."""
    with closing(Page.new()) as page:
        supervisor = Supervisor(page, Charge(node("a"), {"relay": "/none", "space": "one"}, Rules(), 1.0))
        supervisor.start()
        try:
            page.words[BYE] = Bye.SETTLED
            page.ring()
            assert comes_true(lambda: not Path(f"/proc/{supervisor.pid}").exists())
        finally:
            supervisor.close(TIMEOUT_S)
        assert (supervisor.starts, caplog.messages) == (1, [])


@pytest.fixture
def unreaped() -> Iterator[None]:
    """The kernel keeps no child's exit code, as where a program ignores SIGCHLD."""
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGCHLD, before)


@pytest.mark.usefixtures("unreaped")
def test_a_monitor_that_is_killed_is_followed_by_another_though_its_exit_code_is_lost() -> None:
    with closing(Page.new()) as page:
        supervisor = Supervisor(page, Charge(node("a"), {"relay": "/none", "space": "one"}, Rules(), 1.0))
        supervisor.start()
        try:
            assert supervisor.pid
            os.kill(supervisor.pid, signal.SIGKILL)
            assert comes_true(lambda: supervisor.starts == 2)
        finally:
            page.words[BYE] = Bye.SETTLED
            supervisor.close(TIMEOUT_S)


@pytest.mark.parametrize("closed", [("0",), ("0", "1", "2")])
def test_a_process_without_standard_streams_has_a_monitor(tmp_path: Path, closed: tuple[str, ...]) -> None:
    """The monitor's own streams take the numbers of what it inherits, unless those are larger."""
    log = tmp_path / "log"
    subprocess.run([sys.executable, "-c", CLOSED, str(log), *closed], check=True)
    assert "beside" in log.read_text()


def test_a_log_that_cannot_be_opened_is_told_once(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    charge = Charge(node("a"), {"relay": "/none", "space": "one"}, Rules(), 1.0, tmp_path / "none" / "log")
    with closing(Page.new()) as page:
        supervisor = Supervisor(page, charge)
        page.words[BYE] = Bye.SETTLED
        supervisor.start()
        supervisor.close(TIMEOUT_S)
    assert [each.partition(":")[0] for each in caplog.messages] == ["the monitor process keeps no log"]


def test_a_call_that_lets_go_leaves_the_next_one_s_pid_file_alone(tmp_path: Path) -> None:
    """Whoever called may call again at once, while the last call's monitor is still ending."""
    file, nowhere = tmp_path / "monitor.pid", {"relay": str(tmp_path / "none"), "space": "one"}
    charge = Charge(node("a"), nowhere, Rules(), 1.0)
    with ExitStack() as stack:
        pages = [stack.enter_context(closing(Page.new())) for _ in range(2)]
        last, following = (Supervisor(page, charge, pid_file=file) for page in pages)
        for each, page in zip((last, following), pages, strict=True):
            stack.callback(each.close, TIMEOUT_S)
            stack.callback(page.words.__setitem__, BYE, Bye.SETTLED)
            each.start()
        pages[0].words[BYE] = Bye.SETTLED
        last.close(TIMEOUT_S)
        assert file.read_text() == f"{following.pid}\n"
    assert not file.exists()


@pytest.mark.parametrize(
    ("before", "meanwhile", "after"),
    [(None, "pid", None), ("", "pid", "pid"), ("12345\n", "pid", "pid"), ("host: n1\n", "host: n1\n", "host: n1\n")],
)
def test_a_pid_file_that_was_there_stays(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, before: str | None, meanwhile: str, after: str | None
) -> None:
    file = tmp_path / "monitor.pid"
    if before is not None:
        file.write_text(before)
    charge = Charge(node("a"), {"relay": str(tmp_path / "none"), "space": "one"}, Rules(), 1.0)
    held = pid = ""
    for _ in range(2):  # the second call finds what the first one left
        with closing(Page.new()) as page:
            supervisor = Supervisor(page, charge, pid_file=file)
            page.words[BYE] = Bye.SETTLED
            supervisor.start()
            pid = f"{supervisor.pid}\n"
            held = file.read_text()
            supervisor.close(TIMEOUT_S)
    assert held == (pid if meanwhile == "pid" else meanwhile)
    assert (file.read_text() if file.exists() else None) == (pid if after == "pid" else after)
    assert sum("holds something else, and is left as it is" in each for each in caplog.messages) == 2 * (
        meanwhile != "pid"
    )


SHORT_OF_DESCRIPTORS = """
import logging, os, resource, signal, sys
from contextlib import suppress
from elastic.adapters.inprocess.gate.alarm import Alarm
from elastic.adapters.inprocess.beside.supervisor import SHORT_LIFE_S, Charge, Supervisor
from elastic.adapters.inprocess.shared_page import BYE, NS, Page
from elastic.core.inprocess.monitoring import Bye, Rules
from elastic.core.world import Node
from processes import comes_true

TRIES = int(sys.argv[1])
tries = []
log = logging.getLogger("elastic.inprocess")
log.addHandler(logging.StreamHandler(sys.stdout))
log.addFilter(lambda record: tries.append(record.getMessage()) or True)
page = Page.new()
alarm = Alarm()
supervisor = Supervisor(page, Charge(Node("a", 1), {"relay": "/none", "space": "one"}, Rules(), 1.0), alarm)
supervisor.start()
alarm.set(NS // 2)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
held = []
with suppress(OSError):
    while True:
        held.append(os.open(os.devnull, os.O_RDONLY))
os.kill(supervisor.pid, signal.SIGKILL)
assert comes_true(lambda: sum("cannot be started" in each for each in tries) >= TRIES), tries
for each in held:
    os.close(each)
assert comes_true(lambda: supervisor.starts == 2)
alarm.set(0)
page.words[BYE] = Bye.SETTLED
supervisor.close(60.0)
assert supervisor.starts == 2
"""


@pytest.mark.parametrize(
    "tries",
    [
        pytest.param(3, id="again"),
        pytest.param(13, marks=pytest.mark.long, id="and the alarm kills nobody meanwhile"),
    ],
)
def test_a_monitor_that_cannot_be_started_once_is_tried_again(tries: int) -> None:
    """13 tries are 31 s of pauses, and the alarm goes off when it was not renewed for 30.5 s: for longer than a machine
    stands still. 3 tries say nothing of the alarm."""
    program = [sys.executable, "-c", SHORT_OF_DESCRIPTORS, str(tries)]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
    ran = subprocess.run(program, env=environment, capture_output=True, text=True, timeout=3 * TIMEOUT_S, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "Too many open files" in ran.stdout


def test_a_supervisor_that_cannot_start_its_monitor_says_so_in_time_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("elastic.adapters.inprocess.beside.supervisor.PATIENCE_S", 0.2)
    held = os.listdir("/proc/self/fd")
    with closing(Page.new()) as page:
        charge = Charge(node("a"), {"relay": "/none", "space": "one"}, Rules(), 1.0)
        supervisor = Supervisor(page, charge, python="/no/such/python")
        with pytest.raises(FileNotFoundError):
            supervisor.start()
        supervisor.close(TIMEOUT_S)
    assert os.listdir("/proc/self/fd") == held


def test_a_monitor_that_had_lived_for_long_begins_no_row_of_short_lives() -> None:
    with closing(Page.new()) as page:
        supervisor = Supervisor(page, Charge(node("a"), {"relay": "/none", "space": "one"}, Rules(), 1.0))
        supervisor._tries = 20
        supervisor.start()
        try:
            assert supervisor.pid
            supervisor._started_at -= SHORT_LIFE_S
            os.kill(supervisor.pid, signal.SIGKILL)
            assert comes_true(lambda: supervisor.starts == 2)
            assert supervisor._tries == 0
        finally:
            page.words[BYE] = Bye.SETTLED
            supervisor.close(TIMEOUT_S)
