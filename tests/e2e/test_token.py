"""A job with a token, and a foreigner at its store: what he writes is refused or changes nothing; the token is nowhere."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from urllib.parse import quote

import pytest
from jobs import CONF, PATIENT, TTL_S, Job, Jobs, alive, client_of, codes, end, kill, lose, prefix, run, slots, worlds
from launches import PROGRAMS, TIMEOUT_S, Launch, Launcher
from leftovers import alive_with
from processes import comes_true

from elastic.adapters.store.secret import Secret
from elastic.adapters.store.tcpstore.seal import UNSEALED, seal
from elastic.adapters.store.tcpstore.wire import WireClient
from elastic.core.rendezvous import Close, RendezvousState, apply, codec
from elastic.core.world import Ending, Fault, Node, Verdict, Why

TOKEN = "correct horse battery staple"
ANOTHER = "another horse, another staple"
UNSEEN_S = 1.0
"""Three looks at the register: time enough to do something wrong."""
Tokened = Callable[..., Job]


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n")
    path.chmod(0o600)
    return path


@pytest.fixture
def tokened(tcpstore_job: Jobs, token_file: Path) -> Tokened:
    """A job whose agents are given the token by a file."""

    def make(nnodes: str, *options: str, conf: str = CONF, own_store: bool = False) -> Job:
        conf = f"{conf}token_file={token_file},"
        return tcpstore_job(nnodes, *options, conf=conf, own_store=own_store, seal=seal(Secret(TOKEN.encode())))

    return make


def cancelled(state: RendezvousState) -> bytes:
    """The next state, as the first node would write it that cancels the job."""
    by = next(iter(state.seats))
    return codec.encode(apply(state, Close(Verdict(Ending.CANCELLED, state.round, by, Why.ASKED)), by))


def forged_fault(node: Node) -> bytes:
    return codec.encode_fault(
        Fault(
            node=node,
            round=0,
            rank=0,
            local_rank=0,
            pid=1,
            exit_code=1,
            after_s=0.0,
            host="elsewhere",
            when="2026-01-01 00:00:00",
            message="a lie",
            where="",
            log="",
            tail=(),
        )
    )


def test_a_verdict_that_a_foreigner_writes_ends_a_job_without_a_token(tcpstore_job: Jobs, launch: Launcher) -> None:
    """What the token is for: this is a step that an agent may take."""
    launch.forged = True
    both = tcpstore_job("2")
    agents = both.nodes("ab")
    run(agents)
    state = both.reaches(lambda state: state.complete)
    with client_of(both) as foreigner:
        foreigner.set(f"{prefix(both)}/{state.life.nonce}/{state.version + 1}", cancelled(state))
        assert codes(agent.ends() for agent in agents) == [1, 1]
    assert both.report("a")["ending"]["state"] == Ending.CANCELLED.value


def test_with_a_token_it_is_refused_and_workers_run_on_until_their_node_must_write(
    tokened: Tokened, launch: Launcher
) -> None:
    launch.forged = True
    both = tokened("2", conf=PATIENT)
    agents = both.nodes("ab")
    told = run(agents)
    state = both.reaches(lambda state: state.complete)
    key, value = f"{prefix(both)}/{state.life.nonce}/{state.version + 1}", cancelled(state)
    with client_of(both) as foreigner:
        foreigner.set(key, value)
        foreigner.get("nothing")  # its answer says that the value is there
        assert not any(agent.says_within("CANCELLED", UNSEEN_S / 2) for agent in agents)
        assert alive(told)
        ended = end(agents)
        assert codes(ended) == [3, 3]
        assert foreigner.get(key) == (value,)
    for one in ended:
        assert f"{key} is not sealed" in one.err and "same token_file" in one.err
        assert "Traceback" not in one.err


def test_what_a_foreigner_writes_beside_the_register_changes_nothing(tokened: Tokened) -> None:
    both = tokened("2", "--max-restarts=1")
    agents = both.nodes("ab")
    told = run(agents)
    state = both.reaches(lambda state: state.complete)
    with client_of(both) as foreigner:
        for number, node in enumerate(state.seats, 1):
            foreigner.set(f"{prefix(both)}/heartbeat/{quote(str(node), safe='')}", b"1000000")
            foreigner.set(f"{prefix(both)}/bye/{quote(str(node), safe='')}", b"1")
            foreigner.set(f"{prefix(both)}/faults/{number}", forged_fault(node))
        foreigner.set(f"{prefix(both)}/faults/count", b"2")
        foreigner.set(f"{prefix(both)}/{state.life.nonce}/head", b"1000000")
        foreigner.get("nothing")
        assert not any(agent.says_within("round 1", UNSEEN_S / 2) for agent in agents)
        assert alive(told)
        kill(told[1].pid)
        assert worlds(run(agents)) == {(1, "restart 1 of 2 workers")}
        assert codes(end(agents)) == [0, 0]
    for name in "ab":
        assert [failure["exit"] for failure in both.report(name)["failures"]] == ["killed by SIGKILL"]


def attacked(
    both: Job, agents: list[Launch], attack: Callable[[WireClient, str], None], until: str | None = None
) -> None:
    """Attack the heartbeats of all nodes, again and again, for two TTLs and until the first one says this: nobody is
    evicted.
    """
    state = both.reaches(lambda state: state.complete)
    keys = [f"{prefix(both)}/heartbeat/{quote(str(node), safe='')}" for node in state.seats]
    with client_of(both) as foreigner:
        ends_at = time.monotonic() + 2 * TTL_S
        gives_up_at = ends_at + TIMEOUT_S
        while time.monotonic() < ends_at or (until and not agents[0].says_within(until, 0)):
            assert time.monotonic() < gives_up_at, f"{until!r} was not said"
            for key in keys:
                attack(foreigner, key)
            assert not any(agent.says_within("round 1", 0.005) for agent in agents)


def test_with_a_token_a_deleted_heartbeat_of_a_healthy_node_evicts_nobody(tokened: Tokened) -> None:
    both = tokened("2", "--max-restarts=1")
    agents = both.nodes("ab")
    told = run(agents)
    attacked(both, agents, lambda foreigner, key: foreigner.delete(key))
    assert alive(told)
    assert codes(end(agents)) == [0, 0]


def test_with_a_token_forged_heartbeats_are_named_and_evict_nobody_who_is_heard_by_the_other_key(
    tokened: Tokened,
) -> None:
    both = tokened("2", "--max-restarts=1")
    agents = both.nodes("ab")
    told = run(agents)
    attacked(both, agents, lambda foreigner, key: foreigner.set(key, b"7"), until="warning: a forged heartbeat of b")
    assert alive(told)
    ended = end(agents)
    assert codes(ended) == [0, 0]
    assert ended[0].err.count("a forged heartbeat of b") == 1


def test_a_foreigner_cannot_keep_a_dead_node_alive(tokened: Tokened) -> None:
    """By counters of his own, or by those that the node sealed while it lived."""
    both = tokened("1:2", "--last-call=1000", "--max-restarts=1")
    agents = both.nodes("ab")
    run(agents)
    state = both.reaches(lambda state: state.complete)
    key = f"{prefix(both)}/heartbeat/{quote(str(list(state.seats)[1]), safe='')}"
    with client_of(both) as foreigner:
        recorded: set[bytes] = set()

        def beaten(times: int) -> bool:
            recorded.add(foreigner.get(key)[0])
            return len(recorded) >= times

        assert comes_true(lambda: beaten(3))
        lose(agents[1])
        recorded.add(foreigner.get(key)[0])
        replayed = sorted(recorded)
        for number in count(1_000_000):
            foreigner.set(key, (b"%d" % number, *replayed)[number % (len(replayed) + 1)])
            if agents[0].says_within(" lost · ", 0.1):
                break
            assert number < 1_000_300, "it lives on"
    both.reaches(lambda state: state.complete and slots(state) == ["a"])
    assert worlds(run(agents[:1])) == {(1, "restart 0 of 1 workers")}
    assert codes(end(agents[:1])) == [0]


@pytest.mark.parametrize(
    ("theirs", "reason"),
    [(None, "is sealed with a token, and none was given"), (ANOTHER, "is sealed with another token")],
    ids=["no token", "another token"],
)
def test_an_agent_whose_token_differs_is_told_so_and_the_others_run_on(
    tcpstore_job: Jobs, tokened: Tokened, theirs: str | None, reason: str
) -> None:
    ours = tokened("1:2", "--last-call=0.1")
    first = ours.nodes("a")
    told = run(first)
    late = tcpstore_job("1:2", seal=UNSEALED)
    late.run_id = ours.run_id
    ended = late.node("b", environment={"ELASTIC_STORE_TOKEN": theirs} if theirs else {}).ends()
    assert ended.code == 3
    refused = f"the register of this job at {ours.store} cannot be read: {prefix(ours)}/root {reason}"
    assert refused in ended.err and "ELASTIC_STORE_TOKEN" in ended.err
    assert TOKEN not in ended.err and ANOTHER not in ended.err
    assert alive(told)
    assert codes(end(first)) == [0]


def test_an_agent_with_a_token_refuses_a_register_that_is_not_sealed(tcpstore_job: Jobs) -> None:
    ours = tcpstore_job("1:2", "--last-call=0.1")
    first = ours.nodes("a")
    run(first)
    ended = ours.node("b", environment={"ELASTIC_STORE_TOKEN": TOKEN}).ends()
    assert ended.code == 3
    assert f"{prefix(ours)}/root is not sealed" in ended.err and "same token_file" in ended.err
    assert codes(end(first)) == [0]


def test_the_token_is_in_nothing_that_the_job_writes_says_or_starts(
    tokened: Tokened, launch: Launcher, nothing_left: str, token_file: Path, tmp_path: Path
) -> None:
    """One agent, the store's host, has it from the environment, the other from the file."""
    both = tokened("2", "--max-restarts=1", "--tee=3", f"--log-dir={tmp_path}/logs", own_store=True)
    conf = f"--rdzv-conf={CONF}is_host=true"
    agents = [both.node("a", conf, environment={"ELASTIC_STORE_TOKEN": TOKEN})]
    both.reaches(lambda state: slots(state) == ["a"])
    agents.append(both.node("b"))
    told = run(agents)
    started = {process.pid for process in alive_with(nothing_left)} - {agent.pid for agent in agents}
    assert {worker.pid for worker in told} < started
    assert not any(TOKEN.encode() in Path(f"/proc/{pid}/environ").read_bytes() for pid in started)
    assert not any(TOKEN.encode() in Path(f"/proc/{agent.pid}/cmdline").read_bytes() for agent in agents)
    kill(told[1].pid)
    run(agents)
    ended = end(agents)
    assert codes(ended) == [0, 0]
    assert not any(TOKEN in one.err + one.out for one in ended)
    written = [path for path in tmp_path.rglob("*") if path.is_file() and path != token_file]
    assert {".json", ".ndjson", ".log"} <= {path.suffix for path in written}
    assert [path for path in written if TOKEN.encode() in path.read_bytes()] == []


def test_a_worker_finds_no_token(launch: Launcher, tmp_path: Path) -> None:
    launched = launch(
        *("--rdzv-endpoint=localhost:0", PROGRAMS / "show.py", tmp_path), environment={"ELASTIC_STORE_TOKEN": TOKEN}
    )
    assert launched.ends().code == 0
    found = json.loads((tmp_path / "0.0.json").read_text())["environment"]
    assert "ELASTIC_STORE_TOKEN" not in found and TOKEN not in found.values()
