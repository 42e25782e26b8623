"""The metrics of an agent, from its news alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from attrs import evolve
from narration import FAULT
from prometheus_client.parser import text_string_to_metric_families
from worlds import arrived, edited, node, running

from elastic.adapters.report.metrics import BOUNDS_S, AgentMetrics, Durations, exposition
from elastic.adapters.report.news import Recorded, Seen, StandbysReady, StoreBack, StoreSilent, TimeTold
from elastic.core.goodput import NodeRecord, Spent
from elastic.core.rendezvous import End, Evict, RendezvousState
from elastic.core.world import Origin, Why

TWO = running("a b", size="1:2", restarts=3)
FAILED = edited(TWO, "b", End(0, Why.FAILED))


@contextmanager
def observer() -> Iterator[AgentMetrics]:
    metrics = AgentMetrics("127.0.0.1", 0, "gpu-02")
    try:
        yield metrics
    finally:
        metrics.close()


def values(metrics: AgentMetrics) -> dict[str, float]:
    """The samples by their name and the value of their label."""
    families = text_string_to_metric_families(exposition(metrics._known).body.decode())
    return {
        " ".join((sample.name, *sample.labels.values())): sample.value
        for family in families
        for sample in family.samples
    }


def after(*states: RendezvousState) -> dict[str, float]:
    with observer() as metrics:
        for state in states:
            metrics.saw(Seen(state, 0.0))
        return values(metrics)


def test_nothing_is_said_of_a_register_that_was_not_seen() -> None:
    found = after()
    assert found["elastic_store_up"] == 1 and not any(name.startswith("elastic_round") for name in found)


def test_the_workers_of_a_spare_do_not_run() -> None:
    assert after(arrived(TWO, "c"))["elastic_workers"] == after(TWO)["elastic_workers"] == 2


def test_each_end_of_a_round_counts_once_by_its_cause() -> None:
    back = arrived(FAILED, "a b")
    lost = edited(back, "a", Evict(frozenset({node("b")})))
    found = after(TWO, FAILED, FAILED, back, lost)
    ends = {name.split()[1]: value for name, value in found.items() if name.startswith("elastic_restarts_total")}
    assert ends == {"failed": 1, "lost": 1, "left": 0, "upscale": 0, "fenced": 0}


def test_an_end_from_before_the_first_look_does_not_count() -> None:
    assert after(FAILED)["elastic_restarts_total failed"] == 0


def test_an_open_round_has_nodes_and_no_workers() -> None:
    assert after(TWO)["elastic_workers"] == 2
    found = after(TWO, FAILED)
    assert (found["elastic_workers"], found["elastic_nodes expected"], found["elastic_round"]) == (0, 2, 1)


def test_an_exception_counts_once_though_its_worker_ends_later() -> None:
    raised = evolve(FAULT, exit_code=None, origin=Origin.RAISE)
    with observer() as metrics:
        metrics.saw(Recorded(raised))
        metrics.saw(Recorded(evolve(raised, exit_code=1)))
        assert values(metrics)["elastic_failures_total gpu-02"] == 1


def test_store_failures_and_standbys_are_this_node_s() -> None:
    with observer() as metrics:
        metrics.saw(StoreSilent("no answer", 1.0))
        metrics.saw(Recorded(FAULT))
        metrics.saw(StandbysReady(2, 0.5))
        found = values(metrics)
        assert (found["elastic_store_up"], found["elastic_failures_total gpu-02"]) == (0, 1)
        assert found["elastic_standbys gpu-02"] == 2
        metrics.saw(StoreBack(2.0))
        assert values(metrics)["elastic_store_up"] == 1


def test_the_time_of_this_node_is_counted_and_no_counter_goes_back() -> None:
    with observer() as metrics:
        assert not any(name.startswith("elastic_node_seconds") for name in values(metrics))
        for shares in ({("waiting", "unknown"): 2_500_000}, {("waiting", "loss"): 3_000_000}):
            metrics.saw(TimeTold(NodeRecord(node("b"), Spent(shares, run=7))))
        found = {name: each for name, each in values(metrics).items() if name.startswith("elastic_node_seconds_total")}
        assert found == {
            "elastic_node_seconds_total starting failure gpu-02": 0,
            "elastic_node_seconds_total waiting unknown gpu-02": 2.5,
            "elastic_node_seconds_total waiting loss gpu-02": 3,
        }


@pytest.mark.parametrize(("seconds", "place"), [(0.0, 0), (BOUNDS_S[0], 0), (0.02, 1), (5_000.0, len(BOUNDS_S))])
def test_a_duration_counts_where_it_is_not_above_the_bound(seconds: float, place: int) -> None:
    durations = Durations().with_one(seconds)
    assert (durations.counts.index(1), sum(durations.counts), durations.sum_s) == (place, 1, seconds)
