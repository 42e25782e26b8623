"""The agent's end of a server that forks or executes workers, with real servers."""

from __future__ import annotations

import os
import pickle
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from processes import TIMEOUT_S, comes_true

from elastic.adapters.workers.start import forks
from elastic.adapters.workers.start.forks import Serving, fork_server
from elastic.adapters.workers.start.function import CALL
from elastic.adapters.workers.start.spawner import WorkerStart

GATED = """
import os
if gate := os.environ.pop("GATE", ""):
    open(gate).read()
"""
SHORT_S = 0.1


@pytest.fixture
def server(nothing_left: str) -> Iterator[Callable[[float], forks._Server]]:
    """Execute a server of programs whose answers are waited for this long."""
    made: list[forks._Server] = []

    def execute(answer_timeout_s: float) -> forks._Server:
        made.append(forks._execute("", "-I", "-S", answer_timeout_s=answer_timeout_s))
        return made[-1]

    yield execute
    for each in made:
        each.close()


def test_an_import_that_takes_longer_than_an_answer_may_does_not_count_as_a_death(
    nothing_left: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    main, value, gate = tmp_path / "main.py", tmp_path / "0.0", tmp_path / "gate"
    os.mkfifo(gate)
    main.write_text(GATED)
    call = pickle.dumps((os.getpid, (), {}))
    (tmp_path / CALL).write_bytes(pickle.dumps(({"init_main_from_path": str(main)}, call)))
    environment = {**os.environ, "ELASTIC_ROUND": "0", "RANK": "0"}
    monkeypatch.setenv("GATE", str(gate))
    with closing(fork_server(str(tmp_path), SHORT_S)) as spawner, ThreadPoolExecutor(1) as threads:
        spawner.check([])
        spawned = threads.submit(spawner.spawn, WorkerStart(("no program",), environment, None, None, None))
        with gate.open("w"):  # so it imports
            with pytest.raises(TimeoutError):
                spawned.result(5 * SHORT_S)
            assert spawner._server
            spawner._server._answer_timeout_s = TIMEOUT_S  # this machine may stand still
            spawner._server._control.settimeout(TIMEOUT_S)
        process = spawned.result(TIMEOUT_S)
        assert comes_true(value.exists)
        death = process.reap(TIMEOUT_S)
        assert death and death.code == 0 and pickle.loads(value.read_bytes()) == process.pid


def test_an_import_that_ends_the_server_is_its_death_though_another_process_has_its_socket(
    nothing_left: str, tmp_path: Path
) -> None:
    main, gate = tmp_path / "main.py", tmp_path / "gate"
    os.mkfifo(gate)
    holds = f"import os\ngate = open({str(gate)!r})\nif not os.fork():\n gate.read()\nos._exit(3)\n"
    main.write_text(holds)
    (tmp_path / CALL).write_bytes(pickle.dumps(({"init_main_from_path": str(main)}, pickle.dumps((os.getpid, (), {})))))
    with closing(fork_server(str(tmp_path))) as spawner, gate.open("r+b", buffering=0):
        spawner.check([])
        with pytest.raises(OSError, match="the process that forks the workers has died"):
            spawner.spawn(WorkerStart(("no program",), dict(os.environ), None, None, None))


def test_a_late_answer_is_that_to_no_other_question(server: Callable[[float], forks._Server]) -> None:
    late = server(0.1)
    os.kill(late._pid, signal.SIGSTOP)
    assert late.ask({"command": ["/bin/true"], "environment": {}, "streams": [], "cpus": [0]}) is None
    assert not late.is_alive()
    os.kill(late._pid, signal.SIGCONT)
    assert select.select([late._control], [], [], TIMEOUT_S)[0]
    assert late.ask({"reap": 1}) is None


def test_dead_orphans_are_reaped_though_no_other_worker_is_started(nothing_left: str) -> None:
    with closing(Serving()) as executor:
        leaves = "for i in 1 2 3 4 5; do (sleep 0.05 &); done; exec sleep 1000"
        process = executor.execute(("sh", "-c", leaves), dict(os.environ), None, None)
        assert executor._server
        pid = executor._server._pid
        assert comes_true(lambda: process.pid in children(pid))
        comm = Path(f"/proc/{process.pid}/comm")
        assert comes_true(lambda: comm.read_text() == "sleep\n")  # so it has left them all
        assert comes_true(lambda: children(pid) == [process.pid])
        os.kill(process.pid, signal.SIGKILL)
        death = process.reap(TIMEOUT_S)
        assert death and death.code == -signal.SIGKILL


def children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


IGNORES = """
import os, signal
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
from elastic.adapters.workers.start.forks import Serving
serving = Serving()
first = serving._server
assert first.is_alive()
os.kill(first._pid, signal.SIGKILL)
while first.is_alive():
    pass
process = serving.execute(("sh", "-c", "exit 7"), dict(os.environ), None, None)
print(process.reap(60).code)
serving.close()
print("closed")
"""


def test_a_server_ends_well_beside_a_program_that_ignores_the_ends_of_its_children() -> None:
    here = [sys.executable, "-c", IGNORES]
    ended = subprocess.run(here, capture_output=True, text=True, timeout=2 * TIMEOUT_S, check=False)
    assert (ended.returncode, ended.stdout.split()) == (0, ["7", "closed"]), ended.stderr
