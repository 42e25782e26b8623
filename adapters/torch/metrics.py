"""torch's metrics: counts and durations, rendered from the agent's news (each step of the group) and nothing else.

The names are those of torch.distributed.elastic 2.13, its classes and methods among them, so that a dashboard for torchrun
shows ours. Durations are in whole milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...core.group import Group, Phase
from ...core.group.state import Exited, Join, Ready, Reaped, Start, Unawaited, Unstartable
from ...core.values import frozen
from ...core.world import Ending, Verdict
from ..clock import Clock
from ..launch_settings import LaunchSettings
from ..report.news import News, Started, Step

_GROUP = "torchelastic"
RENDEZVOUS = "SimpleElasticAgent._rendezvous"
_ASSIGN = "SimpleElasticAgent._assign_worker_ranks"
_INITIALIZE = "SimpleElasticAgent._initialize_workers"
_MONITOR = "LocalElasticAgent._monitor_workers"
"""torch sends it for each look, ten times a second; here it is one for each generation, from its start to its end."""
_RESTART = "SimpleElasticAgent._restart_workers"
_RUN = "SimpleElasticAgent.run"
START = "LocalElasticAgent._start_workers"
_STOP = "LocalElasticAgent._stop_workers"


@frozen
class Metric:
    """A value of a metric: torch's MetricData. `timestamp` is in seconds since 1970."""

    timestamp: float
    group_name: str
    name: str
    value: int


class Metrics:
    """The metrics of one agent."""

    def __init__(self, settings: LaunchSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._began_at = self._joined_at = clock.now()
        self._broke_at: float | None = None
        self._started_at: float | None = None
        self._failures = 0

    def of(self, news: News) -> Iterator[Metric]:
        """Yield the metrics that torch's agent would have sent for this."""
        match news:
            case Started(world, _, at):
                self._failures, self._started_at = world.failures, at
                yield from self._lasted(_INITIALIZE, at - self._joined_at)
                if self._broke_at is not None:
                    yield from self._lasted(_RESTART, at - self._broke_at)
                self._broke_at = None
                yield self._of_workers("healthy", 1)
                yield self._of_workers("remaining_restarts", self._remaining)
            case Step():
                yield from self._moved(news)
            case _:
                return

    @property
    def _remaining(self) -> int:
        return self._settings.rendezvous.limits.max_restarts - self._failures

    def _moved(self, step: Step) -> Iterator[Metric]:
        before, after = step.before, step.after
        at = step.event.at if step.event else step.at
        if any(isinstance(command, Join) for command in step.commands):
            self._joined_at = at
        if self._started_at is not None and any(isinstance(command, Start) for command in step.commands):
            yield from self._lasted(START, self._started_at - at)  # the step is told once it is carried out
        match step.event:
            case Ready() if after.phase is Phase.HELD:
                yield from self._lasted(_ASSIGN, 0.0)  # a world has them
                yield from self._lasted(RENDEZVOUS, at - self._joined_at)
            case Exited() if before.phase is Phase.RUNNING and after.phase is Phase.STOPPING:
                yield self._of_workers("failed", 1)
            case Unstartable():
                yield self._metric(f"{START}.failure", 1)
            case Reaped() if before.stop.at is not None:
                yield from self._lasted(_STOP, at - before.stop.at)
        yield from self._turned(before, after, at)

    def _turned(self, before: Group, after: Group, at: float) -> Iterator[Metric]:
        """Yield the metrics of a change of phase. Workers that live through a change of nodes have run all the while."""
        runs_on = Phase.MOVING in (before.phase, after.phase) and after.phase in (Phase.MOVING, Phase.RUNNING)
        if before.phase is after.phase or runs_on:
            return
        if before.phase in (Phase.RUNNING, Phase.MOVING, Phase.BARRIER):
            self._broke_at = at
        if before.phase in (Phase.RUNNING, Phase.MOVING) and self._started_at is not None:
            yield from self._lasted(_MONITOR, at - self._started_at)
            self._started_at = None
        match after.phase:
            case Phase.BARRIER if after.course.done_at is not None:
                yield self._of_workers("succeeded", 1)
            case Phase.ENDED:
                yield from self._ended(after, at)
            case _:
                return

    def _ended(self, group: Group, at: float) -> Iterator[Metric]:
        outcome = group.outcome
        succeeded = isinstance(outcome, Unawaited) or (
            isinstance(outcome, Verdict) and outcome.ending is Ending.SUCCEEDED
        )
        retried = self._failures > 0
        yield from self._lasted(_RUN, at - self._began_at, succeeded)
        yield self._of_workers("flakiness", self._flakiness(succeeded))
        yield self._of_workers("run_total", 1)
        for name, holds in (
            ("run_success_with_retries", succeeded and retried),
            ("run_success_no_retries", succeeded and not retried),
            ("run_failed_with_retries", not succeeded and retried),
            ("run_failed_no_retries", not succeeded and not retried),
        ):
            yield self._of_workers(name, int(holds))

    def _flakiness(self, succeeded: bool) -> int:
        """torch's own arithmetic: 100 % for a failure, else the share of restarts that were spent."""
        allowed = self._settings.rendezvous.limits.max_restarts
        return int(100.0 - 100.0 * (self._remaining + 1) / (allowed + 1)) if succeeded else 100

    def _lasted(self, name: str, span_s: float, succeeded: bool = True) -> Iterator[Metric]:
        yield self._metric(f"{name}.{'success' if succeeded else 'failure'}", 1)
        yield self._metric(f"{name}.duration.ms", int(span_s * 1000))

    def _of_workers(self, name: str, value: int) -> Metric:
        return self._metric(f"workers.{self._settings.role}.{name}", value)

    def _metric(self, name: str, value: int) -> Metric:
        return Metric(self._clock.wall(), _GROUP, name, value)
