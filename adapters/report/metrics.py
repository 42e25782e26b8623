"""Metrics for Prometheus: what one onlooker of a job knows, an agent or a status page, in Prometheus' text format.

This module is imported only where metrics were asked for, because prometheus-client costs memory and time. A value that the
onlooker does not know is left out, never guessed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from itertools import accumulate

from attrs import evolve, field
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from ...core.causes import completes
from ...core.goodput.record import Shares, grown
from ...core.rendezvous import RendezvousState, Status
from ...core.values import frozen
from ...core.world import Why
from ..web_server import Content, WebServer
from .news import News, Recorded, Seen, StandbysReady, StoreBack, StoreSilent, TimeTold
from .recoveries import PHASES, Recoveries

PATH = "/metrics"
CAUSES = (Why.FAILED, Why.LOST, Why.LEFT, Why.UPSCALE, Why.FENCED)
"""Why a round can end before the job does."""
BOUNDS_S = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1_000.0)


@frozen
class Durations:
    """A histogram. `counts` has one number for each of BOUNDS_S, and one for what lasted longer."""

    counts: tuple[int, ...] = (0,) * (len(BOUNDS_S) + 1)
    sum_s: float = 0.0

    def with_one(self, seconds: float) -> Durations:
        """Return it with one more duration."""
        place = bisect_left(BOUNDS_S, seconds)
        counts = tuple(count + (index == place) for index, count in enumerate(self.counts))
        return Durations(counts, self.sum_s + seconds)


@frozen
class Known:
    """The onlooker knows these. Failures, ages and standbys are by the node's label, recoveries by their phase."""

    state: RendezvousState | None = None
    store_up: bool = True
    restarts: Mapping[str, int] = field(factory=dict)
    failures: Mapping[str, int] = field(factory=dict)
    ages_s: Mapping[str, float] = field(factory=dict)
    standbys: Mapping[str, int] = field(factory=dict)
    recoveries: Mapping[str, Durations] = field(factory=dict)
    times: Mapping[str, Shares] = field(factory=dict)
    """They say where the time of each node went, in microseconds."""


def exposition(known: Known) -> Content:
    """Return the metrics as Prometheus reads them."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Families(known))
    return Content(CONTENT_TYPE_LATEST.removesuffix("; charset=utf-8"), generate_latest(registry))


def with_end(known: Known, state: RendezvousState) -> Known:
    """Return what is known with a newer register, whose last end of a round counts if it is a new one."""
    before, ended = known.state, state.ended
    restarts = dict(known.restarts)
    if before is not None and ended is not None and ended != before.ended:
        restarts[ended.why.value] = restarts.get(ended.why.value, 0) + 1
    return evolve(known, state=state, restarts=restarts)


class _Families(Collector):
    """The metrics of what is known."""

    def __init__(self, known: Known) -> None:
        self._known = known

    def collect(self) -> Iterator[Metric]:
        known = self._known
        yield GaugeMetricFamily(
            "elastic_store_up", "1 if the job's store answers, else 0.", value=float(known.store_up)
        )
        if known.state:
            yield from _of_register(known.state)
            yield _counter(
                "elastic_restarts", "Rounds that ended before the job did.", "cause", _causes(known.restarts)
            )
        if known.failures:
            yield _counter("elastic_failures", "Failures of workers.", "node", known.failures)
        if known.ages_s:
            yield _gauge("elastic_heartbeat_age_seconds", "Time since the last new heartbeat.", "node", known.ages_s)
        if known.standbys:
            yield _gauge("elastic_standbys", "Standbys that are ready.", "node", known.standbys)
        if known.recoveries:
            yield _recoveries(known.recoveries)
        if known.times:
            yield _times(known.times)


def _of_register(state: RendezvousState) -> Iterator[Metric]:
    yield GaugeMetricFamily("elastic_round", "The number of the job's round.", value=state.round)
    census = {status.value: 0 if state.closed else state.census[status] for status in Status}
    yield _gauge("elastic_nodes", "Nodes by the status of their seat; none after the job.", "state", census)
    sizes = (seat.profile.local_world_size for seat in state.seats.values() if seat.status is Status.IN)
    workers = sum(sizes) if state.complete and not state.closed else 0
    yield GaugeMetricFamily("elastic_workers", "Workers of the round that runs.", value=workers)


def _causes(restarts: Mapping[str, int]) -> Mapping[str, int]:
    return {why.value: restarts.get(why.value, 0) for why in CAUSES}


def _gauge(name: str, told: str, label: str, values: Mapping[str, float]) -> Metric:
    family = GaugeMetricFamily(name, told, labels=[label])
    for key, value in values.items():
        family.add_metric([key], value)
    return family


def _counter(name: str, told: str, label: str, values: Mapping[str, int]) -> Metric:
    family = CounterMetricFamily(name, told, labels=[label])
    for key, value in values.items():
        family.add_metric([key], value)
    return family


def _recoveries(recoveries: Mapping[str, Durations]) -> Metric:
    family = HistogramMetricFamily(
        "elastic_recovery_seconds", "How long each phase of a recovery took.", labels=["phase"]
    )
    for phase, durations in recoveries.items():
        bounds = (*(f"{bound:g}" for bound in BOUNDS_S), "+Inf")
        buckets = list(zip(bounds, accumulate(durations.counts), strict=True))
        family.add_metric([phase], buckets, durations.sum_s)
    return family


def _times(times: Mapping[str, Shares]) -> Metric:
    """Return where the time of the nodes went. Of what is lost each node has a share from the first: a sum begins there."""
    family = CounterMetricFamily(
        "elastic_node_seconds", "Time of nodes by what they did and why.", labels=["node", "bucket", "cause"]
    )
    for node, shares in times.items():
        for (bucket, cause), micros in sorted({("starting", "failure"): 0, **shares}.items()):
            family.add_metric([node, bucket, cause], micros / 1_000_000)
    return family


class AgentMetrics:
    """An observer of the agent that serves what it has seen. Raises OSError if the port cannot be had."""

    until = None

    def __init__(self, host: str, port: int, node: str) -> None:
        """`node` is this node's label."""
        self._node = node
        self._known = Known(failures={node: 0}, recoveries={phase: Durations() for phase in PHASES})
        self._recoveries = Recoveries()
        self._server = WebServer(host, port, {PATH: lambda: exposition(self._known)})

    def saw(self, news: News) -> None:
        known = self._known
        match news:
            case Seen(state):
                self._known = with_end(known, state)
            case StoreSilent():
                self._known = evolve(known, store_up=False)
            case StoreBack():
                self._known = evolve(known, store_up=True)
            case Recorded(fault) if not completes(fault):
                self._known = evolve(known, failures={self._node: known.failures[self._node] + 1})
            case TimeTold(record):
                times = grown(known.times.get(self._node, {}), record.own.shares)
                self._known = evolve(known, times={self._node: times})
            case StandbysReady(standbys):
                self._known = evolve(known, standbys={self._node: standbys})
            case _:
                pass
        if over := self._recoveries.saw(news):
            durations = self._known.recoveries[over.phase].with_one(over.ended_at - over.began_at)
            self._known = evolve(self._known, recoveries={**self._known.recoveries, over.phase: durations})

    def passed(self, now: float) -> None:
        pass

    def close(self) -> None:
        """Serve no longer."""
        self._server.close()
