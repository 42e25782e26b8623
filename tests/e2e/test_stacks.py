"""Where the workers were when they were stopped: the report of every node names the odd rank, and the line where it was."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from jobs import PATIENT, Job, Jobs, asked, client_of, codes, end, only_in, prefix, run
from launches import PROGRAMS, Launch, Launcher, Told
from processes import comes_true, is_stopped
from profiles import SOAK
from replays import accounts

from elastic.adapters.launch_settings import STACKS_SIGNAL
from elastic.adapters.store.secret import Secret
from elastic.adapters.store.tcpstore.seal import seal
from elastic.adapters.workers.start_up import StackHandler
from elastic.adapters.workers.watch.py_spy import py_spy
from elastic.adapters.workers.watch.stacks import see
from elastic.cli.exit_codes import RENDEZVOUS
from elastic.core.goodput import Kind, losses

HANGS = PROGRAMS / "hangs.py"
LINES = HANGS.read_text().splitlines()
HANDLER = StackHandler(STACKS_SIGNAL, 1023)


PATIENCE_S = 50
"""Shorter than a command may take."""
TOKEN = "correct horse battery staple"
WAITS = "ranks 0, 1, 2, 3 at stage.py:"


def line(text: str) -> int:
    """The number of the first line of the program with this text."""
    return next(number for number, each in enumerate(LINES, 1) if text in each)


STEP = f"in all_reduce (hangs.py:{line('dist.all_reduce')} in step)"
ODD = {
    "asleep": f"at hangs.py:{line('time.sleep')} in asleep",
    "lock_of_python": f"at hangs.py:{line('PyDLL')} in lock_of_python",
    "own_lock": f"at hangs.py:{line('lock.acquire()') + 1} in own_lock",
    "stopped": f"at hangs.py:{line('SIGSTOP')} in stopped, stopped (SIGSTOP)",
    "loader": f"in select (hangs.py:{line('DataLoader(Slow')} in loader)",
}


def hangs_at(pid: int, place: str) -> None:
    """Wait until a worker is where it hangs."""
    if "SIGSTOP" in place:
        assert comes_true(lambda: is_stopped(pid))
        return
    assert comes_true(lambda: see({0: pid}, HANDLER)[0].place == place), see({0: pid}, HANDLER)[0].place


def all_hang(agents: list[Launch], count: int, places: dict[int, str]) -> list[Told]:
    """Wait until the ranks are where they hang, all in the collective but for the first and those that have a place here."""
    told = [each for agent in agents for each in agent.hears(count)]
    for each in told[1:]:
        hangs_at(each.pid, places.get(each.rank, STEP))
    return told


HOWS = ("asleep", "lock_of_python", "step", "own_lock", "stopped", "loader")
"""What the last ranks of eight do: rank 1 on one node and rank 4 on the other are where most of a job is."""


@pytest.mark.parametrize(
    ("job", "hows"),
    [
        ("tcpstore", ("step", "stopped")),
        pytest.param("tcpstore", HOWS, marks=pytest.mark.long),
        pytest.param("etcd", ("step", "asleep"), marks=pytest.mark.long),
    ],
    indirect=["job"],
)
def test_the_report_of_both_nodes_names_the_ranks_that_hang_elsewhere(
    job: Jobs, launch: Launcher, tmp_path: Path, hows: tuple[str, ...]
) -> None:
    per_node = len(hows) // 2 + 1
    options = (f"--nproc-per-node={per_node}", "--redirects=3", f"--log-dir={tmp_path}/logs")
    made = job("2", *options, conf=PATIENT)
    agents = made.nodes("ab", program=(HANGS, ",".join(hows)))
    odd = {rank: ODD[how] for rank, how in enumerate(hows, 2) if how != "step"}
    workers = all_hang(agents, per_node, odd)
    # The one that is stopped may not run on, so it does not answer; py-spy names the line, where there is one.
    shown = re.sub("(rank [0-9]+) stopped", rf"\1 {ODD['stopped'].partition(',')[0]}, stopped", ask(made, launch))
    most = f"ranks 1, {per_node} {STEP}"
    names = {rank: "a" if rank < per_node else "b" for rank in odd}
    assert {
        f"{most} · a, b",
        *(f"rank {rank} {place} · {names[rank]}" for rank, place in odd.items()),
    } < set(shown.splitlines())
    agents[0].open_gate()
    assert comes_true(lambda: len([*tmp_path.glob("logs/*/attempt_0/*/stacks.txt")]) == 2 * per_node - 1)
    for worker in workers[1:]:  # both nodes have looked
        with suppress(ProcessLookupError):
            os.kill(worker.pid, signal.SIGKILL)
    for agent, name in zip(agents, "ab", strict=True):
        ended = agent.ends()
        assert ended.code == 1
        report = made.report(name)
        places = [{"place": place, "ranks": [rank]} for rank, place in odd.items()]
        assert report["stacks"] == [{"place": STEP, "ranks": [1, per_node]}, *places]
        assert report["failures"][report["cause"]]["rank"] == 0
        rows = [row.split(maxsplit=1) for row in ended.lines if row.startswith("  ")]
        told = " · ".join(f"rank {rank} {place}" for rank, place in odd.items())
        assert ["stacks", f"{most} · {told}"] in rows
    written = sorted(tmp_path.glob("logs/*/attempt_0/*/stacks.txt"))
    assert sorted(file.read_text().split(",")[0] for file in written) == [
        f"rank {rank}" for rank in range(1, 2 * per_node)
    ]


def test_all_agents_tell_what_their_workers_are_doing_while_they_run(
    job: Jobs, launch: Launcher, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    file.chmod(0o600)
    sealed = seal(Secret(TOKEN.encode()))
    three = job("2", "--nproc-per-node=2", conf=f"{PATIENT}token_file={file},", seal=sealed)
    agents = three.nodes("ab")
    workers = run(agents, 2)
    late = three.node("c")
    three.reaches(lambda state: len(state.seats) == 3)
    own = f"--rdzv-conf=token_file={file}"
    assert comes_true(lambda: WAITS in ask(three, launch, own))
    told = list[dict[str, Any]]()

    def all_wait() -> bool:
        told.append(json.loads(ask(three, launch, "--json", "--full=3", own)))
        return [each["ranks"] for each in told[-1]["stacks"]] == [[0, 1, 2, 3]]

    assert comes_true(all_wait), told[-1]
    assert [(each["ranks"], each["answered"]) for each in told[-1]["nodes"]] == [
        ([0, 1], True),
        ([2, 3], True),
        ([], True),
    ]
    full = told[-1]["full"]
    assert f"kernel: task {workers[3].pid}, state " in full and "in wait_for_gate" in full
    late.signal(signal.SIGSTOP)
    silent = ask(three, launch, own, "--timeout=1").splitlines()[-1]
    assert silent.startswith("no answer: ") and silent.endswith("c")
    late.signal(signal.SIGCONT)
    assert comes_true(lambda: left_in(three) == [])
    if not three.etcd:
        refused = asked(three, launch=launch, command="stacks")
        assert (refused.returncode, refused.stdout) == (3, "") and "token" in refused.stderr
    assert codes([*end(agents), late.ends()]) == [0, 0, 0]


def ask(job: Job, launch: Launcher, *options: str) -> str:
    """What the command prints. A store that stands still for long is asked again."""
    shown = asked(job, f"--timeout={PATIENCE_S}", *options, launch=launch, command="stacks")
    while shown.returncode == RENDEZVOUS and "no answer" in shown.stderr:
        shown = asked(job, f"--timeout={PATIENCE_S}", *options, launch=launch, command="stacks")
    assert (shown.returncode, [each for each in shown.stderr.splitlines() if "token" not in each]) == (0, [])
    return shown.stdout


def left_in(job: Job) -> list[str]:
    """What a query has left in the store."""
    names = ["query", *(f"reply/{name}" for name in "abc")]
    if job.etcd:
        held = job.etcd.etcdctl("get", f"{prefix(job)}/", "--prefix", "--keys-only").split()
        return [key for key in held if key.startswith(tuple(f"{prefix(job)}/{name}" for name in names))]
    state = job.reaches(lambda state: True)
    nodes = [f"reply/{quote(str(node), safe='')}" for node in state.seats]
    with client_of(job) as client:
        return [name for name in ("query", *nodes) if client.get(f"{prefix(job)}/{name}")[0]]


def test_each_round_has_its_stacks_and_the_report_shows_the_last_ones(launch: Launcher, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import stage, threading\nlock = threading.Lock()\nlock.acquire()\n"
        "def step():\n    lock.acquire()\nstage.tell('begins')\n"
        "if stage.rank == 0:\n    stage.wait_for_gate(stage.round)\n    raise SystemExit(3)\nstep()\n"
    )
    running = launch("--nproc-per-node=2", "--max-restarts=1", "--log-dir", tmp_path / "logs", script)
    for round in (0, 1):
        hangs_at(running.hears(2)[1].pid, "at train.py:5 in step")
        running.open_gate(round)
    ended = running.ends()
    assert ended.code == 1
    assert "  stacks        rank 1 at train.py:5 in step" in ended.lines
    written = [each.parent.parent.name for each in tmp_path.glob("logs/*/attempt_*/*/stacks.txt")]
    assert sorted(written) == ["attempt_0", "attempt_1"]


@pytest.mark.parametrize("way", ["off", "binary", "signal"])
def test_no_handler_no_harm(launch: Launcher, tmp_path: Path, way: str) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        f"import signal, stage\ndef told(*given):\n    stage.tell('got the signal')\nsignal.signal({STACKS_SIGNAL}, told)\n"
        "stage.tell('begins')\nif stage.rank == 0:\n    stage.wait_for_gate()\n    raise SystemExit(3)\n"
        "stage.wait_for_gate(1)\n"
    )
    program = ("--no-python", sys.executable, script) if way == "binary" else (script,)
    chosen = {"off": "off", "binary": "", "signal": str(STACKS_SIGNAL + 1)}[way]
    running = launch("--nproc-per-node=2", *program, environment={"ELASTIC_STACKS_SIGNAL": chosen})
    running.hears(2)
    running.open_gate()
    ended = running.ends()
    rows = [each for each in ended.lines if each.startswith("  stacks")]
    assert ended.code == 1 and len(rows) == (0 if way == "off" else 1)
    assert "got the signal" not in running.account()


def test_a_node_that_stops_its_workers_on_a_person_s_word_asks_for_no_stacks(launch: Launcher, tmp_path: Path) -> None:
    running = launch("--log-dir", tmp_path / "logs", PROGRAMS / "stay.py")
    running.hears(1)
    running.signal(signal.SIGTERM)
    ended = running.ends()
    assert ended.code == 128 + signal.SIGTERM and "stacks" not in ended.err
    assert not list(tmp_path.glob("logs/**/stacks.txt"))


@only_in("tcpstore")
def test_a_job_that_hangs_is_restarted_by_a_failure_of_the_rank_for_which_all_others_wait(
    job: Jobs, launch: Launcher
) -> None:
    made = job("2", "--nproc-per-node=2", "--hang-timeout=2", "--on-hang=restart")
    agents = made.nodes("ab", program=(HANGS, "asleep", "whole"))
    for agent, name in zip(agents, "ab", strict=True):
        ended = agent.ends()
        assert ended.code == 1
        assert name == "a" or f"rank 3 {ODD['asleep']} · the odd one is rank 3 on b" in ended.err
        report = made.report(name)
        cause = report["failures"][report["cause"]]
        assert (cause["rank"], cause["where"]) == (3, ODD["asleep"].removeprefix("at "))
        assert cause["message"].startswith("hang: no rank made progress for ")
        assert report["stacks"] == [{"place": STEP, "ranks": [0, 1, 2]}, {"place": ODD["asleep"], "ranks": [3]}]
    hung = [loss.cause for loss in losses(accounts(launch.traces)) if loss.cause.kind is Kind.HANG]
    assert [(cause.round, cause.rank) for cause in hung] == [(0, 3)]


@pytest.mark.skipif(not SOAK, reason="minutes, for the soak")
@pytest.mark.parametrize("how", [*ODD, "spinning"])
@only_in("tcpstore")
def test_both_nodes_say_that_the_job_hangs_and_where_the_odd_rank_is(
    job: Jobs, launch: Launcher, tmp_path: Path, how: str
) -> None:
    made = job("2", "--nproc-per-node=4", "--hang-timeout=4", f"--log-dir={tmp_path}/logs")
    agents = made.nodes("ab", program=(HANGS, how, "whole"))
    told = [each for agent in agents for each in agent.hears(4)]
    odd = ODD.get(how, f"at hangs.py:{line('itertools.repeat')} in spinning")
    if how == "stopped" and not py_spy():
        odd = "stopped (SIGSTOP)"
    if how == "spinning" and not py_spy():
        odd = "running"
    for agent in agents:
        agent.says("the odd one is rank 7 on b")
    shown = ask(made, launch).splitlines()
    assert {f"ranks 0, 1, 2, 3, 4, 5, 6 {STEP} · a, b", f"rank 7 {odd} · b"} <= set(shown)
    assert len(told) == 8
    for agent in agents:
        agent.signal(signal.SIGINT)
    for agent, name in zip(agents, "ab", strict=True):
        assert agent.ends().code == 128 + signal.SIGINT
        (*_, hang) = made.report(name)["here"]["hangs"]
        assert hang["stacks"] == [{"place": STEP, "ranks": [*range(7)]}, {"place": odd, "ranks": [7]}]
        assert hang["odd"] == 7
