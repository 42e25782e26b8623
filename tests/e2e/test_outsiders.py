"""Somebody without the job's token, or without its etcd user: he is told nothing of the job, and changes nothing in it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import quote

import pytest
from etcds import Cluster, single
from jobs import CONF, STAY, Job, Jobs, alive, asked, client_of, codes, end, prefix, run
from launches import ELASTIC, TIMEOUT_S, Launcher
from processes import comes_true

from elastic.adapters.clock import SystemClock
from elastic.adapters.store.queries import Query
from elastic.adapters.store.secret import Secret
from elastic.adapters.store.tcpstore.seal import seal
from elastic.adapters.store.tcpstore.tcpstore import TCPStoreBackend
from elastic.core.rendezvous import Drain, apply, codec
from elastic.core.world import Node, Notice

TOKEN = "correct horse battery staple"
ANOTHER = "another horse, another staple"
PASSWORDS = {"ann": "annes-password", "eve": "eves-password", "tom": "toms-password"}
COMMANDS = (("status",), ("status", "--json"), ("status", "--http={port}"), ("drain", "a"), ("cancel",), ("stacks",))
UNSEEN_S = 3.0
"""Several heartbeats: an agent looks for a query with each."""
WRITES = (("drain", "a"), ("cancel",), ("stacks",))


@pytest.fixture
def sealed(tcpstore_job: Jobs, tmp_path: Path) -> Job:
    token = tmp_path / "token"
    token.write_text(f"{TOKEN}\n")
    token.chmod(0o600)
    return tcpstore_job("2:3", "--last-call=0", conf=f"{CONF}token_file={token},", seal=seal(Secret(TOKEN.encode())))


def words(command: Sequence[str], port: int) -> tuple[str, ...]:
    return tuple(word.format(port=port) for word in command[1:])


@pytest.mark.parametrize("variables", [{}, {"ELASTIC_STORE_TOKEN": ANOTHER}], ids=["no token", "another token"])
def test_without_the_token_no_command_tells_or_changes_anything(
    sealed: Job, launch: Launcher, port: int, variables: dict[str, str]
) -> None:
    agents = sealed.nodes("ab")
    told = run(agents)
    before = sealed.reaches(lambda state: state.complete)
    for command in COMMANDS:
        refused = asked(sealed, *words(command, port), launch=launch, command=command[0], **variables)
        assert (refused.returncode, refused.stdout) == (3, ""), (command, refused)
        assert "token" in refused.stderr and len(refused.stderr.splitlines()) == 1
        assert not [word for word in ("node_rank", "stay.py", "restart") if word in refused.stderr]
    assert sealed.reaches(lambda state: True) == before and alive(told)
    assert codes(end(agents)) == [0, 0]


def test_what_an_outsider_puts_into_a_tcpstore_drains_nobody_and_lets_no_agent_tell_its_stacks(
    sealed: Job, launch: Launcher
) -> None:
    """It is sealed with another token, or not at all."""
    launch.forged = True
    agents = sealed.nodes("ab")
    told = run(agents)
    state = sealed.reaches(lambda state: state.complete)
    key = f"{prefix(sealed)}/{state.life.nonce}/{state.version + 1}"
    wanted = apply(state, Drain(next(iter(state.seats)), Notice(0.0, "an outsider")), Node("outside", 1))
    with client_of(sealed) as outsider:
        for mine in (seal(Secret(ANOTHER.encode())), seal(None)):
            backend = TCPStoreBackend(sealed.store, sealed.run_id, SystemClock(), seal=mine)
            backend.notes.put_query(Query("0123456789abcdef", state.round))
            backend.close()
            outsider.set(key, mine.sealed(key, codec.encode(wanted)))
            outsider.get("nothing")  # its answer says that the value is there
            assert not any(agent.says_within("drain", 1.0) for agent in agents)
            replies = [f"{prefix(sealed)}/reply/{quote(str(node), safe='')}" for node in state.seats]
            assert outsider.get(*replies) == (b"", b"")
        assert alive(told)
        outsider.set(key, b"")
    assert codes(end(agents)) == [3, 3]


def test_a_query_that_an_outsider_has_read_and_puts_back_is_answered_by_nobody(sealed: Job, launch: Launcher) -> None:
    agents = sealed.nodes("ab")
    told = run(agents)
    state = sealed.reaches(lambda state: state.complete)
    owner, name = sealed.client(), f"{prefix(sealed)}/query"
    assert isinstance(owner, TCPStoreBackend)
    replies = [f"{prefix(sealed)}/reply/{quote(str(node), safe='')}" for node in state.seats]
    with client_of(sealed) as outsider:
        kept = list[bytes]()
        for number in range(2):
            query = Query(f"{number:016x}", state.round)
            owner.notes.put_query(query)
            kept += outsider.get(name)
            assert comes_true(lambda query=query: len(owner.notes.replies(state.present).to(query)) == 2)  # type: ignore[misc]
            owner.notes.withdraw_query(state.present)
        for data in kept:
            outsider.set(name, data)
            outsider.get("nothing")
            assert not comes_true(lambda: any(outsider.get(*replies)), UNSEEN_S)
            outsider.delete(name)
    owner.close()
    assert alive(told)
    assert codes(end(agents)) == [0, 0]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """An etcd in which ann may use the jobs, tom may read them, and eve may use something else."""
    with single(tmp_path_factory.mktemp("etcd")) as etcd:
        grants = {"ann": "readwrite elastic/", "tom": "read elastic/", "eve": "readwrite other/"}
        for name, grant in grants.items():
            kind, keys = grant.split()
            etcd.etcdctl("role", "add", name)
            etcd.etcdctl("role", "grant-permission", name, kind, keys, "--prefix=true")
            etcd.etcdctl("user", "add", f"{name}:{PASSWORDS[name]}")
            etcd.etcdctl("user", "grant-role", name, name)
        for line in ("user add root:root", "user grant-role root root", "auth enable"):
            etcd.etcdctl(*line.split())
        etcd.user = "root:root"
        yield etcd


def test_without_its_user_an_etcd_s_job_tells_nothing_and_a_reader_changes_nothing(
    guarded: Cluster, launch: Launcher, tmp_path: Path, port: int
) -> None:
    place, run_id = f"--rdzv-endpoint=etcd://{guarded.endpoints}", "guarded"
    agent = launch(
        *("--nnodes=1:2", "--last-call=0", place, f"--rdzv-id={run_id}", "--node-id=a", "--rdzv-conf=user=ann", STAY),
        environment={"ELASTIC_ETCD_PASSWORD": PASSWORDS["ann"]},
    )
    told = run([agent])

    def says(command: Sequence[str], user: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [
                ELASTIC,
                command[0],
                place,
                f"--rdzv-id={run_id}",
                *words(command, port),
                *([f"--rdzv-conf=user={user}"] if user else []),
            ],
            check=False,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            env={**launch.environment, **({"ELASTIC_ETCD_PASSWORD": PASSWORDS[user]} if user else {})},
        )

    before = guarded.etcdctl("get", f"elastic/{run_id}/register", "--prefix")
    assert before
    for user, commands in (("", COMMANDS), ("eve", COMMANDS), ("tom", WRITES)):
        for command in commands:
            refused = says(command, user)
            assert refused.returncode in (2, 3) and refused.stdout == "", (user, command, refused)
            assert len(refused.stderr.splitlines()) == 1 and "stay.py" not in refused.stderr, refused.stderr
    assert guarded.etcdctl("get", f"elastic/{run_id}/register", "--prefix") == before
    assert "1 node running" in says(("status",), "tom").stdout
    assert alive(told)
    assert says(("cancel",), "ann").returncode == 0
    assert agent.ends().code == 1
