"""Jobs of this host are asked without an address: one is taken, of several each is named, and nothing acts on a guess."""

from __future__ import annotations

import json
import os
import shlex
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from jobs import CONF, Jobs, alive, codes, end, run
from launches import ELASTIC, PROGRAMS, TIMEOUT_S, Launch, Launcher

from elastic.adapters.rendezvous.operator import operator_name
from elastic.adapters.store.secret import Secret
from elastic.adapters.store.tcpstore.seal import seal
from elastic.cli.slurm import PORTS

STAY = PROGRAMS / "stay.py"
TOKEN = "correct horse battery staple"


@pytest.fixture
def empty() -> Iterator[str]:
    """A directory for temporary files in which no agent is, of a short name: with a long one /tmp would count."""
    with tempfile.TemporaryDirectory(dir="/tmp") as made:
        yield made


def asks(launch: Launcher, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [ELASTIC, *words],
        check=False,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        env={**launch.environment, **variables},
    )


def line(launch: Launch) -> str:
    """Return the command that the launcher's first line names."""
    (first,) = (line for line in launch.says(" elastic status ").splitlines() if " elastic status " in line)
    return first.rpartition(" · ")[2]


def told(launch: Launch) -> list[str]:
    """Return what that command gives to `elastic`."""
    return shlex.split(line(launch).partition("elastic ")[2])


def alone(launch: Launcher, *options: str) -> Launch:
    started = launch("--nproc-per-node=2", *options, STAY)
    started.hears(2)
    return started


def test_the_only_job_is_asked_without_an_option_and_as_its_first_line_says(launch: Launcher) -> None:
    one = alone(launch)
    name = told(one)[-1].partition("=")[2]
    answers = []
    for words in (["status"], ["status", "--json"], told(one), ["stacks"], ["stacks", "--full=1"]):
        shown = asks(launch, *words)
        assert (shown.returncode, shown.stderr) == (0, ""), (words, shown)
        answers.append(shown.stdout)
    status, as_json, _, stacks, full = answers
    assert f"job {name} in memory · round 0: 1 node running" in status
    assert "ranks 0, 1" in stacks and "Stack (most" in full
    parts = json.loads(as_json)
    assert (parts["job"], parts["store"], parts["nodes"][0]["heartbeat"]) == (name, "in memory", True)
    for words in (["cancel"], ["drain", os.uname().nodename]):
        refused = asks(launch, *words)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert f"1 job of yours runs on this host: {name} (in memory); write --rdzv-id=ID" in refused.stderr
    assert codes(end([one])) == [0]


@pytest.mark.parametrize("folder", ["a b", "", None])
def test_the_command_of_the_first_line_works_in_a_fresh_shell(launch: Launcher, empty: str, folder: str | None) -> None:
    """Either may have a TMPDIR that the other has not: a login sets one, or the launcher's supervisor does."""
    where = Path(empty, folder or "")
    where.mkdir(exist_ok=True)
    one = launch(STAY, environment={"TMPDIR": "" if folder is None else str(where)})
    one.hears(1)
    assert line(one).startswith("elastic " if folder is None else "TMPDIR=")
    plain = {"PATH": f"{Path(ELASTIC).parent}:{os.defpath}", **({"TMPDIR": empty} if folder is None else {})}
    shown = subprocess.run(
        ["sh", "-c", line(one)], check=False, capture_output=True, text=True, timeout=TIMEOUT_S, env=plain
    )
    assert (shown.returncode, shown.stderr) == (0, "") and "in memory · round 0: 1 node running" in shown.stdout
    assert codes(end([one])) == [0]


def test_of_several_jobs_status_names_each_and_one_is_cancelled_by_its_name(launch: Launcher) -> None:
    jobs = [alone(launch, f"--rdzv-id={name}", "--max-restarts=2") for name in ("one", "two")]
    for command in ("status", "stacks"):
        shown = asks(launch, command)
        assert (shown.returncode, shown.stderr) == (0, "")
        assert shown.stdout.splitlines() == [
            f"job {name} in memory · round 0: 1 node running" for name in ("one", "two")
        ]
    for words in (["status", "--json"], ["status", "--watch"], ["stacks", "--json"], ["cancel"], ["drain", "vm"]):
        refused = asks(launch, *words)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert "which job? 2 jobs of yours run on this host: one (in memory), two (in memory)" in refused.stderr
    nobody = asks(launch, "cancel", "--rdzv-id=three")
    assert nobody.returncode == 2 and "no job three of yours was found on this host (in " in nobody.stderr
    assert asks(launch, "cancel", "--rdzv-id=two").stdout == (
        "job two in memory is cancelled in round 0: 1 node told to stop\n"
    )
    ended = jobs[1].ends()
    assert ended.code == 1 and f"CANCELLED by an operator ({operator_name()})" in ended.err
    assert "job one in memory · round 0" in asks(launch, "status").stdout
    assert codes(end(jobs[:1])) == [0]


