"""The workers that this node starts for a world: each one's command, environment and places of output."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from attrs import evolve, frozen

from ...core.ranks import Ranks, WorkerRanks
from ...core.world import Node, World
from ..launch_settings import LaunchSettings
from .environment import PARTY, command, environment, party
from .logs import ERROR_FILE_VARIABLE, NOWHERE, OwnLogs, Place, WorkerLogs, line_prefix, make_run_directory, size
from .progress import VARIABLE as PROGRESS
from .progress import page_again, page_path
from .worker_port import LogsLost, Sink, WorkerSpec


@frozen
class Attempt:
    """One worker as this node started it. `round` and `ranks` are those of the world to which it counts now; its environment
    and its files keep those of its start."""

    node: Node
    host: str
    round: int
    ranks: Ranks
    spec: WorkerSpec
    error_file: Path | None
    stacks_file: Path | None = None
    log_begins: int = 0
    """The output of this start begins at that byte of its log. The starts of one round share it."""

    @property
    def log(self) -> Path | None:
        """Return the file in which a failing program would have said why."""
        sink = self._log_sink
        return sink.file if sink else None

    @property
    def log_ends(self) -> int | None:
        """Return at which byte of its log the output of this start ends, once it has ended and before the next. Return None
        where the pump writes the log, which may be behind."""
        sink = self._log_sink
        return size(sink.file) if sink and sink.file and not sink.console else None

    @property
    def _log_sink(self) -> Sink | None:
        sinks = (self.spec.stderr, self.spec.stdout)
        return next((sink for sink in sinks if sink.file not in (None, NOWHERE)), None)


def attempts(
    settings: LaunchSettings,
    node: Node,
    host: str,
    world: World,
    ranks: Ranks,
    logs: WorkerLogs,
    further: Mapping[str, str],
) -> Mapping[int, Attempt]:
    """Return the attempts by local rank. `ranks` are this node's in that world; `further` goes into every environment.
    Raises CannotStart or OSError if there is no place for the output."""
    environments = {
        worker.local_rank: {**environment(settings, node, world, ranks, worker), **further} for worker in ranks.workers
    }
    if settings.hang and settings.relay:
        for worker in ranks.workers:
            environments[worker.local_rank][PROGRESS] = page_path(settings.relay, world.round, worker.rank)
    places = logs.places(world.round, environments)

    def attempt(worker: WorkerRanks) -> Attempt:
        rank = worker.local_rank
        prefix = line_prefix(settings.logs.prefix, settings.role, worker.rank, rank, host, node.slot)
        spec = _spec(settings, worker, environments[rank], places[rank], prefix)
        return Attempt(node, host, world.round, ranks, spec, places[rank].error_file, places[rank].stacks_file)

    return {worker.local_rank: attempt(worker) for worker in ranks.workers}


def _spec(
    settings: LaunchSettings, worker: WorkerRanks, environment: Mapping[str, str], place: Place, prefix: str
) -> WorkerSpec:
    return WorkerSpec(
        worker.local_rank,
        command(settings.program, worker.local_rank),
        environment,
        place.stdout,
        place.stderr,
        prefix,
        settings.cpus[worker.local_rank] if settings.cpus else None,
    )


def again(attempt: Attempt, number: int) -> Attempt:
    """Return the same worker for another start in its round, alone, with an error file of its own."""
    told = {**attempt.spec.environment, PARTY: party(1, attempt.node)}
    error_file = attempt.error_file and attempt.error_file.with_name(f"error.{number}.json")
    if PROGRESS in told:
        told[PROGRESS] = page_again(told[PROGRESS], number)
    if error_file:
        told[ERROR_FILE_VARIABLE] = str(error_file)
    log_begins = size(attempt.log) if attempt.log else 0
    return evolve(attempt, error_file=error_file, spec=evolve(attempt.spec, environment=told), log_begins=log_begins)


def worker_logs(settings: LaunchSettings, tell: Callable[[LogsLost], None]) -> WorkerLogs:
    """Return what says where the workers write. Raises CannotLog."""
    if settings.logs_plugin is None:
        return OwnLogs(settings.logs, make_run_directory(settings.logs.directory, settings.run_id), tell)
    from .plugged_logs import PluggedLogs

    return PluggedLogs(settings.logs_plugin, settings.logs)
