"""How long it takes to tell where the time of 1,000 nodes went by the records in their job's store, and what these cost.

    python benchmarks/node_times.py [--nodes 1000] [--stores tcpstore,etcd] [--runs 5]

A record is as large after a month as after a day: it has the buckets and causes of a long life, each once. `told` reads all
records with a new client, adds them up and makes the lines of `elastic status`. `beaten` is what a heartbeat costs an agent
beside which nothing is put. The exit code is 1 if a bar is missed.
"""

from __future__ import annotations

import argparse
import sys
import time
import timeit
from collections.abc import Iterator
from uuid import uuid4

from measuring import Bar, Measure, all_hold, facts, stop_on_signals, table
from stores import Store, etcd, tcpstore

from elastic.adapters.agent.node_time import NodeTime
from elastic.adapters.agent.time_teller import TimeTeller
from elastic.adapters.clock import SystemClock
from elastic.adapters.report.news import NoTrace
from elastic.adapters.store.memory_store import MemoryBackend, MemoryStore
from elastic.adapters.store.note_codec import encoded
from elastic.adapters.store.notes import TIMES
from elastic.cli.render.goodput import of_job
from elastic.core.goodput import NodeRecord, Spent, job_time
from elastic.core.group import Group
from elastic.core.world import Life, Node

MONTH = 30 * 86_400_000_000
LOST = ("starting", "stopping", "waiting", "recomputed")
CAUSES = ("first start", "failure", "loss", "drain", "upscale", "hang", "store", "operator")
SHARES = {
    ("training", "none"): MONTH,
    ("checkpoint", "program"): MONTH // 50,
    **{(bucket, cause): MONTH // 9_999 for bucket in LOST for cause in CAUSES},
}
TOLD_MAX_S = 5.0
BEATEN_US = 5.0
BEATS = 100_000


def record(number: int) -> NodeRecord:
    gone = tuple((Node(f"10.0.0.{each}/0123abcd", 1_790_000_000_000), 0) for each in range(64))
    last = gone if number == 0 else ()
    node = Node(f"10.0.{number // 250}.{number % 250}/{number:08x}", 1_790_000_000_000)
    return NodeRecord(node, Spent(SHARES, MONTH // 60, trains=True), SHARES if last else {}, len(last), last, 0, at=1)


def measure(kind: str, store: Store, nodes: int, runs: int) -> Iterator[Measure]:
    """Yield what it takes to put the records one by one, and to tell their sum."""
    run_id, records = uuid4().hex, [record(number) for number in range(nodes)]
    client = store.client(run_id)
    began_at = time.monotonic()
    for each in records:
        client.notes.put(TIMES, each.node, each)
    put_ms = 1_000 * (time.monotonic() - began_at) / nodes
    yield Measure(f"{kind}, a record of {len(encoded(TIMES, records[1])):,} bytes", "ms", {"put": [put_ms]})
    took = list[float]()
    for _ in range(runs):
        reader = store.client(run_id)
        began_at = time.monotonic()
        found = reader.notes.read(TIMES, [each.node for each in records])
        lines = of_job(job_time(found.values()))
        took.append(time.monotonic() - began_at)
        reader.close()
        assert len(found) == nodes and f"of {nodes + 64:d} nodes" in lines[0], lines
    client.close()
    bar = Bar(f"≤ {TOLD_MAX_S:g} s", lambda medians: medians["told"] <= TOLD_MAX_S)
    yield Measure(f"{kind}, {nodes} nodes", "s", {"told": took}, (bar,))


def of_heartbeat() -> Measure:
    """Return what a heartbeat costs beside which there is nothing to put."""
    clock, node = SystemClock(), Node("a", 1)
    time_ = NodeTime(NoTrace(), lambda: Group(node))
    teller = TimeTeller(MemoryBackend(MemoryStore(), clock).notes, node, time_, clock, lambda news: None)
    life = Life("life")
    teller._put_at, teller._again_at = (life, 0, False), clock.now() + 3_600.0
    spent = [1e6 * timeit.timeit(lambda: teller.beaten(life), number=BEATS) / BEATS for _ in range(5)]
    bar = Bar(f"≤ {BEATEN_US:g} µs", lambda medians: medians["beaten"] <= BEATEN_US)
    return Measure("a heartbeat, nothing to put", "µs", {"beaten": spent}, (bar,))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=1_000, metavar="N", help="[1000]")
    parser.add_argument("--stores", default="tcpstore,etcd", metavar="NAME,NAME", help="[tcpstore,etcd]")
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="[5]")
    given = parser.parse_args()
    print(facts(), flush=True)
    measures = [of_heartbeat()]
    for kind in given.stores.split(","):
        with tcpstore() if kind == "tcpstore" else etcd(1) as store:
            measures += measure(kind, store, given.nodes, given.runs)
    print("\n".join(table(measures, ("beaten", "put", "told"), ())))
    return 0 if all_hold(measures) else 1


if __name__ == "__main__":
    stop_on_signals()
    sys.exit(main())
