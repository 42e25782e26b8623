"""SubprocessWorkers on real processes: start, death, collection, the end."""

from __future__ import annotations

import itertools
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest
from attrs import evolve
from processes import TIMEOUT_S, comes_true, is_alive, is_stopped

from elastic.adapters.disk import Disk, StandsStill
from elastic.adapters.workers import child_processes as module
from elastic.adapters.workers.cgroups import Counter
from elastic.adapters.workers.child_processes import SubprocessWorkers
from elastic.adapters.workers.output.pump import Stream
from elastic.adapters.workers.start.forks import Serving
from elastic.adapters.workers.start.spawner import Executing, Here
from elastic.adapters.workers.watch import process_groups as groups
from elastic.adapters.workers.watch.death_causes import remark
from elastic.adapters.workers.watch.reaper_process import ReaperProcess
from elastic.adapters.workers.worker_port import NOWHERE, CannotStart, Exit, Shortage, Sink, WorkerSpec

FOREVER = "exec sleep 1000"
INHERITED = Sink()


class Node:
    """The agent's side: workers, and the inbox that their deaths are posted to."""

    def __init__(self, disk: Disk, **settings: Any) -> None:
        self.inbox: SimpleQueue[tuple[int, int]] = SimpleQueue()
        self.stuck: SimpleQueue[tuple[int, int, str]] = SimpleQueue()
        self.pids: dict[int, int] = {}
        self.disk = disk
        settings = {"on_stuck": lambda *told: self.stuck.put(told), **settings}
        self.workers = SubprocessWorkers(lambda *event: self.inbox.put(event), disk, **settings)

    def start(self, *scripts: str, **sinks: Sink) -> list[int]:
        return self.start_these([spec(rank, script, **sinks) for rank, script in enumerate(scripts)])

    def start_these(self, specs: Sequence[WorkerSpec]) -> list[int]:
        pids = list(self.workers.start(specs))
        self.pids |= {each.local_rank: pid for each, pid in zip(specs, pids, strict=True)}
        return pids

    def collect(self, local_rank: int) -> Exit:
        ended = self.workers.collect(local_rank, self.pids[local_rank])
        assert ended
        return ended

    def dead(self) -> int:
        """The next worker that died."""
        return self.inbox.get(timeout=TIMEOUT_S)[0]

    def run(self, *scripts: str, **sinks: Sink) -> list[int]:
        """One generation from start to end: the exit codes."""
        self.start(*scripts, **sinks)
        dead = sorted(self.dead() for _ in scripts)
        return [self.collect(rank).code for rank in dead]


def spec(local_rank: int, script: str, stdout: Sink = INHERITED, stderr: Sink = INHERITED) -> WorkerSpec:
    return WorkerSpec(local_rank, ("sh", "-c", script), dict(os.environ), stdout, stderr)


@pytest.fixture(params=[Here, Serving], ids=["here", "in a server"])
def make(nothing_left: str, disk: Disk, request: pytest.FixtureRequest) -> Iterator[Callable[..., Node]]:
    """Make workers that this process executes, and workers that a server executes."""
    made: list[Node] = []

    def make(**settings: Any) -> Node:
        made.append(Node(**{"disk": disk, "spawner": Executing(executor=request.param()), **settings}))
        return made[-1]

    yield make
    for node in made:
        node.workers.close()


@pytest.fixture
def node(make: Callable[..., Node]) -> Node:
    return make()


def test_each_worker_that_dies_is_told_once_and_collected_with_its_code_and_times(make: Callable[..., Node]) -> None:
    ticks = itertools.count(1.0)
    node = make(clock=lambda: next(ticks))
    pids = node.start("exit 7", "kill -KILL $$", "exit 0")
    exits = {rank: node.collect(rank) for rank in sorted(node.dead() for _ in pids)}
    assert [(exit.local_rank, exit.pid, exit.code) for exit in exits.values()] == [
        (0, pids[0], 7),
        (1, pids[1], -signal.SIGKILL),
        (2, pids[2], 0),
    ]
    assert all(exit.started_at <= 3.0 < exit.died_at <= 6.0 for exit in exits.values())
    assert node.inbox.empty()


