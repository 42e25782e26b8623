"""What `elastic what-if` finds of real jobs: first each as it was recorded, then the same faults really run again under
another setting, beside what was supposed.

    python benchmarks/what_if.py [--only NAME,…] [--seeds N]

All agents run on this host, each worker makes steps of 50 ms, and its imports take a second. A fault comes at a time since
the first step, and 20 ms later: no run can tell what comes first, it or the end of a step. The figures are node time in
seconds; `lost` is what events took (`elastic goodput`), but for first starts. A prediction holds if it is within a tenth of
the lost time that was measured, or within 0.3 s. Nothing is supposed of a job that the simulator does not know (*off* is
above 10 %), as by `elastic what-if`. Each row ends with the load of the machine while its job ran: losses of a few seconds
move with it. A job that does not run is named, and the others run all the same.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from attrs import frozen
from measuring import BIN, HERE, facts, load, stage, stop_on_signals
from nodes import free_port

from elastic.adapters.report.trace_file import lines
from elastic.core.goodput import NO_LOSS, Kind
from elastic.core.rendezvous import Limits
from elastic.core.replay.chronicle import Chronicle, told
from elastic.core.sim.what_if import AS_RECORDED, BAD, Forecast, Supposition, calibration, what_if
from elastic.core.trace.lines import traces

PROGRAM = HERE / "programs" / "steps.py"
STEPS = "200"
HOLDS, HOLDS_S = 0.1, 0.3
LATE_S, RUN_TIMEOUT_S = 0.02, 180.0
LINKED, UNLINKED = "peer_links=true", "peer_links=false"

Fault = tuple[float, str, int]
"""When (seconds after the first step), what (worker, kill, start, drain, hang, store), and which node."""


@frozen
class Job:
    name: str
    nodes: int
    nnodes: str
    faults: Sequence[Fault]
    options: Sequence[str] = ()
    conf: str = LINKED
    later: Sequence[int] = ()
    """These nodes are not started with the others."""
    saves_every: int = 10
    """The workers save after this number of steps."""


JOBS = (
    Job("a worker is killed", 2, "2", [(3.0, "worker", 1)]),
    Job("two workers are killed", 3, "3", [(2.0, "worker", 1), (7.0, "worker", 2)]),
    Job("a node is lost and comes back", 2, "2", [(3.0, "kill", 1), (6.0, "start", 1)]),
    Job("one of three is lost and comes back", 3, "2:3", [(3.0, "kill", 2), (8.0, "start", 2)]),
    Job(
        "a node is drained and comes back",
        3,
        "2:3",
        [(3.0, "drain", 2), (9.0, "start", 2)],
        ("--drain-signal=USR1", "--drain-deadline=4"),
    ),
    Job("a hang", 2, "2", [(3.0, "hang", 1)], ("--hang-timeout=3", "--on-hang=restart")),
    Job("a node is lost, a spare is there", 3, "2", [(3.0, "kill", 1)]),
    Job("a node is lost without links", 2, "2", [(3.0, "kill", 1), (11.0, "start", 1)], conf=UNLINKED),
    Job("four nodes, a worker and a node", 4, "3:4", [(3.0, "worker", 1), (8.0, "kill", 3), (11.0, "start", 3)]),
    Job("a worker is killed, saves are rare", 2, "2", [(3.5, "worker", 1)], saves_every=90),
    Job("a node is lost, saves are frequent", 2, "2", [(3.5, "kill", 1), (6.0, "start", 1)], saves_every=5),
    Job("a late node", 2, "1:2", [(4.0, "start", 1)], later=(1,)),
)


@frozen
class Change:
    """A recorded job, what is supposed of it, and the job that shows what that really comes to."""

    recorded: str
    what: str
    supposed: Callable[[float], Supposition]
    """Told how long a start from a standby takes."""
    really: Job


CHANGES = (
    Change(
        "a worker is killed",
        "standby",
        lambda start_s: Supposition(standby_s=start_s),
        Job("", 2, "2", [(3.0, "worker", 1)], ("--standby", "--preload=takes_a_second")),
    ),
    Change(
        "a worker is killed, saves are rare",
        "a save each 1.1 s",
        lambda _: Supposition(checkpoint_every=1.1),
        Job("", 2, "2", [(3.5, "worker", 1)], saves_every=20),
    ),
    Change(
        "a node is lost, saves are frequent",
        "a save each 3.1 s",
        lambda _: Supposition(checkpoint_every=3.1),
        Job("", 2, "2", [(3.5, "kill", 1), (6.0, "start", 1)], saves_every=60),
    ),
    Change(
        "a node is lost and comes back",
        "no links",
        lambda _: Supposition(links=False),
        Job("", 2, "2", [(3.0, "kill", 1), (6.0, "start", 1)], conf=UNLINKED),
    ),
    Change(
        "a node is lost and comes back",
        "a spare more",
        lambda _: Supposition(spares=1),
        Job("", 3, "2", [(3.0, "kill", 1), (6.0, "start", 1)]),
    ),
    Change(
        "a node is lost without links",
        "links",
        lambda _: Supposition(links=True),
        Job("", 2, "2", [(3.0, "kill", 1), (11.0, "start", 1)]),
    ),
    Change(
        "a node is lost without links",
        "TTL 2 s",
        lambda _: Supposition(ttl=2.0),
        Job("", 2, "2", [(3.0, "kill", 1), (11.0, "start", 1)], conf=f"{UNLINKED},keep_alive_interval=0.4"),
    ),
    Change(
        "one of three is lost and comes back",
        "all three or none",
        lambda _: Supposition(nodes=Limits(3, 3)),
        Job("", 3, "3", [(3.0, "kill", 2), (8.0, "start", 2)]),
    ),
)


def run(job: Job, folder: Path) -> Chronicle:
    """Run a job with its faults; return what its traces tell."""
    meeting = f"--rdzv-endpoint=localhost:{free_port()}"
    agents = dict[int, subprocess.Popen[bytes]]()
    every = list[subprocess.Popen[bytes]]()

    def mark(node: int, what: str) -> None:
        """Write to the marks of this node's workers (`programs/steps.py`)."""
        with (folder / f"marks-{node}").open("a") as file:
            file.write(f"{what}\n")

    def start(node: int) -> None:
        environment = {
            **os.environ,
            "BENCHMARK_STAGE": str(folder),
            "ELASTIC_BENCHMARK_NODE": str(node),
            "ELASTIC_BENCHMARK_SAVES_EVERY": str(job.saves_every),
            "PYTHONPATH": str(PROGRAM.parent),
        }
        mark(node, "agent")
        host = "true" if node == 0 else "false"
        options = [f"--nnodes={job.nnodes}", "--nproc-per-node=1", "--max-restarts=5", meeting, "--rdzv-id=b"]
        options += [f"--rdzv-conf=is_host={host},{job.conf}", f"--node-id=n{node}", f"--trace={folder}/traces/"]
        command = [str(BIN / "elastic"), "launch", *options, *job.options, str(PROGRAM), STEPS]
        with (folder / f"node-{node}.log").open("ab") as log:
            agents[node] = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)
        every.append(agents[node])

    (folder / "traces").mkdir()
    try:
        for node in range(job.nodes):
            if node not in job.later:
                start(node)
        began_at = up_at(folder)
        meant = dict[int, int]()
        for at, what, given in job.faults:
            time.sleep(max(0.0, began_at + LATE_S + at - time.monotonic()))
            works = what == "start" or (folder / f"worker-{given}").exists()
            node = meant.setdefault(given, given if works else 2)  # a spare is not meant, and who was lost comes back
            match what:
                case "worker":
                    mark(node, f"end {time.monotonic()}")
                    os.kill(int((folder / f"worker-{node}").read_text()), signal.SIGKILL)
                case "kill":
                    for pid in [*descendants(agents[node].pid), agents[node].pid]:
                        with suppress(ProcessLookupError):
                            os.kill(pid, signal.SIGKILL)
                    mark(node, "killed")
                case "drain":
                    agents[node].send_signal(signal.SIGUSR1)
                case "store":
                    os.kill(helper(agents[node].pid), signal.SIGKILL)
                case "hang":
                    (folder / "hang").touch()
                case _:
                    start(node)
        agents[0].wait(max(1.0, began_at + RUN_TIMEOUT_S - time.monotonic()))
        for agent in every:
            with suppress(subprocess.TimeoutExpired):  # one that comes to an end of the job that it has not seen
                agent.wait(10.0)
    finally:
        for agent in every:
            agent.kill()
            agent.wait()
    files = sorted((folder / "traces").glob("*.ndjson"))
    return told(trace for file in files for trace in traces(lines(str(file))))


