"""`elastic status`: what it shows of running jobs, to whom, and that it writes nothing."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import IO, Any

import pytest
from jobs import CONF, Job, Jobs, asked, client_of, codes, end, only_in, run
from launches import ELASTIC, TIMEOUT_S, Launcher
from processes import comes_true

from elastic.adapters.store.secret import Secret
from elastic.adapters.store.tcpstore.seal import seal

TOKEN = "correct horse battery staple"
KEYS = """
import sys
from torch.distributed import TCPStore
print(TCPStore(sys.argv[1], int(sys.argv[2]), is_master=False).num_keys())
"""


def data(job: Job, launch: Launcher) -> dict[str, Any]:
    shown = asked(job, "--json", launch=launch)
    assert shown.returncode == 0, shown
    found: dict[str, Any] = json.loads(shown.stdout)
    return found


def states(shown: dict[str, Any]) -> list[str]:
    """What each node does; its first heartbeat may come after the last change."""
    return [node["state"].partition(",")[0] for node in shown["nodes"]]


def beating(shown: dict[str, Any]) -> list[tuple[str, bool]]:
    """What each node does, and whether its heartbeat stands: for a moment none does in an etcd that stood still."""
    return [(node["state"], node["heartbeat"]) for node in shown["nodes"]]


def rows(text: str) -> list[str]:
    """The first words on each node."""
    return [" ".join(line.split()[:3]) for line in text.splitlines() if line.startswith(("a ", "b "))]


def keys_of(job: Job) -> int:
    """How many keys the store holds, by torch's own client."""
    words = [sys.executable, "-c", KEYS, job.store.host, str(job.store.port)]
    return int(subprocess.run(words, check=True, capture_output=True, text=True, timeout=TIMEOUT_S).stdout)


def test_a_running_job_shows_its_nodes_and_their_ranks(job: Jobs, launch: Launcher) -> None:
    both = job("2", "--nproc-per-node=2", "--max-restarts=3")
    agents = both.nodes("ab")
    run(agents, 2)
    seen = data(both, launch)
    assert (seen["format"], seen["job"], seen["state"]) == (1, both.run_id, "running")
    assert [node["node"].partition("#")[0] for node in seen["nodes"]] == ["a", "b"]
    assert [node["ranks"] for node in seen["nodes"]] == [[0, 1], [2, 3]]
    assert comes_true(lambda: beating(data(both, launch)) == [("running", True)] * 2)
    ages = [node["heartbeat_age_s"] for node in data(both, launch)["nodes"]]
    assert ages == [None] * 2 if both.etcd else all(age >= 0.0 for age in ages), ages
    text = asked(both, launch=launch).stdout
    assert ("s ago" in text) is not bool(both.etcd), text
    assert f"job {both.run_id}" in text and "2 nodes running" in text
    assert comes_true(lambda: rows(asked(both, launch=launch).stdout) == ["a running 0-1", "b running 2-3"])
    assert codes(end(agents)) == [0, 0]


@only_in("tcpstore")
def test_ranks_that_have_ended_while_others_run_on_are_shown(job: Jobs, launch: Launcher) -> None:
    two = job("2", "--nproc-per-node=2")
    agents = two.nodes("ab", program=("--no-python", "sh", "-c", "[ $RANK = 1 ] || sleep 1000"))
    assert comes_true(lambda: [[each["rank"] for each in node["ended"]] for node in seated(two, launch)] == [[1], []])
    shown = asked(two, launch=launch).stdout
    line = r"^rank 1 ended with exit code 0, \d\d:\d\d:\d\d, and ranks 0, 2, 3 run on$"
    assert re.search(line, shown, re.MULTILINE), shown
    for agent in agents:
        agent.signal(signal.SIGTERM)
    assert [agent.ends().code for agent in agents] == [128 + signal.SIGTERM] * 2


