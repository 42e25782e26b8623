"""A store that is served again: its helper dies, is killed, cannot start or stands still."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field
from leftovers import alive_with
from ports import a_row_of
from processes import comes_true, dies, is_alive
from tcpstores import half_torch

from elastic.adapters.clock import SystemClock
from elastic.adapters.rendezvous.reserved_ports import Reservation
from elastic.adapters.store.tcpstore.helper_watch import HelperWatch, Watching, serve_watched
from elastic.adapters.store.tcpstore.wire import Address, Broken, Unsent, WireClient
from elastic.adapters.workers.watch.death_causes import process_deaths
from elastic.core.store_helper import FIRST_STARTS_MAX

ANSWER_S = 60.0
LONG_S = 1_000.0


@define
class Served:
    """A watched store, and what its agent was told."""

    said: list[str] = field(factory=list)
    watch: HelperWatch | None = None
    address: Address = Address("localhost", 0)

    def serves(self, still_s: float = LONG_S) -> int:
        """Begin to serve; return the helper's process id."""
        watching = Watching(SystemClock(), still_s, self.said.append, process_deaths())
        self.watch, self.address = serve_watched(self.address, True, watching)
        return self.pid

    @property
    def pid(self) -> int:
        assert self.watch
        with self.watch.children() as pids:
            (pid,) = pids
        return pid

    def answers(self) -> bool:
        try:
            with WireClient(self.address, ANSWER_S, 1_000) as client:
                client.greet()
                return client.get("nothing") == (b"",)
        except Unsent:
            return False

    def answers_again(self, last: int) -> int:
        """Wait until another helper answers; return its process id."""
        assert dies(last)
        assert comes_true(lambda: self.pid != last)
        assert self.answers()
        return self.pid


@pytest.fixture
def store(nothing_left: str) -> Iterator[Served]:
    served = Served()
    try:
        yield served
    finally:
        if served.watch:
            served.watch.close()
            served.watch.close()


def test_a_helper_is_replaced_as_often_as_it_is_killed_and_is_said_to_be(store: Served) -> None:
    pid = store.serves()
    signals = (signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT)
    for signum in signals:
        assert store.answers()
        with WireClient(store.address, ANSWER_S, 1_000) as client:
            client.greet()
            client.set("key", b"value")
            os.kill(pid, signum)
            pid = store.answers_again(pid)
    for signum, said in zip(signals, store.said, strict=True):
        assert said.startswith(f"the store's helper was killed by {signum.name}")
        assert said.endswith(f"; this node serves store {store.address} again")


