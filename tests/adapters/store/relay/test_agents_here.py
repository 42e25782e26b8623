"""The agents of this host, found by their sockets: what is believed, what is not, and what a dead one leaves behind."""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path

import pytest
from conformance import Clients, Conformance, born
from processes import comes_true

from elastic.adapters.clock import SystemClock
from elastic.adapters.store.connection import MemoryConnection
from elastic.adapters.store.memory_store import EncodedBackend, MemoryBackend, MemoryStore
from elastic.adapters.store.port import Backend, Denied, OutOfReach, StoreError
from elastic.adapters.store.relay import agents_here, relay_protocol
from elastic.adapters.store.relay.agents_here import JobHere, jobs_here
from elastic.adapters.store.relay.relay_backend import RelayBackend
from elastic.adapters.store.relay.relay_server import OwnJob, Relay, sockets_here

AGENT = """
import time
from elastic.adapters.clock import SystemClock
from elastic.adapters.store.connection import MemoryConnection
from elastic.adapters.store.relay.relay_server import OwnJob, Relay
made = MemoryConnection(SystemClock())
print(Relay(made.beside, own=OwnJob("train", made.place, made.for_others)).path, flush=True)
time.sleep(600)
"""
NOBODY = 65_534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")


@pytest.fixture(autouse=True)
def folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where sockets are in this test: nobody else's."""
    made = tmp_path_factory.mktemp("s")
    monkeypatch.setattr("tempfile.tempdir", str(made))
    return made


@contextmanager
def agent(run_id: str, store: str = "in memory") -> Iterator[tuple[Relay, MemoryStore]]:
    values, clock = MemoryStore(), SystemClock()
    served = Relay(MemoryConnection(clock).beside, own=OwnJob(run_id, store, lambda: EncodedBackend(values, clock)))
    try:
        yield served, values
    finally:
        served.close()


@contextmanager
def listening(folder: Path, answer: bytes | None, user: int | None = None) -> Iterator[str]:
    """Somebody who listens like an agent's relay, and gives this answer to whatever comes; None: none."""
    with agent("pattern") as (served, _):
        name = Path(served.path).name
    path = folder / "elastic-relay-other" / name
    path.parent.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(str(path))
        server.listen()

        def serve() -> None:
            with ExitStack() as held:
                while True:
                    try:
                        client = held.enter_context(server.accept()[0])
                        if answer is not None:
                            client.sendall(answer)
                            client.shutdown(socket.SHUT_WR)
                    except OSError:
                        return

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield str(path)
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()
            path.unlink()
            path.parent.rmdir()


class TestOwnJobOfMemory(Conformance):
    """The node's own client and those that come through its socket see the same register and records."""

    @pytest.fixture
    def client(self) -> Iterator[Clients]:
        with agent("train") as (served, store), ExitStack() as stack:
            own = [True]

            def make() -> Backend:
                own[0] = not own[0]
                asks = partial(RelayBackend, served.path, None, SystemClock())
                client = MemoryBackend(store, SystemClock()) if own[0] else asks()
                stack.callback(client.close)
                return client

            yield make


def found() -> list[tuple[str, str]]:
    return [(job.run_id, job.store) for job in jobs_here(SystemClock())[0]]


def test_agents_of_one_job_are_one_and_jobs_in_memory_are_told_apart() -> None:
    with agent("a"), agent("a"), agent("b", "gpu-01:29400"), agent("b", "gpu-01:29400"), agent("b", "gpu-02:29400"):
        assert found() == [("a", "in memory")] * 2 + [("b", "gpu-01:29400"), ("b", "gpu-02:29400")]
    assert found() == []


def test_a_host_without_a_free_thread_is_asked_one_agent_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(count: int) -> None:
        raise RuntimeError("can't start new thread")

    with agent("a"), agent("b", "gpu-01:29400"):
        monkeypatch.setattr(agents_here, "ThreadPoolExecutor", none)
        assert found() == [("a", "in memory"), ("b", "gpu-01:29400")]


def test_who_asks_reads_and_writes_the_agents_register_and_not_one_of_their_workers() -> None:
    with agent("train") as (_, store):
        ((job,), silent) = jobs_here(SystemClock())
        with closing(job.client(SystemClock())) as client:
            assert client.set(born(), None).state == born() == store.state
        assert silent == 0


def test_a_relay_without_a_job_of_its_own_is_none(tmp_path: Path) -> None:
    served = Relay(MemoryConnection(SystemClock()).beside)
    with closing(served), closing(RelayBackend(served.path, None, SystemClock())) as client:
        with pytest.raises(Denied):
            client.get()
        assert jobs_here(SystemClock()) == ([], 1)


def test_an_agent_that_was_killed_is_not_found_and_what_it_left_is_removed() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", AGENT], stdout=subprocess.PIPE, text=True, env=environment()
    ) as process:
        try:
            assert process.stdout
            path = Path(process.stdout.readline().strip())
            assert found() == [("train", "in memory")]
        finally:
            process.kill()
    assert path.exists() and jobs_here(SystemClock()) == ([], 0), "who refuses is no agent that is silent"
    os.utime(path.parent, (0, 0))
    assert jobs_here(SystemClock()) == ([], 0) and not path.parent.exists()


