"""What somebody else writes under a job's keys: a clear end or no effect, nothing is executed, running workers run on."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from attrs import evolve
from jobs import PATIENT, TTL_S, Job, Jobs, alive, client_of, codes, end, kill, prefix, run, worlds
from launches import TIMEOUT_S, Launcher
from leftovers import left_after
from processes import is_alive

from elastic.adapters.store.notes import FAULTS
from elastic.core.rendezvous import RendezvousState, codec
from elastic.core.world import Fault, Node

MEBIBYTE = 1 << 20
KEEP_ALIVE_S = 0.5
UNSEEN_S = 1.0
"""Three looks at the register: time enough to do something wrong."""

Forge = Callable[[RendezvousState], bytes]


def breaking_an_invariant(state: RendezvousState) -> bytes:
    return codec.encode(evolve(state, version=state.version + 1, failures=1))


def taken_by_no_edit(state: RendezvousState) -> bytes:
    """One that stands by itself, but a complete round never shrinks."""
    first = dict(list(state.seats.items())[:1])
    return codec.encode(evolve(state, version=state.version + 1, seats=first))


def of_a_newer_format(state: RendezvousState) -> bytes:
    data = codec.encode(evolve(state, version=state.version + 1))
    own, newer = (f'"format":{number},'.encode() for number in (codec.FORMAT, codec.FORMAT + 1))
    assert own in data
    return data.replace(own, newer)


FORGED: dict[str, Forge] = {
    "garbage": lambda _: b"\xff\xfe\x00garbage",
    "a pickle": lambda _: b"cos\nsystem\n(S'touch executed'\ntR.",
    "six mebibytes": lambda _: b"x" * 6 * MEBIBYTE,
    "a state that breaks an invariant": breaking_an_invariant,
    "a step that no edit makes": taken_by_no_edit,
    "a state of a newer format": of_a_newer_format,
}


@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED)
def test_workers_run_on_over_a_forged_register_until_their_node_must_write(
    tcpstore_job: Jobs, launch: Launcher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forge: Forge
) -> None:
    monkeypatch.chdir(tmp_path)
    launch.forged = True
    both = tcpstore_job("1:2", "--last-call=1000", conf=PATIENT)
    agents = both.nodes("ab")
    told = run(agents)
    state = both.reaches(lambda state: state.complete)
    key, value = f"{prefix(both)}/{state.life.nonce}/{state.version + 1}", forge(state)
    with client_of(both) as client:
        client.set(key, value)
        client.get("nothing")  # its answer says that the value is there
        assert not any(agent.says_within("round 1", UNSEEN_S / 2) for agent in agents)
        assert alive(told)
        ended = end(agents)
        assert codes(ended) == [3, 3]
        assert client.get(key) == (value,)
    for one in ended:
        assert str(both.store) in one.err
        assert "Traceback" not in one.err
    assert not Path("executed").exists()


def test_a_forged_register_under_the_first_key_is_refused_before_any_worker_starts(
    tcpstore_job: Jobs, nothing_left: str
) -> None:
    both = tcpstore_job("1")
    with client_of(both) as client:
        client.set(f"{prefix(both)}/root", b"garbage")
        client.get("nothing")
        ended = both.node("a").ends()
        assert client.get(f"{prefix(both)}/root") == (b"garbage",)
    assert ended.code == 3
    assert f"{prefix(both)}/root" in ended.err and "--rdzv-id" in ended.err
    assert left_after(nothing_left, 0.0) == []


def test_a_root_that_somebody_deletes_is_written_again_and_the_job_goes_on(tcpstore_job: Jobs) -> None:
    both = tcpstore_job("1:2", "--last-call=1000", "--max-restarts=1")
    agents = both.nodes("ab")
    told = run(agents)
    both.reaches(lambda state: state.complete)
    with client_of(both) as client:
        client.delete(root := f"{prefix(both)}/root")
        assert client.wait([root], TIMEOUT_S)
    assert alive(told)
    kill(told[0].pid)
    assert worlds(run(agents)) == {(1, "restart 1 of 2 workers")}
    ended = end(agents)
    assert codes(ended) == [0, 0], [one.err for one in ended]


def test_forged_heartbeats_and_failures_change_nothing(tcpstore_job: Jobs) -> None:
    both = tcpstore_job("2", "--max-restarts=1")
    agents = both.nodes("ab")
    told = run(agents)
    state = both.reaches(lambda state: state.complete)
    with client_of(both) as client:
        client.set(f"{prefix(both)}/faults/count", b"3")
        client.set(f"{prefix(both)}/faults/1", b"garbage")
        for node in state.seats:
            client.set(beat_key(both, node), b"\xff garbage")
        client.get("nothing")
    assert not any(agent.says_within("round 1", UNSEEN_S / 2) for agent in agents)
    assert all(is_alive(worker.pid) for worker in told)
    assert codes(end(agents)) == [0, 0]
    assert both.report("a")["failures"] == both.report("b")["failures"] == []


def beat_key(job: Job, node: Node) -> str:
    return f"{prefix(job)}/heartbeat/{quote(str(node), safe='')}"


def test_a_forged_high_heartbeat_is_named_and_evicts_nobody(tcpstore_job: Jobs) -> None:
    """Two TTLs are time enough to take a node for silent, since its own counter is far below the forged one."""
    both = tcpstore_job("1:2", "--last-call=1000")
    agents = both.nodes("ab")
    told = run(agents)
    state = both.reaches(lambda state: state.complete)
    gives_up_at = time.monotonic() + TIMEOUT_S
    with client_of(both) as client:
        while not agents[0].says_within("warning: a forged heartbeat of b", 1.4 * KEEP_ALIVE_S):
            assert time.monotonic() < gives_up_at
            assert not agents[0].says_within("round 1", 0)
            for node in state.seats:  # one that the node overwrites before anybody reads it does nothing
                client.set(beat_key(both, node), b"1000000")
            client.get("nothing")
    assert not any(agent.says_within("round 1", TTL_S) for agent in agents)
    assert alive(told)
    ended = end(agents)
    assert codes(ended) == [0, 0]
    assert ended[0].err.count("a forged heartbeat of b") == 1


def test_a_deleted_heartbeat_of_a_healthy_node_evicts_nobody(tcpstore_job: Jobs) -> None:
    both = tcpstore_job("1:2", "--last-call=1000")
    agents = both.nodes("ab")
    told = run(agents)
    state = both.reaches(lambda state: state.complete)
    ends_at = time.monotonic() + TTL_S
    with client_of(both) as client:
        while time.monotonic() < ends_at:
            client.delete(*(beat_key(both, node) for node in state.seats))
            assert not any(agent.says_within("round 1", 0.7 * KEEP_ALIVE_S) for agent in agents)
    assert alive(told)
    assert codes(end(agents)) == [0, 0]


def test_a_terminal_obeys_nothing_of_another_node_s_failure_record(tcpstore_job: Jobs) -> None:
    alone = tcpstore_job("1", "--max-restarts=0")
    agent = alone.node("a")
    (told,) = run([agent])
    said = "\x1b]0;t\x07\x9b31m\u202e\n"
    texts: Any = dict.fromkeys(("host", "when", "message", "where", "log", "remark", "callstack"), said)
    backend = alone.client()
    try:
        backend.notes.add(FAULTS, Fault(Node("b", 1), 0, 1, 0, 7, 1, 1.0, world_size=2, **texts))
    finally:
        backend.close()
    os.kill(told.pid, signal.SIGKILL)
    ended = agent.ends()
    assert ended.code == 1
    assert r"\x1b]0;t\x07\x9b31m\u202e\n" in ended.err and "b rank 1" in ended.err
    assert [each for each in ended.err if each != "\n" and not each.isprintable()] == []
