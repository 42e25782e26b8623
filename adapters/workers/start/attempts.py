"""The workers that this node starts for a world: each one's command, environment and places of output."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from ....core.ranks import Ranks, WorkerRanks
from ....core.values import evolve, frozen
from ....core.world import Node, World
from ...disk import Disk, StandsStill
from ...launch_settings import Kind, LaunchSettings, Program, Streams
from ..messages.pages import page_again, page_path
from ..messages.progress import VARIABLE as PROGRESS
from ..output.logs import (
    ERROR_FILE_VARIABLE,
    CannotLog,
    OwnLogs,
    Place,
    RunDirectory,
    WorkerLogs,
    line_prefix,
    make_run_directory,
)
from ..worker_port import NOWHERE, Remark, Sink, WorkerSpec
from .environment import PARTY, command, environment, party


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
    def own_log(self) -> Path | None:
        """Return that file if the worker writes it itself."""
        sink = self._log_sink
        return sink.file if sink and not sink.console else None

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
    if settings.relay:
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
        isinstance(settings.program, Program) and settings.program.kind is Kind.BINARY,
    )


def again(attempt: Attempt, number: int, log_begins: int) -> Attempt:
    """Return the same worker for another start in its round, alone, with an error file of its own. Its output begins at that
    byte of its log."""
    told = {**attempt.spec.environment, PARTY: party(1, attempt.node)}
    error_file = attempt.error_file and attempt.error_file.with_name(f"error.{number}.json")
    if PROGRESS in told:
        told[PROGRESS] = page_again(told[PROGRESS], number)
    if error_file:
        told[ERROR_FILE_VARIABLE] = str(error_file)
    return evolve(attempt, error_file=error_file, spec=evolve(attempt.spec, environment=told), log_begins=log_begins)


def worker_logs(settings: LaunchSettings, tell: Callable[[Remark], None], disk: Disk) -> WorkerLogs:
    """Return what says where the workers write. Without a place for temporary files, workers that only have error files run
    without these, unless the user has named that place. Raises CannotLog."""
    if settings.logs_plugin is None:
        logs = settings.logs
        own = OwnLogs(logs, None, disk, tell)
        try:
            own.take(disk.do(partial(make_run_directory, logs.directory, settings.run_id), late=own.take))
        except StandsStill:
            pass  # the first round says so, and a later one may have its files
        except CannotLog as reason:
            if logs.directory or "TMPDIR" in os.environ or logs.redirects != Streams() or logs.tee != Streams():
                raise
            tell(Remark(f"workers run without error files: {reason} (--log-dir, TMPDIR)"))
            own.take(RunDirectory(None))
        return own
    from ..output.plugged_logs import PluggedLogs

    return PluggedLogs(settings.logs_plugin, settings.logs, disk, tell)