def test_each_worker_leads_its_own_session_and_has_the_standard_descriptors_alone(node: Node) -> None:
    keep_open = os.open("/dev/null", os.O_RDONLY)
    os.set_inheritable(keep_open, True)
    pids = node.start(FOREVER, FOREVER)
    for pid in pids:
        assert comes_true(lambda pid=pid: Path(f"/proc/{pid}/comm").read_text() == "sleep\n")  # type: ignore[misc]
        assert os.getsid(pid) == os.getpgid(pid) == pid
        assert comes_true(lambda pid=pid: sorted(os.listdir(f"/proc/{pid}/fd")) == ["0", "1", "2"])  # type: ignore[misc]
        assert os.readlink(f"/proc/{pid}/fd/0") == os.readlink("/proc/self/fd/0")
    os.close(keep_open)


def environment_of(node: Node, tmp_path: Path, environment: Mapping[str, str]) -> dict[str, str]:
    out = tmp_path / str(len(list(tmp_path.iterdir())))
    node.start_these([WorkerSpec(0, ("/usr/bin/env",), environment, stdout=Sink(out, console=False))])
    node.collect(node.dead())
    return dict(line.split("=", 1) for line in out.read_text().splitlines())


def test_a_worker_has_the_environment_it_was_given_and_the_agents_token(node: Node, tmp_path: Path) -> None:
    seen = environment_of(node, tmp_path, {"RANK": "3"})
    token = seen.pop("ELASTIC_AGENT")
    assert seen == {"RANK": "3"} and len(token) == 32
    assert environment_of(node, tmp_path, {"ELASTIC_AGENT": "outer"})["ELASTIC_AGENT"] == f"outer:{token}"


def test_a_worker_may_be_bound_to_some_cpus_and_its_starter_keeps_its_own(node: Node, tmp_path: Path) -> None:
    before = os.sched_getaffinity(0)
    bound = evolve(spec(0, f"grep Cpus_allowed_list /proc/self/status >{tmp_path}/cpus"), cpus=frozenset({max(before)}))
    node.start_these([bound])
    assert node.collect(node.dead()).code == 0
    assert (tmp_path / "cpus").read_text().split() == ["Cpus_allowed_list:", str(max(before))]
    assert os.sched_getaffinity(0) == before


def test_a_signal_reaches_the_whole_group_of_a_worker_that_may_be_a_shell(node: Node, tmp_path: Path) -> None:
    script = "sleep 1000 & echo $! ; wait"
    out = Sink(tmp_path / "pids", console=False)
    node.start_these([evolve(spec(rank, script, stdout=out), is_group=True) for rank in (0, 1)])
    assert comes_true(lambda: (tmp_path / "pids").read_text().count("\n") == 2)
    node.workers.signal(signal.SIGTERM)
    assert sorted([node.dead(), node.dead()]) == [0, 1]
    assert [node.collect(rank).code for rank in (0, 1)] == [-signal.SIGTERM] * 2
    assert not any(is_alive(int(pid)) for pid in (tmp_path / "pids").read_text().split())


ASKS_ITS_CHILD = """
import signal, subprocess, sys
child = subprocess.Popen(["sh", "-c", sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
def on_term(signum, frame):
    answer, _ = child.communicate("batch" + chr(10))
    print("saved", answer.strip(), flush=True)
    sys.exit(9)
signal.signal(signal.SIGTERM, on_term)
print("ready", child.pid, flush=True)
signal.pause()
"""


def python(local_rank: int, program: str, *arguments: str, out: Path) -> WorkerSpec:
    command = (sys.executable, "-c", program, *arguments)
    return WorkerSpec(local_rank, command, dict(os.environ), Sink(out, console=False), INHERITED)


