"""Who serves the store: one agent on the endpoint's host, for as long as it lives."""

from __future__ import annotations

import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest
from netlab import network
from processes import comes_true, dies, is_alive
from tcpstores import half_torch

from elastic.adapters.store.tcpstore.serving import CannotServe, address_towards, check_is_here, serve
from elastic.adapters.store.tcpstore.wire import Address, Unsent, WireClient

ANSWER_S = 60.0
ELSEWHERE = "192.0.2.1"
"""An address for documentation: no host has it."""

AGENT = """
import time
from elastic.adapters.store.tcpstore.serving import serve
from elastic.adapters.store.tcpstore.wire import Address
host, at = serve(Address('127.0.0.1', 0), True)
print(host.pid, at.port, flush=True)
time.sleep(60)
"""


def answers(address: Address) -> bool:
    try:
        with WireClient(address, ANSWER_S, 1_000) as client:
            client.greet()
            return client.get("nothing") == (b"",)
    except Unsent:
        return False


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", socket.gethostname()])
def test_of_two_agents_on_the_endpoints_host_one_serves_and_both_reach_it(
    nothing_left: str, port: int, host: str
) -> None:
    endpoint = Address(host, port)
    first, at = serve(endpoint, None)
    second, also_at = serve(endpoint, None)
    assert first and not second
    assert at == also_at == endpoint
    assert answers(endpoint)
    first.close()
    first.close()
    assert not answers(endpoint)


def test_port_0_becomes_a_real_one(nothing_left: str) -> None:
    host, at = serve(Address("localhost", 0), None)
    assert host and at.port > 0
    assert answers(at)
    host.close()


def test_who_is_not_to_serve_does_not(port: int) -> None:
    endpoint = Address("localhost", port)
    assert serve(endpoint, False) == (None, endpoint)
    assert not answers(endpoint)


def test_an_endpoint_elsewhere_is_not_served_here() -> None:
    endpoint = Address(ELSEWHERE, 29_400)
    assert serve(endpoint, None) == (None, endpoint)


def test_who_must_serve_and_cannot_says_why() -> None:
    with socket.create_server(("", 0)) as taken:
        endpoint = Address("127.0.0.1", taken.getsockname()[1])
        with pytest.raises(CannotServe, match=f"127.0.0.1:{endpoint.port}.*somebody listens there already"):
            serve(endpoint, True)
    with pytest.raises(
        CannotServe, match=f"{ELSEWHERE}:29400.*cannot assign requested address; name an address or name"
    ):
        check_is_here(Address(ELSEWHERE, 29_400))


def test_who_connects_while_the_helper_still_starts_waits_and_is_served(nothing_left: str) -> None:
    host, at = serve(Address("127.0.0.1", 0), True)
    assert host
    with WireClient(at, ANSWER_S, 1_000) as early:
        early.greet()
        early.set("key", b"value")
        assert early.get("key") == (b"value",)
    host.close()