def up_at(folder: Path) -> float:
    """Wait until a worker has made its first step; return when."""
    give_up_at = time.monotonic() + RUN_TIMEOUT_S
    while not (folder / "up").exists():
        if time.monotonic() > give_up_at:
            raise RuntimeError("no worker makes a step")
        time.sleep(0.01)
    return time.monotonic()


def descendants(pid: int) -> list[int]:
    children = list[int]()
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            children += map(int, (task / "children").read_text().split())
    return [each for child in children for each in (child, *descendants(child))]


def helper(agent: int) -> int:
    """Return the process that serves the store of this agent, which starts another one when it dies."""
    (served,) = (pid for pid in descendants(agent) if b"store_host.py" in Path(f"/proc/{pid}/cmdline").read_bytes())
    return served


def lost(spent: Mapping[tuple[str, Kind], float]) -> float:
    return sum(micros for (_, kind), micros in spent.items() if kind not in (*NO_LOSS, Kind.FIRST)) / 1e6


def supposed_lost(forecast: Forecast) -> tuple[float, float]:
    each = sorted(lost(played.spent) for played in forecast.played)
    return median(each), each[-1] - each[0]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="names of jobs, or parts of them")
    parser.add_argument("--seeds", type=int, default=20)
    given = parser.parse_args()
    wanted = [name for name in given.only.split(",") if name]
    stop_on_signals()
    recorded, all_hold = dict[str, Chronicle](), True
    with stage():
        print(facts(), "", sep="\n")
        table("job", "node time, s", "off, most", "in", "rounds ended by", "the same in", "load")
        for job in JOBS:
            if wanted and not any(name in job.name for name in wanted):
                continue
            if ran := recording(job, job.name):
                recorded[job.name] = ran
                tell_calibration(job, ran, given.seeds)
            all_hold &= ran is not None
        print()
        table("job", "supposed", "lost as recorded, s", "replayed", "as supposed", "really", "off", "holds", "load")
        for change in CHANGES:
            if change.recorded in recorded:
                all_hold &= tell_change(change, recorded[change.recorded], given.seeds)
    return 0 if all_hold else 1