def test_what_is_killed_since_its_worker_failed_is_named(node: Node) -> None:
    node.start("sleep 1000 & exit 3", "exit 3")
    exits = [node.collect(rank) for rank in sorted((node.dead(), node.dead()))]
    assert re.fullmatch(r"1 process killed with it: s\w+ \(pid \d+\)", exits[0].killed)
    assert exits[1].killed == ""
    assert remark(exits[0]) == exits[0].killed


def test_a_signal_reaches_a_worker_that_is_stopped(node: Node) -> None:
    (pid,) = node.start(FOREVER)
    os.kill(pid, signal.SIGSTOP)
    assert comes_true(lambda: is_stopped(pid))
    node.workers.signal(signal.SIGTERM)
    assert not is_stopped(pid)
    assert node.collect(node.dead()).code == -signal.SIGTERM


def test_a_program_that_is_told_to_end_still_has_the_processes_that_it_started(node: Node, tmp_path: Path) -> None:
    out = tmp_path / "out"
    node.start_these([python(0, ASKS_ITS_CHILD, "read line; echo $line", out=out)])
    assert comes_true(lambda: "ready" in out.read_text())
    node.workers.signal(signal.SIGTERM)
    assert node.collect(node.dead()).code == 9
    assert "saved batch" in out.read_text()


def test_what_a_stopped_program_leaves_is_told_to_end_before_it_is_killed(node: Node, tmp_path: Path) -> None:
    """One that heeds SIGTERM has its handler run; one that does not is killed."""
    heeds, ignores = (
        "trap 'echo heard; exit' TERM; echo up; while :; do sleep 0.01; done",
        "trap '' TERM; echo up; sleep 1000",
    )
    script = f"({heeds}) & ({ignores}) & wait"
    out = tmp_path / "out"
    node.start_these([spec(0, script, stdout=Sink(out, console=False))])
    assert comes_true(lambda: out.read_text().count("up") == 2)
    node.workers.signal(signal.SIGTERM)
    pid = node.pids[0]
    assert node.collect(node.dead()).code == -signal.SIGTERM
    assert "heard" in out.read_text()
    assert groups.members(pid) == []


def test_the_children_of_a_program_can_be_told_to_end_before_it_is_killed(node: Node, tmp_path: Path) -> None:
    out = tmp_path / "out"
    child = "trap 'echo heard; exit' TERM; echo up; while :; do sleep 0.01; done"
    node.start_these(
        [
            spec(0, f"trap '' USR1; ({child}) & wait; wait; echo outlived; {FOREVER}", stdout=Sink(out, console=False)),
            evolve(spec(1, FOREVER), is_group=True),
        ]
    )
    assert comes_true(lambda: "up" in out.read_text())
    node.workers.signal(signal.SIGUSR1)
    assert node.dead() == 1
    node.workers.signal_children(signal.SIGTERM)
    assert comes_true(lambda: "outlived" in out.read_text())
    assert "heard" in out.read_text()


SAVES_AFTER_ITS_SHELL = """
import signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
print("ready", flush=True)
signal.sigwait({signal.SIGTERM})
print("asked", flush=True)
sys.stdin.readline()
print("saved", flush=True)
"""
"""It misses no signal that comes just before it waits, as `signal.pause` would."""


def test_the_end_of_a_shell_is_that_of_what_it_started_which_is_named_meanwhile(
    make: Callable[..., Node], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "NAMED_AFTER_S", 0.0)
    remarks: SimpleQueue[str] = SimpleQueue()
    node = make(remark=remarks.put)
    out, gate = tmp_path / "out", tmp_path / "gate"
    os.mkfifo(gate)
    script = f"{sys.executable} -c '{SAVES_AFTER_ITS_SHELL}' <>{gate} & wait"
    node.start_these([evolve(spec(0, script, stdout=Sink(out, console=False)), is_group=True)])
    assert comes_true(lambda: "ready" in out.read_text())
    (program,) = [pid for pid in groups.members(node.pids[0]) if pid != node.pids[0]]
    node.workers.signal(signal.SIGTERM)
    assert remarks.get(timeout=TIMEOUT_S) == (
        "local rank 0 has ended, and 1 process of its group runs on until SIGKILL: "
        f"{Path(f'/proc/{program}/comm').read_text().strip()} (pid {program})"
    )
    assert node.inbox.empty()
    gate.write_text("\n")
    assert node.collect(node.dead()).code == -signal.SIGTERM
    assert "saved" in out.read_text()


