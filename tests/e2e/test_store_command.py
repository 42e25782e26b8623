"""`elastic store`: a store that outlives the agents that meet there, and leaves nothing behind, however it ends."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from jobs import CONF, Job, Jobs, alive, codes, end, lose, run, slots, worlds
from launches import ELASTIC, TIMEOUT_S
from leftovers import alive_with, left_after
from processes import TIMEOUT_S as SOON_S
from processes import comes_true, dies, signal_another_thread

from elastic.adapters.addresses import is_loopback, outward
from elastic.adapters.clock import SystemClock
from elastic.adapters.store.port import Backend
from elastic.adapters.store.tcpstore.tcpstore import TCPStoreBackend
from elastic.adapters.store.tcpstore.wire import Address

Command = subprocess.Popen[str]
READY = re.compile(r"elastic  store localhost:(\d+) serves · nodes meet there with --rdzv-endpoint=localhost:\1\n")


@contextmanager
def command(*under: str, host: str = "localhost") -> Iterator[Command]:
    """The real command, in a session of its own as in a terminal."""
    with subprocess.Popen(
        [*under, ELASTIC, "store", f"--endpoint={host}:0"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def ready(process: Command) -> Address:
    """Where it serves, when it has said so."""
    assert process.stdout
    readable, _, _ = select.select([process.stdout], [], [], TIMEOUT_S)
    said = READY.fullmatch(process.stdout.readline()) if readable else None
    assert said, "it does not say where it serves"
    return Address("localhost", int(said[1]))


def helper(token: str) -> int:
    """The process that serves."""
    (pid,) = [each.pid for each in alive_with(token) if "store_host.py" in each.command]
    return pid


def answers(address: Address) -> bool:
    backend: Backend = TCPStoreBackend(address, "nobody", SystemClock(), timeout_s=SOON_S)
    try:
        return backend.get().state is None
    finally:
        backend.close()


def test_a_store_hears_signals_that_were_blocked(nothing_left: str) -> None:
    blocks = (
        "import os, sys, signal as s; s.pthread_sigmask(s.SIG_BLOCK, {s.SIGTERM}); os.execv(sys.argv[1], sys.argv[1:])"
    )
    with command(sys.executable, "-c", blocks) as process:
        ready(process)
        process.terminate()
        _, err = process.communicate(timeout=TIMEOUT_S)
    assert "SIGTERM: blocked when this program began, heard from now on" in err


@pytest.fixture
def store_server(nothing_left: str) -> Iterator[Address]:
    with command() as process:
        yield ready(process)


def job_at(job: Job, address: Address) -> Job:
    job.store = address
    return job


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, pytest.param(signal.SIGHUP, marks=pytest.mark.long)])
def test_it_serves_from_its_first_line_on_until_a_signal_comes(nothing_left: str, signum: signal.Signals) -> None:
    """The signal reaches the whole process group, as Ctrl-C does."""
    with command() as process:
        assert answers(ready(process))
        assert os.getpgid(process.pid) == process.pid
        os.killpg(process.pid, signum)
        out, err = process.communicate(timeout=SOON_S)
    assert (process.returncode, out, err) == (128 + signum, "", f"elastic  store stopped by {signum.name}\n")
    assert left_after(nothing_left, 0.0) == []


def test_a_signal_that_another_thread_is_given_ends_it(nothing_left: str) -> None:
    """A signal that comes just before the main thread begins to wait ends that wait no more than this one does."""
    with command() as process:
        assert answers(ready(process))
        signal_another_thread(process.pid, signal.SIGTERM)
        _, err = process.communicate(timeout=SOON_S)
    assert (process.returncode, err) == (143, "elastic  store stopped by SIGTERM\n")


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]"])
def test_who_serves_at_all_addresses_is_told_one_that_leads_other_nodes_there(nothing_left: str, host: str) -> None:
    with command(host=host) as process:
        assert process.stdout
        store, meeting = re.findall(r"(\S+):\d+(?= serves|\n)", process.stdout.readline())
        own = next(iter(outward()))
        assert (store, meeting) == (host, f"--rdzv-endpoint={own}") and not is_loopback(own)


def test_a_signal_while_it_still_starts_ends_it_too(nothing_left: str) -> None:
    with command() as process:
        assert comes_true(lambda: any("store_host.py" in each.command for each in alive_with(nothing_left)))
        process.terminate()
        out, err = process.communicate(timeout=SOON_S)
    assert (process.returncode, out, err) == (143, "", "elastic  store stopped by SIGTERM\n")
    assert left_after(nothing_left, 0.0) == []


def test_nothing_outlives_it_when_it_is_killed_and_no_token_was_handed_on(
    nothing_left: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ELASTIC_STORE_TOKEN", "correct horse battery staple")
    with command() as process:
        ready(process)
        server = helper(nothing_left)
        assert b"horse" not in Path(f"/proc/{server}/environ").read_bytes()
        process.kill()
        assert dies(server)


@pytest.mark.parametrize("under", [(), ("env", "--ignore-signal=CHLD")], ids=["", "who left SIGCHLD ignored"])
def test_when_its_process_dies_it_says_so_and_serves_again(nothing_left: str, under: tuple[str, ...]) -> None:
    with command(*under) as process:
        address = ready(process)
        os.kill(helper(nothing_left), signal.SIGKILL)
        assert process.stderr
        said = process.stderr.readline()
        assert said.startswith("elastic  the store's helper was killed by SIGKILL, ")
        assert said.endswith(f"; this node serves store {address} again\n")
        assert comes_true(lambda: answers(address))
        process.terminate()
        out, err = process.communicate(timeout=SOON_S)
    assert (process.returncode, out, err) == (143, "", "elastic  store stopped by SIGTERM\n")


def test_when_its_process_cannot_start_it_says_so_and_ends_with_3(
    nothing_left: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "torch.py").write_text("raise SystemExit(7)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with command() as process:
        out, err = process.communicate(timeout=SOON_S)
    assert (process.returncode, out) == (3, "")
    *deaths, last = err.splitlines()
    assert all(each.startswith("elastic  the store's helper ended with exit code 7; ") for each in deaths)
    assert last == "elastic  store gone, its process cannot be started; start it again, or no job can re-form"


def test_under_nohup_it_outlives_its_terminal(nothing_left: str) -> None:
    with command("nohup") as process:
        address = ready(process)
        process.send_signal(signal.SIGHUP)
        assert answers(address)
        process.terminate()
        process.communicate(timeout=SOON_S)
    assert process.returncode == 143


def test_nobody_who_reads_is_no_reason_to_end(nothing_left: str) -> None:
    with command() as process:
        assert process.stdout and process.stderr
        address = ready(process)
        process.stdout.close()
        process.stderr.close()
        assert answers(address)
        process.terminate()
        assert process.wait(SOON_S) == 143


@pytest.mark.parametrize("is_host", ["false", "auto"])
def test_the_node_on_the_endpoint_s_host_dies_and_the_others_go_on(
    tcpstore_job: Jobs, store_server: Address, is_host: str
) -> None:
    """Without it, the store would have died with that node."""
    conf = f"--rdzv-conf={CONF}is_host={is_host}"
    three = job_at(tcpstore_job("2:3", "--max-restarts=0", "--last-call=1000", conf), store_server)
    agents = three.nodes("abc")
    assert worlds(run(agents)) == {(0, "restart 0 of 3 workers")}
    lose(agents[0])
    assert worlds(run(agents[1:])) == {(1, "restart 0 of 2 workers")}
    three.reaches(lambda state: slots(state) == ["b", "c"])
    assert codes(end(agents[1:])) == [0, 0]


def test_several_jobs_meet_there_at_one_time_and_one_after_the_other(tcpstore_job: Jobs, store_server: Address) -> None:
    one, other, third = (job_at(tcpstore_job("1:2", "--last-call=0.1"), store_server) for _ in range(3))
    first, second = one.nodes("a"), other.nodes("b")
    run(first)
    others = run(second)
    assert worlds(others) == {(0, "restart 0 of 1 workers")}
    assert codes(end(first)) == [0]
    assert alive(others)
    last = third.nodes("c")
    run(last)
    assert codes(end([*second, *last])) == [0, 0]
