"""How soon `elastic status --json` answers about a job of hundreds of nodes, and what it asks of the store.

    python benchmarks/status.py [--agents 64,256] [--stores tcpstore,etcd] [--runs N]

The nodes are those of fleet.py: real clients of a real store, which beat while they are asked about. `status` is the whole
command, from its execution to its end; `version` is `elastic --version`, which asks no store. They take turns. The requests
are counted in this process. On a TCPStore a look at a running job listens to heartbeats until each node has had a new one,
for LISTEN_S at most, with a request every LISTEN_EVERY_S: the bars leave room for that. The exit code is 1 if one is missed.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from io import StringIO
from uuid import uuid4

from counted import CountedMembers, total
from fleet import ETCD_MEMBERS, fleet
from measuring import BIN, Bar, Measure, all_hold, facts, load, stop_on_signals, table
from stores import Store, etcd, tcpstore

from elastic.adapters.store.etcd import members
from elastic.cli.looking import LISTEN_EVERY_S, LISTEN_S
from elastic.cli.main import run

ELASTIC = str(BIN / "elastic")
SPAN_MS = 300.0
REQUESTS_MAX = 10
members.Members = CountedMembers  # type: ignore[misc]


def measure(kind: str, store: Store, agents: int, runs: int) -> Iterator[Measure]:
    """Yield the times of this fleet's status, and its requests."""
    run_id = uuid4().hex
    with fleet(kind, store.addresses, agents, run_id) as ends:
        for each in ends:
            each.send("first world")
        for each in ends:
            each.recv()
        command = ["status", "--json", *named(kind, store, run_id)]
        took = {"status": list[float](), "version": list[float]()}
        for _ in range(runs + 1):
            took["status"].append(taken_ms(command, agents))
            took["version"].append(taken_ms(["--version"], 0))
        requests = asked(command, agents)
    title = f"{kind}, {agents} nodes"
    listens_s = LISTEN_S if kind == "tcpstore" else 0.0
    span_ms, requests_max = SPAN_MS + 1000 * listens_s, REQUESTS_MAX + math.ceil(listens_s / LISTEN_EVERY_S)
    bar = Bar(f"≤ {span_ms:g} ms", lambda medians: medians["status"] <= span_ms)
    yield Measure(title, "ms", {name: each[1:] for name, each in took.items()}, (bar,))
    few = Bar(f"≤ {requests_max}", lambda medians: medians["status"] <= requests_max)
    yield Measure(title, "requests", {"status": [requests]}, (few,))


def named(kind: str, store: Store, run_id: str) -> list[str]:
    endpoints = ",".join(map(str, store.addresses))
    backend = {"tcpstore": "c10d"}.get(kind, kind)
    return [f"--rdzv-backend={backend}", f"--rdzv-endpoint={endpoints}", f"--rdzv-id={run_id}"]


def taken_ms(command: Sequence[str], nodes: int) -> float:
    """Return how long this command line takes. It must know of so many nodes."""
    began_at = time.monotonic()
    said = subprocess.run([ELASTIC, *command], check=True, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    took_ms = 1000 * (time.monotonic() - began_at)
    assert not nodes or len(json.loads(said.stdout)["nodes"]) == nodes, said.stdout
    return took_ms


def asked(command: Sequence[str], nodes: int) -> int:
    """Return the requests of this command line, which is run here."""
    before, said = total().requests, StringIO()
    with redirect_stdout(said):
        run(list(command))
    assert len(json.loads(said.getvalue())["nodes"]) == nodes
    return total().requests - before


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--agents", default="64,256", metavar="N,N", help="numbers of nodes [64,256]")
    parser.add_argument("--stores", default="tcpstore,etcd", metavar="NAME,NAME", help="[tcpstore,etcd]")
    parser.add_argument("--runs", type=int, default=10, metavar="N", help="counted runs of each command [10]")
    given = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    print(facts(), flush=True)
    measures = list[Measure]()
    for kind in given.stores.split(","):
        for agents in map(int, given.agents.split(",")):
            with tcpstore() if kind == "tcpstore" else etcd(ETCD_MEMBERS) as store:
                measures += measure(kind, store, agents, given.runs)
    print("\n".join(table(measures, ("status", "version"), ())))
    print(f"\nload afterwards {load()}")
    return 0 if all_hold(measures) else 1


if __name__ == "__main__":
    stop_on_signals()
    sys.exit(main())