def test_the_kill_of_a_shell_that_has_ended_is_that_of_what_it_started(node: Node, tmp_path: Path) -> None:
    out = tmp_path / "out"
    ignores = "trap '' TERM; echo $$; sleep 1000"
    node.start_these([evolve(spec(0, f'sh -c "{ignores}" & wait', stdout=Sink(out, console=False)), is_group=True)])
    assert comes_true(lambda: out.read_text().endswith("\n"))
    node.workers.signal(signal.SIGTERM)
    pid = node.pids[0]
    assert comes_true(lambda: Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z")
    assert groups.members(pid)
    node.workers.signal(signal.SIGKILL)
    assert node.collect(node.dead()).code == -signal.SIGTERM
    assert groups.members(pid) == []


def test_no_process_of_a_workers_group_lives_once_it_is_collected(node: Node, tmp_path: Path) -> None:
    script = "trap '' TERM; for i in 1 2 3; do sleep 1000 & echo $!; done; exit 3"
    assert node.run(script, stdout=Sink(tmp_path / "pids", console=False)) == [3]
    left = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    assert len(left) == 3 and not any(is_alive(pid) for pid in left)


LEAVES = """
import os, subprocess, sys
from multiprocessing.shared_memory import SharedMemory
child = subprocess.Popen(["sleep", "1000"])
print(SharedMemory(create=True, size=9).name, child.pid, flush=True)
"""


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that is given up has the time in which it dies, also on a machine that stands still."""
    monkeypatch.setattr(module, "GIVE_UP_TIMEOUT_S", TIMEOUT_S)


@pytest.mark.usefixtures("unhurried")
@pytest.mark.parametrize("ends", ["collect", "signal", "give_up", "close"])
def test_what_a_worker_leaves_in_shared_memory_is_removed_behind_it(node: Node, tmp_path: Path, ends: str) -> None:
    out, last = tmp_path / "out", "os._exit(3)" if ends == "collect" else "child.wait()"
    python = WorkerSpec(0, (sys.executable, "-c", LEAVES + last), os.environ, Sink(out, console=False))
    (pid,) = node.start_these([python])
    assert comes_true(lambda: out.exists() and out.read_text().endswith("\n"))
    name, child = out.read_text().split()
    left = Path("/dev/shm") / name
    try:
        if ends == "close":
            node.workers.close()
        elif ends == "give_up":
            node.workers.give_up(0, pid)
        else:
            if ends == "signal":
                node.workers.signal(signal.SIGKILL)
            node.collect(node.dead())
        assert not is_alive(int(child))
        assert comes_true(lambda: not left.exists())
    finally:
        left.unlink(missing_ok=True)


def test_a_kill_for_memory_explains_one_worker_also_if_another_starts_again_before_it_is_collected(
    node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = tmp_path / "memory.events"
    events.write_text("oom_kill 3\n")
    monkeypatch.setattr(node.workers, "_counter", Counter(events, True))

    def kills(local_rank: int) -> int:
        found = node.collect(local_rank).kills
        assert found is not None
        return found.count

    node.start(FOREVER, FOREVER)
    events.write_text("oom_kill 5\n")
    assert kills(0) == 2
    node.start_these([spec(0, FOREVER)])
    assert (kills(1), kills(0)) == (1, 1)
    node.start(FOREVER)
    assert kills(0) == 0


def test_a_worker_collected_alive_is_killed(node: Node) -> None:
    node.start(FOREVER)
    exit = node.collect(0)
    assert exit.code == -signal.SIGKILL and exit.died_at >= exit.started_at


def test_nothing_is_started_if_one_program_cannot_be_executed(node: Node, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    with pytest.raises(CannotStart, match=r"/no/such/program: no such file"):
        node.start_these([spec(0, f"touch {ran}"), WorkerSpec(1, ("/no/such/program",), {})])
    assert not ran.exists() and node.inbox.empty()


def test_a_start_that_fails_half_way_kills_and_reaps_what_it_started_and_tells_of_no_exit(node: Node) -> None:
    giant = WorkerSpec(1, ("sh", "-c", "exit", "x" * 3_000_000), os.environ)
    with pytest.raises(CannotStart, match="cannot start the workers: argument list too long"):
        node.start_these([spec(0, FOREVER), giant])
    assert node.inbox.empty()
    assert node.run("exit 5") == [5]


@pytest.mark.parametrize("console", [False, True], ids=["redirected", "teed"])
def test_a_log_file_that_cannot_be_made_is_named_and_its_worker_writes_to_the_console(
    make: Callable[..., Node], capfd: pytest.CaptureFixture[str], console: bool
) -> None:
    remarks: SimpleQueue[str] = SimpleQueue()
    node = make(remark=remarks.put)
    assert node.run("echo said", stdout=Sink(Path("/proc/none"), console=console)) == [0]
    assert remarks.get(timeout=TIMEOUT_S) == "/proc/none: no such file or directory: this output is on the console only"
    assert node.workers.drain(TIMEOUT_S)
    assert capfd.readouterr().out == "said\n"


def test_output_for_nowhere_stays_off_the_console_also_while_the_disk_stands_still(
    make: Callable[..., Node], capfd: pytest.CaptureFixture[str]
) -> None:
    remarks, disk, answers = SimpleQueue[str](), Disk(), threading.Event()
    with pytest.raises(StandsStill):
        disk.do(answers.wait, patience_s=0.0)
    node = make(remark=remarks.put, disk=disk)
    assert node.run("echo filtered", stdout=Sink(NOWHERE, console=False)) == [0]
    assert remarks.empty() and not capfd.readouterr().out
    answers.set()
    assert comes_true(lambda: not disk._stands_still())


def test_a_command_that_no_system_call_takes_cannot_be_started(node: Node) -> None:
    with pytest.raises(CannotStart, match="embedded null byte"):
        node.start_these([WorkerSpec(0, ("sh", "-c", "a\0b"), os.environ)])


def test_an_interrupted_start_passes_the_interruption_on_and_leaves_nothing(make: Callable[..., Node]) -> None:
    """A Ctrl-C reaches the thread that starts, between the first worker and the second."""
    ticks = iter([1.0])

    def clock() -> float:
        for tick in ticks if threading.current_thread() is threading.main_thread() else (2.0,):
            return tick
        raise KeyboardInterrupt

    node = make(clock=clock)
    with pytest.raises(KeyboardInterrupt):
        node.start(FOREVER, FOREVER)


def test_one_generation_at_a_time(node: Node) -> None:
    node.start(FOREVER, FOREVER)
    with pytest.raises(RuntimeError, match=r"not collected yet: \[0\]"):
        node.start("exit 0")


def test_one_worker_that_was_collected_may_be_started_again_beside_the_others(node: Node) -> None:
    first, other = node.start("exit 7", FOREVER)
    assert node.collect(node.dead()).code == 7
    (again,) = node.start("exit 8")
    assert again != first
    assert node.collect(node.dead()).code == 8
    assert is_alive(other)


def test_a_death_that_is_told_late_does_not_collect_the_worker_that_runs_in_the_place_of_the_dead(node: Node) -> None:
    (first,) = node.start("exit 7")
    assert node.collect(node.dead()).code == 7
    (again,) = node.start(FOREVER)
    assert node.workers.collect(0, first) is None
    assert is_alive(again)


def test_close_kills_and_reaps_all_stops_the_threads_and_may_be_repeated(node: Node, tmp_path: Path) -> None:
    threads = threading.active_count()
    pids = node.start("trap '' TERM; sleep 1000 & wait", FOREVER, stdout=Sink(tmp_path / "tee"))
    node.workers.close()
    node.workers.close()
    node.disk.close()
    assert not any(is_alive(pid) for pid in pids)
    assert threading.active_count() == threads
    with pytest.raises(RuntimeError, match="closed"):
        node.start("exit 0")


def test_close_is_safe_before_any_start_and_between_generations(make: Callable[..., Node]) -> None:
    make().workers.close()
    node = make()
    node.run("exit 0")
    node.workers.close()
    assert node.inbox.empty()


def test_a_worker_that_cannot_be_killed_in_time_does_not_hold_up_the_close(make: Callable[..., Node]) -> None:
    node = make(close_timeout_s=0.05)
    (pid,) = node.start(FOREVER)
    worker = node.workers._running[0]
    never, other_end = os.pipe()  # never readable, as the pidfd of a worker in uninterruptible sleep
    worker.pidfd = os.dup2(never, worker.pidfd)
    node.workers.close()
    os.close(never)
    os.close(other_end)
    death = worker.process.reap(TIMEOUT_S)
    assert death and death.code == -signal.SIGKILL and not is_alive(pid)


TRACES = """
import ctypes, sys, time
options = int(sys.argv[2]) if sys.argv[2:] else 0
assert ctypes.CDLL(None, use_errno=True).ptrace(0x4206, int(sys.argv[1]), 0, options) == 0
print("traces", flush=True)
time.sleep(1000)
"""
"""PTRACE_SEIZE, and no wait: so a debugger that was stopped, or hangs."""
TRACE_EXIT = "64"
"""PTRACE_O_TRACEEXIT: the process stops in its exit, and is not dead."""


def test_a_worker_that_a_debugger_holds_when_it_is_killed_is_left_behind_and_the_debugger_named(
    make: Callable[..., Node],
) -> None:
    remarks: SimpleQueue[str] = SimpleQueue()
    node = make(remark=remarks.put)
    (pid,) = node.start(FOREVER)
    with subprocess.Popen([sys.executable, "-c", TRACES, str(pid)], stdout=subprocess.PIPE) as debugger:
        try:
            assert debugger.stdout and debugger.stdout.readline() == b"traces\n"
            name = Path(f"/proc/{debugger.pid}/comm").read_text().strip()
            held = f"{name} (pid {debugger.pid})"
            node.workers.signal(signal.SIGKILL)
            assert remarks.get(timeout=TIMEOUT_S) == f"local rank 0 (pid {pid}) is traced by {held}, which may hold it"
            assert node.collect(node.dead()).code == -signal.SIGKILL
            killed = f"a worker that has ended (pid {pid}) is held by {held}, which traces it: end that"
            assert remarks.get(timeout=TIMEOUT_S) == killed
            with pytest.raises(Shortage, match="which traces it: end that"):
                node.start("exit 0")
        finally:
            debugger.kill()
    node.inbox = SimpleQueue()
    assert comes_true(lambda: not is_alive(pid))
    assert node.run("exit 0") == [0]


def test_a_worker_that_ended_by_itself_and_that_a_debugger_holds_keeps_its_exit_code(
    node: Node, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    (pid,) = node.start(f"read line <{gate}; exit 7")
    with subprocess.Popen([sys.executable, "-c", TRACES, str(pid)], stdout=subprocess.PIPE) as debugger:
        try:
            assert debugger.stdout and debugger.stdout.readline() == b"traces\n"
            gate.write_text("go\n")
            assert node.collect(node.dead()).code == 7
        finally:
            debugger.kill()
    node.inbox = SimpleQueue()
    assert comes_true(lambda: not is_alive(pid))
    assert node.run("exit 0") == [0]


def test_a_worker_that_a_debugger_stops_in_its_exit_is_told_and_given_up(node: Node) -> None:
    (pid,) = node.start(FOREVER)
    with subprocess.Popen([sys.executable, "-c", TRACES, str(pid), TRACE_EXIT], stdout=subprocess.PIPE) as debugger:
        try:
            assert debugger.stdout and debugger.stdout.readline() == b"traces\n"
            held = f"{Path(f'/proc/{debugger.pid}/comm').read_text().strip()} (pid {debugger.pid})"
            node.workers.signal(signal.SIGKILL)
            text = f"pid {pid} is held in its exit by {held}, which traces it"
            assert node.stuck.get(timeout=TIMEOUT_S) == (0, pid, text)
            ended = node.workers.give_up(0, pid)
            assert ended and ended.code == -signal.SIGKILL and is_alive(pid)
            with pytest.raises(Shortage, match="which traces it: end that"):
                node.start("exit 0")
        finally:
            debugger.kill()
    node.inbox = SimpleQueue()
    assert comes_true(lambda: not is_alive(pid))
    assert node.run("exit 0") == [0]


def test_a_killed_worker_that_the_kernel_holds_is_told_after_a_while(
    make: Callable[..., Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    """None that can be made here outlives SIGKILL: one that was not killed stands in for it."""
    monkeypatch.setattr(module, "KILLED_MAX_S", 1.0)
    node = make()
    (pid,) = node.start(FOREVER)
    with monkeypatch.context() as deaf:
        deaf.setattr(groups, "kill", lambda leader: None)
        node.workers.signal(signal.SIGKILL)
    rank, told, text = node.stuck.get(timeout=TIMEOUT_S)
    assert (rank, told) == (0, pid) and text.startswith(f"pid {pid} was killed and not dead")
    assert node.stuck.empty()


def test_a_worker_that_its_own_child_traces_is_collected_with_its_exit_code(node: Node) -> None:
    (pid,) = node.start(f"{sys.executable} -c '{TRACES}' $$ & sleep 1000 & wait")
    assert comes_true(lambda: groups.tracer(pid) is not None)
    node.workers.signal(signal.SIGKILL)
    assert node.collect(node.dead()).code == -signal.SIGKILL
    assert not is_alive(pid) and groups.members(pid) == []


@pytest.mark.usefixtures("unhurried")
def test_a_worker_that_is_given_up_and_dies_is_collected_as_any_other(node: Node) -> None:
    (pid,) = node.start(FOREVER)
    assert node.workers.give_up(0, pid + 1) is None
    ended = node.workers.give_up(0, pid)
    assert ended and (ended.local_rank, ended.pid, ended.code) == (0, pid, -signal.SIGKILL) and not is_alive(pid)
    assert node.workers.give_up(0, pid) is None
    node.inbox = SimpleQueue()
    assert node.run("exit 0") == [0]


def test_a_worker_that_does_not_die_is_left_behind_and_until_it_has_died_nothing_starts(
    make: Callable[..., Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    """None that can be made here outlives SIGKILL: one that was not killed stands in for it."""
    node = make()
    (pid,) = node.start(FOREVER)
    monkeypatch.setattr(module, "GIVE_UP_TIMEOUT_S", 0.01)
    with monkeypatch.context() as deaf:
        deaf.setattr(groups, "send", lambda group, signum: True)
        deaf.setattr(groups, "kill", lambda leader: None)
        ended = node.workers.give_up(0, pid)
    assert ended and ended.code == -signal.SIGKILL and is_alive(pid)
    with pytest.raises(Shortage, match=rf"still hangs in the kernel \(pid {pid}\): look at this machine$"):
        node.start("exit 0")
    os.kill(pid, signal.SIGKILL)
    assert comes_true(lambda: not is_alive(pid))
    node.inbox = SimpleQueue()
    assert node.run("exit 0") == [0]


def test_a_generation_costs_no_descriptors_and_leaves_none_at_the_end(
    make: Callable[..., Node], tmp_path: Path
) -> None:
    quiet = os.open("/dev/null", os.O_WRONLY)
    before = descriptors()
    node = make(console=(quiet, quiet))
    to_server = [target for _, target in descriptors() - before if target.startswith(("socket:", "anon_inode:[pidfd]"))]
    out = Sink(tmp_path / "out")
    for _ in range(30):
        node.run("echo a", "echo b >&2", stdout=out, stderr=Sink(tmp_path / "err", console=False))
        with pytest.raises(CannotStart):
            node.start("exit 0", "exit \0 0", stdout=out)
        # two for each of the watcher, the pump and the reaper, one for the console; the pump may still be closing a stream
        assert comes_true(lambda: len(descriptors() - before) == 7 + len(to_server)), descriptors() - before
    node.workers.close()
    assert not descriptors() - before
    os.close(quiet)


def descriptors() -> set[tuple[str, str]]:
    """Return number and target of each open descriptor: what an earlier test still closes is no matter of a later one."""
    found = set()
    for number in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):
            found.add((number, os.readlink(f"/proc/self/fd/{number}")))
    return found


def test_a_stream_goes_where_its_sink_says(make: Callable[..., Node], tmp_path: Path) -> None:
    console = tmp_path / "console"
    shown = os.open(console, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    node = make(console=(shown, shown))
    tee = WorkerSpec(
        0,
        ("sh", "-c", "echo out; echo err >&2"),
        os.environ,
        stdout=Sink(tmp_path / "tee"),
        stderr=Sink(tmp_path / "alone", console=False),
        prefix="[w0]:",
    )
    lost = spec(1, "echo lost; echo lost >&2", stdout=Sink(console=False), stderr=Sink(console=False))
    node.start_these([tee, lost])
    for _ in range(2):
        node.collect(node.dead())
    node.workers.drain(TIMEOUT_S)
    os.close(shown)
    assert (tmp_path / "tee").read_text() == "out\n"
    assert (tmp_path / "alone").read_text() == "err\n"
    assert console.read_text() == "[w0]:out\n"


def test_without_files_a_worker_writes_to_the_agents_own_streams(node: Node, capfd: pytest.CaptureFixture[str]) -> None:
    node.run("echo out; echo err >&2")
    assert capfd.readouterr() == ("out\n", "err\n")


def test_threads_and_the_reaper_come_with_the_first_generation_only(node: Node) -> None:
    before = set(threading.enumerate())  # other tests may have left some

    def threads() -> list[str]:
        new = set(threading.enumerate()) - before
        return sorted(thread.name for thread in new if thread.name.startswith("elastic"))

    assert threads() == [] and node.workers._reaper.pid is None
    node.run("exit 0")
    assert threads() == ["elastic-watcher"]
    pid = node.workers._reaper.pid
    node.run("exit 0")
    assert node.workers._reaper.pid == pid


class RefusingReaper(ReaperProcess):
    """A machine without a process to spare, from the second reaper on until told otherwise."""

    refuses = False

    def __init__(self) -> None:
        super().__init__()
        self.asked = threading.Event()

    def start(self) -> int | None:
        if self.refuses:
            self.asked.set()
            raise BlockingIOError(11, "Resource temporarily unavailable")
        return super().start()


def test_a_reaper_that_cannot_be_replaced_is_asked_for_again_by_the_next_generation(make: Callable[..., Node]) -> None:
    reaper = RefusingReaper()
    node = make(reaper=reaper)
    node.run("exit 0")
    first, reaper.refuses = reaper.pid, True
    assert first is not None
    os.kill(first, signal.SIGKILL)
    assert reaper.asked.wait(TIMEOUT_S)
    assert comes_true(lambda: not node.workers._guarded)
    with pytest.raises(Shortage, match="resource temporarily unavailable"):
        node.start("exit 0")
    reaper.refuses = False
    assert node.run("exit 4") == [4]
    assert reaper.pid != first


@pytest.mark.parametrize(
    ("last", "kept"),
    [((b"out", b"err"), b"err"), ((b"out", b""), b"out"), ((b"", b"err"), b"err"), ((b"", b""), b"")],
)
def test_where_no_file_is_whole_the_last_stream_that_said_something_is_kept(
    last: tuple[bytes, ...], kept: bytes
) -> None:
    found = module._kept([Stream(0, None, 1, b"", last=each) for each in last])
    assert found and found.last == kept
