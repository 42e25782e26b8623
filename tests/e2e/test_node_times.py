"""Where the time of a job's nodes went, from the records in its store: after failures, a lost node and a lost store."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from jobs import PATIENT, Job, Jobs, asked, codes, end, kill, lose, only_in, prefix, run
from launches import Launcher
from leftovers import alive_with
from processes import comes_true

from elastic.adapters.store.notes import TIMES
from elastic.adapters.store.port import StoreError
from elastic.core.goodput import JobTime, NodeRecord, job_time
from elastic.core.world import Node


def records(job: Job) -> Mapping[Node, NodeRecord]:
    """Return the records of those that have seats."""
    client = job.client()
    try:
        state = client.get().state
        return client.notes.read(TIMES, state.seats) if state else {}
    except StoreError:
        return {}
    finally:
        client.close()


def known(job: Job, claim: Callable[[JobTime], bool]) -> JobTime:
    """Wait until this holds for the sum of the records, and return it."""
    seen = list[JobTime]()

    def holds() -> bool:
        seen.append(job_time(records(job).values()))
        return claim(seen[-1])

    assert comes_true(holds), f"the records say {seen[-1]}"
    return seen[-1]


def lost_to(time: JobTime, kind: str) -> int:
    return sum(micros for (_, cause), micros in time.shares.items() if cause == kind)


def total(time: JobTime) -> int:
    return sum(time.shares.values())


def test_the_records_tell_of_a_failed_worker_and_of_a_lost_node_whose_time_stays(job: Jobs, launch: Launcher) -> None:
    three = job("2:3", "--max-restarts=3", "--last-call=1000")
    agents = three.nodes("abc")
    kill(run(agents)[1].pid)
    run(agents)
    first = known(three, lambda time: time.nodes == 3 and lost_to(time, "failure") > 0)
    lose(agents[1])
    stay = [agents[0], agents[2]]
    run(stay)
    second = known(three, lambda time: time.nodes == 3 and lost_to(time, "loss") > 0)
    assert len(records(three)) == 2 and total(second) > total(first)
    assert {record.node.slot: record.gone for record in records(three).values()} == {"a": 1, "c": 0}
    told = json.loads(asked(three, "--json", launch=launch).stdout)
    assert told["goodput"]["nodes"] == 3 and told["goodput"]["micros"] == sum(
        each["micros"] for each in told["goodput"]["shares"]
    )
    shown = asked(three, launch=launch).stdout
    assert " of 3 agents" in shown and "lost to " in shown
    assert codes(end(stay)) == [0, 0]
    here = three.report("a")["here"]
    assert here["job_goodput"]["nodes"] == 3 and here["job_goodput"]["micros"] > here["goodput"]["micros"]


def test_a_store_that_has_lost_its_memory_is_told_again_by_each_node(job: Jobs, nothing_left: str) -> None:
    """What a node that had gone before left to the first one is not lost with it."""
    three = job("2:3", "--max-restarts=3", "--last-call=1000", own_store=True, conf=PATIENT)
    agents = three.nodes("abc")
    kill(run(agents)[0].pid)
    run(agents)
    known(three, lambda time: time.nodes == 3 and lost_to(time, "failure") > 0)
    lose(agents[1])
    stay = [agents[0], agents[2]]
    run(stay)
    before = known(three, lambda time: time.nodes == 3 and lost_to(time, "loss") > 0)
    forget(three, nothing_left)
    three.reaches(lambda state: state.life.epoch == 2)
    after = known(three, lambda time: time.nodes == 3)
    assert all(after.shares.get(key, 0) >= micros for key, micros in before.shares.items() if key[0] != "running")
    assert total(after) >= total(before)
    assert codes(end(stay)) == [0, 0]


def forget(job: Job, token: str) -> None:
    """The store begins anew, with nothing in it."""
    if job.etcd:
        job.etcd.etcdctl("del", f"{prefix(job)}/", "--prefix")
    else:
        kill(*(each.pid for each in alive_with(token) if "store_host.py" in each.command))


@only_in("tcpstore")
def test_a_job_in_which_nothing_happens_puts_no_record(job: Jobs) -> None:
    both = job("2")
    agents = both.nodes("ab")
    run(agents)
    assert codes(end(agents)) == [0, 0] and records(both) == {}
    assert "job_goodput" not in both.report("a")["here"]
