"""More nodes than write each by itself: one of them writes for all, with real agents on a real store."""

from __future__ import annotations

from itertools import chain

from jobs import Jobs, codes, end, kill, only_in, run, worlds
from launches import Launcher
from replays import replays

from elastic.core.rendezvous import Together, Write
from elastic.core.trace.steps import Asked

NAMES = "abcdefghij"


@only_in("etcd")
def test_ten_nodes_come_back_and_end_by_what_few_of_them_write_for_all(job: Jobs, launch: Launcher) -> None:
    ten = job(str(len(NAMES)), "--max-restarts=1")
    agents = [ten.node(name) for name in NAMES]
    first = run(agents)
    kill(first[3].pid)
    second = run(agents)
    assert worlds(second) == {(1, f"restart 1 of {len(NAMES)} workers")}
    assert {worker.rank for worker in second} == set(range(len(NAMES)))
    assert codes(end(agents)) == [0] * len(NAMES)
    steps = chain.from_iterable(run.trace.steps for run in replays(launch.traces))
    asks = [step.ask for step in steps if isinstance(step, Asked)]
    batches = [ask.edit for ask in asks if isinstance(ask, Write) and isinstance(ask.edit, Together)]
    assert max(len(batch.proposals) for batch in batches) > 1