def test_two_jobs_in_memory_with_one_name_are_told_apart_by_their_agents(launch: Launcher) -> None:
    jobs = [alone(launch, "--rdzv-id=twin") for _ in range(2)]
    refused = asks(launch, "cancel", "--rdzv-id=twin")
    assert (refused.returncode, refused.stdout) == (2, "")
    first, second = sorted(job.process.pid for job in jobs)
    assert (
        f"2 jobs of yours run on this host: twin (in memory, process {first}), twin (in memory, process {second}); "
        "they have one name: end one by `kill -TERM PROCESS`"
    ) in refused.stderr
    assert codes(end(jobs)) == [0, 0]


def test_a_job_that_ends_while_it_is_watched_is_shown_to_its_end(launch: Launcher) -> None:
    one = alone(launch)
    watch = launch.command(ELASTIC, "status", "--watch", "--json")
    watch.prints('"state": "running"')
    assert codes(end([one])) == [0]
    ended = watch.ends()
    assert ended.code == 0 and json.loads(ended.out.splitlines()[-1])["state"] == "succeeded"


def test_the_agent_of_a_job_with_a_token_shows_it_to_its_user(
    tcpstore_job: Jobs, launch: Launcher, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text(f"{TOKEN}\n")
    token.chmod(0o600)
    sealed = tcpstore_job("1:2", "--last-call=0", conf=f"{CONF}token_file={token},", seal=seal(Secret(TOKEN.encode())))
    agents = [sealed.node("a")]
    workers = run(agents)
    shown = asks(launch, "status")
    assert shown.returncode == 0 and f"job {sealed.run_id} at {sealed.store} · round 0" in shown.stdout
    agents.append(sealed.node("b"))
    run(agents)
    assert "2 nodes running" in asks(launch, "status").stdout, "two agents of one job are one job"
    assert asks(launch, *told(agents[0])).returncode == 0
    assert asks(launch, "cancel", f"--rdzv-id={sealed.run_id}").returncode == 0
    assert codes([agent.ends() for agent in agents]) == [1, 1]
    assert not alive(workers)


def test_an_agent_that_was_killed_is_asked_no_more(launch: Launcher) -> None:
    one = alone(launch)
    one.process.kill()
    one.process.wait()
    shown = asks(launch, "status")
    assert (shown.returncode, shown.stdout) == (2, "")
    where = launch.environment.get("TMPDIR", tempfile.gettempdir())
    assert f"--rdzv-endpoint is missing: no job of yours was found on this host (in {where})" in shown.stderr


def test_under_slurm_the_job_is_found_as_the_launcher_finds_it(launch: Launcher, empty: str) -> None:
    port = free_port()
    slurm = {"SLURM_JOB_ID": str(100_000 + port - PORTS[0]), "SLURM_JOB_NODELIST": "localhost"}
    other = alone(launch, "--rdzv-id=other")
    one = launch("--nnodes=1:2", "--rdzv-conf=last_call_timeout=0", STAY, environment=slurm)
    one.hears(1)
    name = f"{slurm['SLURM_JOB_ID']}.0"
    assert told(one) == ["status", f"--rdzv-endpoint=localhost:{port}", f"--rdzv-id={name}"]
    elsewhere = {"TMPDIR": empty}
    for variables in (slurm, {**slurm, **elsewhere}):
        shown = asks(launch, "status", **variables)
        assert shown.returncode == 0 and f"job {name} at localhost:{port} · round 0" in shown.stdout, shown
    later = {**slurm, "SLURM_STEP_ID": "1", "SLURM_STEP_NODELIST": "localhost,n2"}
    for variables in (later, {**later, **elsewhere}):
        shown = asks(launch, "status", **variables)
        assert shown.returncode == 0 and f"job {name} at localhost:{port} · round 0" in shown.stdout, shown
    for variables in (later, {**later, **elsewhere}):
        refused = asks(launch, "cancel", **variables)
        assert (refused.returncode, refused.stdout) == (2, ""), "it may be meant for this step's job"
        assert (
            f"which job? {'store' if 'TMPDIR' in variables else '1 job'}" in refused.stderr and name in refused.stderr
        )
    named = asks(launch, "cancel", f"--rdzv-id={name}", **later, **elsewhere)
    assert named.returncode == 0, named
    assert one.ends().code == 1
    assert codes(end([other])) == [0]


def test_of_the_jobs_of_several_steps_that_of_this_step_is_cancelled_and_no_other(launch: Launcher) -> None:
    slurm = {"SLURM_JOB_ID": f"7{os.getpid()}", "SLURM_JOB_NODELIST": "localhost"}
    name = f"{slurm['SLURM_JOB_ID']}.0"
    jobs = [alone(launch, f"--rdzv-id={each}") for each in (name, f"{name}.1")]
    second, third = ({**slurm, "SLURM_STEP_ID": each, "SLURM_STEP_NODELIST": "localhost,n2"} for each in "12")
    for variables in (slurm, third):
        refused = asks(launch, "cancel", **variables)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert (
            f"which job? 2 jobs of yours run on this host: {name} (in memory), {name}.1 (in memory)" in refused.stderr
        )
    assert asks(launch, "cancel", **second).returncode == 0
    assert jobs[1].ends().code == 1
    assert asks(launch, "cancel", **second).returncode == 2, "the first step's is another one"
    assert asks(launch, "cancel", **slurm).returncode == 0, "the only one that is left"
    assert jobs[0].ends().code == 1


def test_under_slurm_the_job_s_store_is_asked_before_another_job_is_guessed(launch: Launcher, empty: str) -> None:
    port = free_port()
    slurm = {"SLURM_JOB_ID": str(100_000 + port - PORTS[0]), "SLURM_JOB_NODELIST": "localhost"}
    other = alone(launch, "--rdzv-id=other")
    guessed = asks(launch, "status", **slurm)
    assert guessed.returncode == 0 and "job other in memory" in guessed.stdout, "Slurm's job has no store"
    assert asks(launch, "cancel", **slurm).returncode == 2, "nothing acts on a guess"
    one = launch("--nnodes=1:2", "--rdzv-conf=last_call_timeout=0", STAY, environment={**slurm, "TMPDIR": empty})
    one.hears(1)
    shown = asks(launch, "status", **slurm)
    assert shown.returncode == 0 and f"job {slurm['SLURM_JOB_ID']}.0 at localhost:{port}" in shown.stdout
    assert codes(end([one, other])) == [0, 0]


def test_by_torch_s_variables_the_job_is_found_as_the_launcher_finds_it(
    launch: Launcher, empty: str, port: int
) -> None:
    static = {"PET_MASTER_ADDR": "localhost", "PET_MASTER_PORT": str(port)}
    one = launch("--nnodes=1:2", "--node-rank=0", "--rdzv-conf=last_call_timeout=0", STAY, environment=static)
    one.hears(1)
    for variables in (static, {"PET_RDZV_ENDPOINT": f"localhost:{port}", "PET_RDZV_ID": "none"}):
        shown = asks(launch, "status", TMPDIR=empty, **variables)
        assert shown.returncode == 0 and f"job none at localhost:{port} · round 0" in shown.stdout, shown
    for words in (["cancel"], ["drain", os.uname().nodename], ["cancel", f"--rdzv-endpoint=localhost:{port}"]):
        refused = asks(launch, *words, TMPDIR=empty, **static)
        assert (refused.returncode, refused.stdout) == (2, ""), "nobody named the job"
        assert "which job? write --rdzv-id=ID" in refused.stderr
    wrong = asks(launch, "status", TMPDIR=empty, PET_MASTER_ADDR="localhost", PET_MASTER_PORT="x")
    assert wrong.returncode == 2 and "PET_MASTER_PORT=x: write a port" in wrong.stderr
    assert codes(end([one])) == [0]


def free_port() -> int:
    """Return a port that a job of Slurm can have, that is free, and that tests in other processes do not look at first."""
    first = 50 * os.getpid()
    for port in (PORTS[(first + number) % len(PORTS)] for number in range(50)):
        with suppress(OSError), socket.create_server(("", port)):
            return port
    pytest.fail("no port is free")