def test_where_loading_a_part_of_torch_kills_the_helper_the_next_one_imports_the_whole(
    store: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", half_torch(tmp_path, "import os\nos.kill(os.getpid(), 11)"))
    store.answers_again(store.serves())
    (said,) = store.said
    assert said.startswith("the store's helper was killed by SIGSEGV")


def test_what_becomes_of_a_store_that_does_not_answer_is_known(store: Served) -> None:
    pid = store.serves()
    assert store.answers()
    assert store.watch
    watch = store.watch
    assert comes_true(
        lambda: watch.remedy == "this node serves it, and kills its helper after 1000 s without an answer"
    )
    os.kill(pid, signal.SIGKILL)
    assert comes_true(lambda: watch.remedy == "this node serves it, and its helper is being started")


def test_who_connects_while_no_helper_serves_waits_and_is_not_refused(store: Served) -> None:
    """The socket listens on: no client sees a refusal."""
    pid = store.serves()
    assert store.answers()
    os.kill(pid, signal.SIGKILL)
    assert dies(pid)
    with WireClient(store.address, ANSWER_S, 1_000) as early:
        early.greet()
        assert early.get("nothing") == (b"",)


def test_a_helper_that_stands_still_is_killed_and_replaced(store: Served) -> None:
    pid = store.serves(still_s=2.0)
    assert store.answers()
    os.kill(pid, signal.SIGSTOP)
    second = store.answers_again(pid)
    assert store.said[0].startswith("the store's helper was killed: no answer for 2 s; ")
    os.kill(second, signal.SIGKILL)
    store.answers_again(second)
    assert any(said.startswith("the store's helper was killed by SIGKILL") for said in store.said[1:])


AGENT = """
import sys
from elastic.adapters.clock import SystemClock
from elastic.adapters.rendezvous.reserved_ports import Reservation
from elastic.adapters.store.tcpstore.helper_watch import Watching, serve_watched
from elastic.adapters.store.tcpstore.wire import Address, WireClient
say = lambda text: print(text, flush=True)
watch, at = serve_watched(Address('127.0.0.1', 0), True, Watching(SystemClock(), 20.0, say, str))
with WireClient(at, 60.0, 1_000) as client:
    client.greet()
with watch.children() as (pid,):
    print(pid, flush=True)
sys.stdin.read()
watch.close()
"""


def test_a_host_that_stood_still_with_its_helper_kills_nobody(nothing_left: str) -> None:
    """For longer than the span, and the agent runs first again."""
    with subprocess.Popen(
        [sys.executable, "-c", AGENT.replace("20.0", "8.0")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as agent:
        assert agent.stdin and agent.stdout
        helper = int(agent.stdout.readline())
        for pid in (agent.pid, helper):
            os.kill(pid, signal.SIGSTOP)
        time.sleep(9.0)  # the span is over
        os.kill(agent.pid, signal.SIGCONT)
        readable, _, _ = select.select([agent.stdout], [], [], 0.5)
        os.kill(helper, signal.SIGCONT)
        assert not readable
        agent.stdin.close()
        assert agent.wait() == 0
        assert agent.stdout.read() == ""


def test_the_helper_that_was_started_last_ends_with_its_agent_too(nothing_left: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", AGENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as agent:
        assert agent.stdout
        first = int(agent.stdout.readline())
        os.kill(first, signal.SIGKILL)
        assert agent.stdout.readline().startswith("the store's helper -9; ")
        assert comes_true(lambda: len(helpers(nothing_left)) == 1)
        (second,) = helpers(nothing_left)
        agent.kill()
    assert dies(second)


def helpers(token: str) -> list[int]:
    return [each.pid for each in alive_with(token) if "store_host.py" in each.command]


def torch_is(folder: Path, monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    """Have the helpers that are started from now on import this."""
    (folder / "torch.py").write_text(program)
    monkeypatch.setenv("PYTHONPATH", str(folder))


def test_a_helper_that_can_never_start_is_given_up_in_the_end(
    store: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch_is(tmp_path, monkeypatch, "raise SystemExit(7)\n")
    store.serves()
    assert comes_true(lambda: len(store.said) == 2), "the first failure, and the end"
    assert store.said[0].startswith("the store's helper ended with exit code 7; this node serves store ")
    assert store.said[1] == (
        f"the store's helper ended with exit code 7; {FIRST_STARTS_MAX} in a row, so this node serves store "
        f"{store.address} no longer; start its agent again"
    )
    assert comes_true(lambda: not store.answers())


def test_a_helper_that_dies_at_its_start_is_replaced_by_one_that_can(
    store: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch_is(tmp_path, monkeypatch, "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n")
    store.serves()
    assert comes_true(lambda: bool(store.said))
    monkeypatch.delenv("PYTHONPATH")
    assert store.answers()
    assert store.said[0].startswith("the store's helper was killed by SIGSEGV")


def test_a_closed_watch_starts_no_helper(store: Served) -> None:
    pid = store.serves()
    assert store.watch
    store.watch.close()
    assert not is_alive(pid)
    assert not store.answers()
    assert store.said == []


def counts(address: Address) -> int:
    """How often a key was counted in a round's store. A client of the round before may be there for a moment."""
    with WireClient(address, ANSWER_S, 1_000) as client:
        client.greet()
        return client.add("key", 1)


@contextmanager
def rounds(store: Served, count: int) -> Iterator[list[Address]]:
    """Serve the stores of so many rounds, each at a port of its own, and yield where."""
    with Reservation("localhost") as held:
        yield [one_more(store, held) for _ in range(count)]


def one_more(store: Served, held: Reservation) -> Address:
    assert store.watch
    held.renew()
    store.watch.serve_round(held.listening(held.endpoint.port))
    return Address("localhost", held.endpoint.port)


def test_the_helper_serves_the_last_round_s_store_beside_the_job_s(store: Served) -> None:
    """Also if it is asked while it imports torch."""
    store.serves()
    with rounds(store, 2) as (first, second):
        assert [counts(second), counts(second), counts(store.address)] == [1, 2, 1]
        with pytest.raises(Unsent):
            counts(first)


def test_a_client_of_the_last_round_meets_its_end(store: Served) -> None:
    store.serves()
    with Reservation("localhost") as held, WireClient(one_more(store, held), ANSWER_S, 1_000) as client:
        client.greet()
        one_more(store, held)
        assert comes_true(lambda: is_broken(client))


def test_a_helper_that_is_started_again_serves_the_round_s_store_again_too(store: Served) -> None:
    pid = store.serves()
    with rounds(store, 1) as (address,):
        assert [counts(address), counts(address)] == [1, 2]
        os.kill(pid, signal.SIGKILL)
        store.answers_again(pid)
        assert counts(address) == 1


def test_one_port_alone_has_the_stores_of_all_rounds(store: Served) -> None:
    store.serves()
    (port,) = a_row_of(1)
    address = Address("localhost", port)
    with Reservation("localhost", [port]) as held:
        for _ in range(3):
            assert one_more(store, held) == address
            assert comes_true(lambda: counts_anew(address))
            assert counts(address) == 2


def is_broken(client: WireClient) -> bool:
    try:
        client.add("key", 1)
    except Broken:
        return True
    return False


def counts_anew(address: Address) -> bool:
    try:
        return counts(address) == 1
    except (Broken, Unsent):
        return False


def test_a_round_is_not_served_when_no_helper_can_be_started(store: Served, tmp_path: Path, monkeypatch: Any) -> None:
    """A client is refused, and does not wait in vain."""
    torch_is(tmp_path, monkeypatch, "raise ImportError")
    store.serves()
    with rounds(store, 1) as (before,):
        assert store.watch and comes_true(lambda: bool(store.watch and store.watch.has_given_up))
        with rounds(store, 1) as (after,):
            for address in (before, after):
                with pytest.raises(ConnectionRefusedError):
                    socket.create_connection((address.host, address.port), ANSWER_S)