@only_in("tcpstore")
def test_the_ready_standbys_of_each_node_are_shown_and_how_long_their_imports_took(job: Jobs, launch: Launcher) -> None:
    two = job("2", "--max-restarts=1")
    agents = [two.node("a", "--standby=2"), two.node("b")]
    run(agents)
    assert comes_true(
        lambda: [each["standbys"] and each["standbys"]["ready"] for each in seated(two, launch)] == [2, None]
    )
    (standbys, none) = (each["standbys"] for each in seated(two, launch))
    assert standbys["imports_s"] > 0 and none is None
    ready = re.compile(r"2 ready, imports took \d+\.\d s")  # one is refilled, if the first worker was a standby
    assert comes_true(lambda: bool(ready.search(asked(two, launch=launch).stdout)))
    assert codes(end(agents)) == [0, 0]


def seated(job: Job, launch: Launcher) -> list[dict[str, Any]]:
    """Return what is shown of each node, by name."""
    return sorted(data(job, launch)["nodes"], key=lambda node: str(node["node"]))


@only_in("tcpstore")
def test_a_job_that_waits_says_for_whom(job: Jobs, launch: Launcher) -> None:
    three = job("3")
    (first,) = three.nodes("a")
    seen = data(three, launch)
    assert (seen["state"], states(seen), seen["nodes"][0]["ranks"]) == ("forming", ["here"], [])
    assert "waiting for 2 of 3 nodes" in seen["sentence"]
    agents = [first, *(three.node(name) for name in "bc")]
    run(agents)
    assert codes(end(agents)) == [0, 0, 0]


@only_in("etcd")
def test_a_job_that_failed_says_how_and_is_exit_code_1(job: Jobs, launch: Launcher) -> None:
    one = job("1:2", "--last-call=0", "--max-restarts=1")
    agent = one.node("a", program=("--no-python", "sh", "-c", "exit 3"))
    assert agent.ends().code == 1
    shown = asked(one, launch=launch)
    assert shown.returncode == 1, shown
    assert "closed: failed in round 1" in shown.stdout and "1 of 1 restart spent" in shown.stdout
    assert "round 0  " in shown.stdout and "exit code 3" in shown.stdout


def test_nothing_is_written_to_the_store(tcpstore_job: Jobs, launch: Launcher) -> None:
    one = tcpstore_job("1:2", "--last-call=0", conf=f"{CONF}keep_alive_interval=1000,")
    agent = one.node("a")
    run([agent])
    before = keys_of(one)
    assert asked(one, launch=launch).returncode == 0
    assert asked(one, launch=launch, run_id="nobody").returncode == 3
    assert keys_of(one) == before
    assert codes(end([agent])) == [0]


def test_a_watch_shows_each_change_until_the_job_is_over(tcpstore_job: Jobs, launch: Launcher) -> None:
    two = tcpstore_job("1:2", "--last-call=0")
    first = two.node("a")
    run([first])
    watch = subprocess.Popen(
        [ELASTIC, "status", f"--rdzv-endpoint={two.store}", f"--rdzv-id={two.run_id}", "--watch", "--json"],
        stdout=subprocess.PIPE,
        text=True,
        env=launch.environment,
    )
    with watch:
        assert watch.stdout
        try:
            assert states(json.loads(watch.stdout.readline())) == ["running"]
            second = two.node("b")
            while states(seen := json.loads(watch.stdout.readline())) != ["running", "running"]:
                pass
            assert all(datetime.fromisoformat(node["since"]).tzinfo for node in seen["nodes"])
            assert datetime.fromisoformat(seen["at"]).tzinfo and seen["silent_since"] is None
            assert codes(end([first, second])) == [0, 0]
            *_, last = map(json.loads, watch.stdout)
        finally:
            watch.kill()
    assert last["state"] == "succeeded" and watch.returncode in (0, -signal.SIGKILL)


def test_a_watch_that_nobody_reads_any_more_ends(tcpstore_job: Jobs, launch: Launcher) -> None:
    two = tcpstore_job("1:2", "--last-call=0")
    agents = [two.node("a")]
    run(agents)
    words = [ELASTIC, "status", f"--rdzv-endpoint={two.store}", f"--rdzv-id={two.run_id}", "--watch", "--json"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=launch.environment) as watch:
        assert watch.stdout and watch.stderr
        try:
            assert states(json.loads(watch.stdout.readline())) == ["running"]
            watch.stdout.close()
            agents.append(two.node("b"))
            assert (watch.wait(TIMEOUT_S), watch.stderr.read()) == (0, b"")
        finally:
            watch.kill()
    assert codes(end(agents)) == [0, 0]