def table(*names: str) -> None:
    row(*names)
    row(*("---" for _ in names))


def row(*cells: str) -> None:
    print(f"| {' | '.join(cells)} |", flush=True)


def recording(job: Job, *names: str) -> Chronicle | None:
    """Return what the traces of this job tell, or print a row of these names with the reason that there are none."""
    try:
        with TemporaryDirectory() as folder:
            return run(job, Path(folder))
    except (RuntimeError, ValueError, OSError) as reason:
        row(*names, f"not measured: {reason}", load())
        return None


def tell_calibration(job: Job, chronicle: Chronicle, seeds: int) -> None:
    forecast = what_if(chronicle, AS_RECORDED, seeds=seeds)
    worst = forecast.worst
    total = sum(chronicle.recorded.values()) / 1e6
    row(
        job.name,
        f"{total:.1f}",
        f"{100 * forecast.off:.1f} %",
        f"{worst.bucket}: {worst.recorded / 1e6:.2f}, {worst.mean / 1e6:.2f} ± {worst.spread / 1e6:.2f}"
        if worst
        else "",
        ", ".join(kind.value for kind in chronicle.ends),
        f"{forecast.agreeing} of {seeds}",
        load(),
    )


def tell_change(change: Change, chronicle: Chronicle, seeds: int) -> bool:
    """Print what was supposed of this job beside what it really came to. Return True if that holds."""
    really = recording(change.really, change.recorded, change.what)
    if really is None:
        return False
    loaded = load()
    standby = [span for each in really.spans.values() for span in each.standby]
    supposed = change.supposed(median(standby) if standby else 0.0)
    as_it_was = what_if(chronicle, calibration(chronicle, supposed), seeds=seeds)
    again, _ = supposed_lost(as_it_was)
    was, measured = lost(chronicle.recorded), lost(really.recorded)
    if as_it_was.off > BAD:
        refused = f"refused: off by {100 * as_it_was.off:.0f} %"
        row(change.recorded, change.what, f"{was:.2f}", f"{again:.2f}", refused, f"{measured:.2f}", "", "", loaded)
        return False
    says, spread = supposed_lost(what_if(chronicle, supposed, seeds=seeds))
    off = abs(says - measured)
    holds = off <= max(HOLDS * measured, HOLDS_S)
    row(
        *(change.recorded, change.what, f"{was:.2f}", f"{again:.2f}", f"{says:.2f} (± {spread / 2:.2f})"),
        *(f"{measured:.2f}", f"{100 * off / measured:.0f} %", "yes" if holds else "no", loaded),
    )
    return holds


if __name__ == "__main__":
    sys.exit(main())
