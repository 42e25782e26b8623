"""Who is named when one rank of a job fails and its peers fail of it: `elastic launch` over gloo, again and again.

    python benchmarks/causes.py [--runs N] [--runs-of-8 N] [--load N] [--only ROW] [--elastic ELASTIC]

Each row starts a training (programs/raises.py) in one way, or fails in one way. In each run another rank fails. A run counts
if the report names that rank as the first cause, for sure, with its reason, and no other rank anywhere as the cause. Beside
the runs N processes keep the CPUs busy. The exit code is 1 if a run does not count.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from attrs import frozen
from measuring import BIN, HERE, facts, kill_descendants, load, stage, stop_on_signals

PROGRAM = HERE / "programs" / "raises.py"
CAUSE = "RuntimeError: the real cause"
RUN_TIMEOUT_S = 180
_FIRST = re.compile(r"^ +first cause +(?:\S+ )+?rank (?P<rank>\d+), round 0, (?P<rest>.*)$", re.MULTILINE)


@frozen
class Row:
    """One way to start or to fail. `command` makes the command of a node out of the number of its workers, how to fail, and
    the rank that fails; `nodes` agents meet."""

    title: str
    how: str
    command: Callable[[int, str, int], Sequence[str]]
    reason: str = CAUSE
    """The report has this text, or one of several with | between them: torch may abort a process that ends."""
    nodes: int = 1


def launched(
    *options: str, program: Sequence[str] = (str(PROGRAM),), words: Sequence[str] = ()
) -> Callable[..., list[str]]:
    def command(workers: int, how: str, rank: int) -> list[str]:
        common = ["launch", "--max-restarts=0", f"--nproc-per-node={workers}"]
        return [ELASTIC, *common, *options, *program, how, str(rank), *words]

    return command


def called(workers: int, how: str, rank: int) -> list[str]:
    return [sys.executable, str(HERE / "programs" / "raises_function.py"), str(workers), how, str(rank)]


ELASTIC = str(BIN / "elastic")
ROWS = (
    Row("plain", "all_reduce", launched()),
    Row("--tee", "all_reduce", launched("--tee=3")),
    Row("@record", "all_reduce", launched(words=("record",))),
    Row("-m", "all_reduce", launched(program=("-m", "raises"))),
    Row("--run-path", "all_reduce", launched("--run-path")),
    Row("function", "all_reduce", called),
    Row("standby", "all_reduce", launched("--standby")),
    Row("2 agents", "all_reduce", launched("--nnodes=2"), nodes=2),
    Row("DDP backward", "ddp", launched()),
    Row("FSDP2", "fsdp2", launched()),
    Row("a broken DataLoader", "loader", launched(), "RuntimeError: DataLoader worker"),
    Row("sys.exit(7)", "exit", launched(), "exit code 7|killed by SIGABRT while it ended"),
    Row("a hang in atexit", "atexit", launched("--grace=2")),
    Row("a console that goes on", "repl", launched()),
)


@frozen
class Told:
    """What the agents of one run said."""

    texts: Sequence[str]

    @property
    def first_causes(self) -> list[tuple[int, str]]:
        return [(int(found["rank"]), found["rest"]) for text in self.texts for found in _FIRST.finditer(text)]

    def names(self, rank: int, reason: str) -> bool:
        """Return True if every agent that tells of a cause names this one, and one does."""
        causes = self.first_causes
        texts = reason.split("|")
        return bool(causes) and all(named == rank and any(text in rest for text in texts) for named, rest in causes)


def run(row: Row, world: int, rank: int, folder: Path) -> Told:
    """Run one job to its end."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    meeting = [f"--rdzv-endpoint=127.0.0.1:{port}", "--rdzv-id=causes"] if row.nodes > 1 else []
    environment = {**os.environ, "PYTHONPATH": str(PROGRAM.parent)}
    agents, outputs = [], []
    for number in range(row.nodes):
        program, *words = row.command(world // row.nodes, row.how, rank)
        command = [program, words[0], *meeting, *([f"--node-id=n{number}"] if meeting else []), *words[1:]]
        output = (folder / f"agent{number}").open("w+")
        outputs.append(output)
        agents.append(
            subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment, cwd=folder
            )
        )
    signal.alarm(RUN_TIMEOUT_S)
    for agent in agents:
        agent.wait()
    signal.alarm(0)
    texts = []
    for output in outputs:
        output.seek(0)
        texts.append(output.read())
        output.close()
    return Told(texts)


@contextmanager
def busy(count: int) -> Iterator[None]:
    """Keep the CPUs busy with so many processes."""
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def measured(row: Row, world: int, runs: int, folder: Path, wrong: list[str]) -> str:
    """Return the cell of a row: in how many runs the right rank was named with its reason."""
    right = 0
    for number in range(runs):
        rank = number % world
        told = run(row, world, rank, folder)
        if told.names(rank, row.reason):
            right += 1
        else:
            wrong.append(f"{row.title}, {world} ranks, rank {rank} fails: {json.dumps(told.texts)}")
    return f"{right} of {runs}"


def table(rows: Sequence[Row], runs: Mapping[int, int], folder: Path, wrong: list[str]) -> Iterator[str]:
    yield f"| the rank that failed is named, with its reason | {' | '.join(f'{world} ranks' for world in runs)} |"
    yield f"| --- |{' --- |' * len(runs)}"
    for row in rows:
        cells = [measured(row, world, count, folder, wrong) for world, count in runs.items()]
        yield f"| {row.title} | {' | '.join(cells)} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=300, metavar="N", help="runs of each row with 2 ranks [300]")
    parser.add_argument("--runs-of-8", type=int, default=30, metavar="N", help="runs of each row with 8 ranks [30]")
    parser.add_argument("--load", type=int, default=8, metavar="N", help="busy processes beside them [8]")
    parser.add_argument("--only", choices=[row.title for row in ROWS], metavar="ROW", help="one row alone")
    parser.add_argument("--elastic", default=ELASTIC, help="the `elastic` of another commit")
    given = parser.parse_args()
    globals()["ELASTIC"] = given.elastic
    runs = {world: count for world, count in ((2, given.runs), (8, given.runs_of_8)) if count}
    wrong: list[str] = []
    began_at = time.monotonic()
    with stage(), busy(given.load):
        print(f"{facts()}\nbeside {given.load} busy processes\n", flush=True)
        folder = Path(os.environ["TMPDIR"])
        try:
            for line in table([row for row in ROWS if given.only in (None, row.title)], runs, folder, wrong):
                print(line, flush=True)
        finally:
            kill_descendants()
    print(f"\n{time.monotonic() - began_at:.0f} s, load afterwards {load()}")
    print("\n".join(wrong), file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    stop_on_signals()
    sys.exit(main())