def test_a_watch_on_a_terminal_is_rewritten_in_place_and_ends_by_a_signal(tcpstore_job: Jobs, launch: Launcher) -> None:
    two = tcpstore_job("1:2", "--last-call=0")
    agents = [two.node("a")]
    run(agents)
    terminal, its = pty.openpty()
    environment = {**launch.environment, "TERM": "xterm", "COLUMNS": "200", "LINES": "40"}
    words = [ELASTIC, "status", f"--rdzv-endpoint={two.store}", f"--rdzv-id={two.run_id}", "--watch"]
    with (
        os.fdopen(terminal, "rb", 0) as shown,
        subprocess.Popen(words, stdin=its, stdout=its, stderr=subprocess.PIPE, env=environment) as watch,
    ):
        os.close(its)
        try:
            found = until(shown, b"1 node running")
            agents.append(two.node("b"))
            found += until(shown, b"2 nodes running")
            assert b"\x1b[2K" in found and b"\x1b[?25l" in found
            watch.send_signal(signal.SIGINT)
            rest = until(shown, b"\x1b[?25h")
            assert b"2 nodes running" in rest + until(shown, b"")
            assert (watch.wait(TIMEOUT_S), watch.communicate()[1]) == (0, b"")
        finally:
            watch.kill()
    assert codes(end(agents)) == [0, 0]


def until(shown: IO[bytes], text: bytes) -> bytes:
    """What a terminal shows until this has come; all of it for no text."""
    found = b""
    while not text or text not in found:
        try:
            data = shown.read(1 << 16)
        except OSError:  # the program has ended
            data = b""
        if not data:
            assert not text, found
            break
        found += data
    return found


def test_a_job_with_a_token_shows_itself_to_its_owner_only(
    tcpstore_job: Jobs, launch: Launcher, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text(f"{TOKEN}\n")
    token.chmod(0o600)
    sealed = tcpstore_job("1:2", "--last-call=0", conf=f"{CONF}token_file={token},", seal=seal(Secret(TOKEN.encode())))
    agent = sealed.node("a")
    run([agent])
    assert "1 node running" in asked(sealed, f"--rdzv-conf=token_file={token}", launch=launch).stdout
    for variables in ({}, {"ELASTIC_STORE_TOKEN": "another horse, another staple"}):
        refused = asked(sealed, launch=launch, **variables)
        assert (refused.returncode, refused.stdout) == (3, "") and "token" in refused.stderr
    assert codes(end([agent])) == [0]


def test_a_hostile_register_is_refused_in_words(tcpstore_job: Jobs, launch: Launcher) -> None:
    none = tcpstore_job("1")
    with client_of(none) as client:
        client.set(f"elastic/{none.run_id}/life", b"\x1b[2Jgarbage")
    shown = asked(none, launch=launch)
    assert (shown.returncode, shown.stdout) == (3, "") and "\x1b" not in shown.stderr
    assert shown.stderr.startswith("elastic status: ") and len(shown.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        ((), 2, "--rdzv-endpoint is missing"),
        (("--rdzv-endpoint=localhost:1", "--rdzv-backend=zookeeper"), 2, "--rdzv-backend=zookeeper"),
        (("--rdzv-endpoint=localhost:1", "--rdzv-id=x"), 3, "localhost:1"),
        (("--rdzv-endpoint=localhost:1", "job"), 2, "takes only options"),
    ],
)
def test_a_mistake_is_named(options: tuple[str, ...], code: int, says: str, launch: Launcher) -> None:
    done = subprocess.run(
        [ELASTIC, "status", *options],
        check=False,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        env=launch.environment,
    )
    assert (done.returncode, done.stdout) == (code, "") and says in done.stderr