def served_and_imported(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> str:
    """Serve a store that answers; return what Python says of its helper's imports."""
    monkeypatch.setenv("PYTHONPROFILEIMPORTTIME", "1")
    host, at = serve(Address("127.0.0.1", 0), True)
    assert host and answers(at)
    host.close()
    return capfd.readouterr().err


def test_a_helper_loads_the_library_of_torch_and_nothing_that_torch_imports(
    nothing_left: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    imported = served_and_imported(capfd, monkeypatch)
    assert "socket\n" in imported and "torch.nn\n" not in imported and "numpy.lib\n" not in imported


@pytest.mark.parametrize(
    "library", ["raise ImportError('libnccl.so.2')", "", "def _c10d_init(): raise RuntimeError", "_c10d_init = 1"]
)
def test_a_helper_imports_the_whole_of_a_torch_whose_library_cannot_be_loaded_alone(
    nothing_left: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, library: str
) -> None:
    monkeypatch.setenv("PYTHONPATH", half_torch(tmp_path, library))
    imported = served_and_imported(capfd, monkeypatch)
    assert "torch.nn\n" in imported


WITHOUT_SOCKETS = """
def _c10d_init(): pass
class _distributed_c10d:
    def TCPStore(*where, **options): raise NotImplementedError("libuv does not support a listen fd.")
"""


def test_a_torch_whose_server_takes_no_socket_is_told(
    nothing_left: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PYTHONPATH", half_torch(tmp_path, WITHOUT_SOCKETS))
    (tmp_path / "torch" / "version.py").write_text("__version__ = '2.7.1'")
    host, _ = serve(Address("127.0.0.1", 0), True)
    assert host
    with closing(host):
        assert comes_true(lambda: not host.lives, ANSWER_S)
        assert host.wait() == 1
    said = "elastic  store: torch 2.7.1 cannot serve on the agent's socket: install torch 2.8 or later\n"
    assert capfd.readouterr().err == said


def test_the_store_outlives_the_signals_of_a_terminal_but_not_its_agent(nothing_left: str) -> None:
    with subprocess.Popen([sys.executable, "-c", AGENT], stdout=subprocess.PIPE, text=True) as agent:
        assert agent.stdout
        pid, port = map(int, agent.stdout.readline().split())
        address = Address("127.0.0.1", port)
        assert answers(address)
        for signum in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2):
            os.kill(pid, signum)
        assert answers(address)
        agent.kill()
    assert dies(pid)
    assert comes_true(lambda: not answers(address))


def connections(pid: int, port: int) -> int:
    """How many connections to this port stand on the host of this process."""
    tables = "".join(Path(f"/proc/{pid}/net/{name}").read_text() for name in ("tcp", "tcp6"))
    rows = [line.split() for line in tables.splitlines()]
    return sum(row[1].endswith(f":{port:04X}") and row[3] == "01" for row in rows)


def test_the_store_of_a_host_that_has_no_ipv6_has_its_own_client(nothing_left: str) -> None:
    """The server ends minutes later if torch's own client cannot connect."""
    with network() as lab:
        host = lab.host("a")
        off = [f"net.ipv6.conf.{name}.disable_ipv6=1" for name in ("all", "default")]
        subprocess.run([*host.under, "sysctl", "-qw", *off], check=True)
        command = [*host.under, sys.executable, "-c", AGENT]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as agent:
            assert agent.stdout
            pid, port = map(int, agent.stdout.readline().split())
            assert comes_true(lambda: connections(pid, port) == 1, ANSWER_S)
            agent.kill()
        assert dies(pid)


RANK = """
import multiprocessing, os, sys
from elastic.adapters.store.tcpstore.serving import serve
from elastic.adapters.store.tcpstore.wire import Address

def rank():
    host, at = serve(Address("127.0.0.1", 0), True, outlives=True)
    host.release(is_needed=False)
    if sys.argv[2] == "needed":
        assert serve(at, None, outlives=True) == (host, at)
    if not os.fork():
        sys.exit()
    os.wait()
    assert host.lives, "it ends with its process, and not with a child that this forked"
    print(host.pid, at.port, flush=True)
    os.read(int(sys.argv[3]), 1)

if sys.argv[1] == "script":
    rank()
else:
    ranks = multiprocessing.get_context("fork").Process(target=rank)
    ranks.start()
    ranks.join()
"""


@pytest.mark.parametrize("needed", ["needed", "not needed"])
@pytest.mark.parametrize("way", ["script", "multiprocessing"])
def test_a_store_that_may_outlive_its_process_does_so_where_it_is_needed(
    nothing_left: str, tmp_path: Path, way: str, needed: str
) -> None:
    """The next job at its port would meet the last one's verdict there. A child of multiprocessing runs no atexit."""
    (program := tmp_path / "rank.py").write_text(RANK)
    gate, opens = os.pipe()
    given = [sys.executable, str(program), way, needed, str(gate)]
    with subprocess.Popen(given, stdout=subprocess.PIPE, pass_fds=(gate,), text=True) as rank:
        assert rank.stdout
        pid, port = map(int, rank.stdout.readline().split())
        with WireClient(Address("127.0.0.1", port), ANSWER_S, 1_000) as client:
            client.greet()
            os.write(opens, b"x")
            assert rank.wait() == 0
            assert is_alive(pid) == (needed == "needed")
            if needed == "needed":
                assert client.get("nothing") == (b"",)
                os.kill(pid, signal.SIGKILL)
    os.close(gate)
    os.close(opens)


def test_a_helper_that_still_starts_goes_with_its_agent_too(
    nothing_left: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would hold the port on which the agent that is started again is to serve."""
    (tmp_path / "torch.py").write_text("import signal\nwhile True:\n    signal.pause()\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    host, _ = serve(Address("127.0.0.1", 0), True)
    assert host
    try:
        host._line.close()
        assert dies(host.pid)
    finally:
        host.close()


def test_the_workers_of_an_agent_do_not_inherit_its_store(nothing_left: str) -> None:
    before = dict(os.environ)
    host, _ = serve(Address("127.0.0.1", 0), True)
    assert host
    assert dict(os.environ) == before
    assert not sockets_of(host.pid) & sockets_of(os.getpid())
    host.close()


def sockets_of(pid: int) -> set[str]:
    """Of a process that may open and close other files meanwhile, as one does that imports torch."""
    numbers = Path(f"/proc/{pid}/fd")
    return {link for number in os.listdir(numbers) if (link := _link(numbers / number)).startswith("socket:")}


def _link(number: Path) -> str:
    try:
        return os.readlink(number)
    except OSError:
        return ""


def test_other_nodes_reach_this_one_by_the_address_that_reaches_the_store() -> None:
    assert address_towards(Address("localhost", 29_400)) == "localhost"
    own = address_towards(Address(ELSEWHERE, 29_400))
    assert own and not own.startswith("127.")
    assert address_towards(Address("no-such-host.invalid", 29_400)) == own  # that of the default route


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_nodes_that_meet_on_a_loopback_address_reach_each_other_there(host: str) -> None:
    assert address_towards(Address(host, 29_400)) == "localhost"
    assert address_towards(Address(host, 0)) == "localhost"


def test_the_node_that_serves_the_store_is_reached_by_a_name_that_others_know_too() -> None:
    """Its own name leads it to itself, often by a loopback address, which would lead the others astray."""
    own = address_towards(Address(socket.gethostname(), 29_400))
    assert own != "localhost" and not own.startswith("127.") and own != "::1"
    outward = address_towards(Address(ELSEWHERE, 29_400))
    assert address_towards(Address(outward, 29_400)) == outward


@contextmanager
def soft_limit(descriptors: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_a_store_takes_more_clients_than_the_soft_limit_has_descriptors(nothing_left: str) -> None:
    in_use = len(os.listdir("/proc/self/fd"))
    with soft_limit(in_use + 64):
        host, at = serve(Address("localhost", 0), None)
    assert host and answers(at)
    with ExitStack() as clients:
        for _ in range(in_use + 128):
            clients.enter_context(WireClient(at, ANSWER_S, 1_000)).greet()
    host.close()


FULL = """
import resource, sys, time
from elastic.adapters.store.tcpstore.serving import serve
from elastic.adapters.store.tcpstore.wire import Address, Unsent, WireClient
host, at = serve(Address('127.0.0.1', 0), True)
clients = [WireClient(at, 60.0, 1_000)]
clients[0].greet()
resource.prlimit(host.pid, resource.RLIMIT_NOFILE, (64, 64))
try:
    while len(clients) < 128:
        clients.append(WireClient(at, 60.0, 1_000))
        clients[-1].greet()
except Unsent as error:
    print(error, flush=True)
sys.stdin.read()
host.close()
"""


def test_a_store_that_is_out_of_descriptors_says_so_and_so_does_the_client_that_it_cannot_take(
    nothing_left: str,
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", FULL], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as agent:
        assert agent.stdin and agent.stdout and agent.stderr
        assert "no descriptor left" in agent.stdout.readline()
        assert agent.stderr.readline() == (
            "elastic  store: its 64 descriptors are in use, and no other node can connect; raise ulimit -Hn here\n"
        )
        agent.stdin.close()