@pytest.mark.parametrize("name", ["", "another-host", "own"])
def test_a_folder_without_a_socket_of_this_host_is_no_silent_agent(folder: Path, name: str) -> None:
    """It is empty; or of another host, or of an earlier boot; or of an agent that has not bound its socket yet."""
    left = folder / "elastic-relay-left"
    left.mkdir(mode=0o700)
    with ExitStack() as held:
        if name == "another-host":
            held.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)).bind(str(left / name))
        elif name:
            with agent("pattern") as (served, _):
                (left / Path(served.path).name).touch()
        assert (sockets_here(), jobs_here(SystemClock())) == ([], ([], 0))


def environment() -> dict[str, str]:
    return {**os.environ, "TMPDIR": tempfile.gettempdir()}


def test_an_agent_that_stands_still_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agents_here, "_ANSWER_S", 0.2)
    with subprocess.Popen(
        [sys.executable, "-c", AGENT], stdout=subprocess.PIPE, text=True, env=environment()
    ) as process:
        try:
            assert process.stdout and process.stdout.readline()
            process.send_signal(signal.SIGSTOP)
            assert jobs_here(SystemClock()) == ([], 1)
            process.send_signal(signal.SIGCONT)
            assert comes_true(lambda: found() == [("train", "in memory")])
        finally:
            process.kill()


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200 OK\r\n\r\n",
        struct.pack(">I", 2**31),
        relay_protocol.framed(relay_protocol.Noted()),
        relay_protocol.framed(relay_protocol.Welcome(None)),
        relay_protocol.framed(relay_protocol.Welcome(None, ("x" * 10_000, "y"))),
        relay_protocol.framed(relay_protocol.Failed("KeyboardInterrupt", "\x1b[2J")),
    ],
)
def test_what_is_no_answer_of_ours_is_believed_nothing(folder: Path, answer: bytes) -> None:
    with listening(folder, answer):
        assert jobs_here(SystemClock()) == ([], 1)


def test_who_listens_and_says_nothing_is_not_waited_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agents_here, "_ANSWER_S", 0.2)

    def told() -> tuple[list[str], int]:
        jobs, silent = jobs_here(SystemClock())
        return [job.run_id for job in jobs], silent

    with listening(folder, None), agent("train"):
        assert comes_true(lambda: told() == (["train"], 1)), "a loaded host may need more than one look"


def linked(folder: Path) -> None:
    """Put a link in the folder's place."""
    folder.rename(folder.with_name("elsewhere"))
    folder.symlink_to(folder.with_name("elsewhere"))


@pytest.mark.parametrize("spoil", [lambda path: path.chmod(0o711), linked])
def test_a_socket_in_a_folder_that_is_not_this_user_s_alone_is_not_asked(spoil: Callable[[Path], object]) -> None:
    with agent("train") as (served, _):
        spoil(Path(served.path).parent)
        assert sockets_here() == []


@as_root
def test_a_folder_of_another_user_is_not_looked_into() -> None:
    with agent("train") as (served, _):
        os.chown(Path(served.path).parent, NOBODY, -1)
        assert sockets_here() == []


def as_nobody(act: Callable[[], object]) -> int:
    """Act as another user, in a child; return its exit code."""
    child = os.fork()
    if not child:
        try:
            os.setuid(NOBODY)
            act()
        except BaseException:  # noqa: BLE001 the code says it
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@as_root
def test_another_user_s_process_that_listens_at_our_path_is_not_believed(folder: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(str(folder / "socket"))
        assert as_nobody(server.listen) == 0  # the kernel keeps who listened
        client = RelayBackend(str(folder / "socket"), None, SystemClock())
        with closing(client), pytest.raises(Denied, match="another user"):
            client.job()


@as_root
def test_another_user_is_answered_nothing_even_where_the_folder_lets_it_in(monkeypatch: pytest.MonkeyPatch) -> None:
    with ExitStack() as held:
        made = held.enter_context(tempfile.TemporaryDirectory(dir="/tmp"))  # pytest's own folders let nobody else in
        monkeypatch.setattr("tempfile.tempdir", made)
        served, _ = held.enter_context(agent("train"))
        for path, mode in ((made, 0o711), (Path(served.path).parent, 0o711), (served.path, 0o666)):
            os.chmod(path, mode)

        def asks(space: str | None) -> None:
            with closing(RelayBackend(served.path, space, SystemClock())) as client:
                client._greet = partial(_greets, space)  # type: ignore[method-assign]
                client.get()

        assert (as_nobody(partial(asks, None)), as_nobody(partial(asks, "worker"))) == (1, 0)


def _greets(space: str | None, connection: socket.socket) -> None:
    """Greet without a look at who listens."""
    first = relay_protocol.Ask() if space is None else relay_protocol.Hello(space)
    relay_protocol.send(connection, first)
    if isinstance(relay_protocol.answer(connection), relay_protocol.Failed):
        raise OutOfReach("refused")


def test_a_long_directory_for_temporary_files_is_looked_for_in_tmp(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = folder / ("x" * 120)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    with agent("long") as (served, _):
        assert served.path in sockets_here() and served.path.startswith("/tmp/")


def test_a_job_that_has_gone_since_says_so() -> None:
    with agent("train") as (served, _):
        gone = JobHere("train", "in memory", served.path, os.getpid())
    with closing(gone.client(SystemClock())) as client, pytest.raises(StoreError, match="the agent, `elastic launch`"):
        client.get()
