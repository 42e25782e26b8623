"""The places of logs when a plugin names them: an entry point of the group `torchrun.logs_specs`, used as torchrun does.

The entry point is a class. It is called once, with what the options say, and its `reify` before each start with the
workers' environments, which it may add to; it answers with the files of each local rank. torch's own types are made for it
(its module imports torch anyway); an agent without a plugin never imports torch.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from ....core.values import frozen
from ...disk import Disk, StandsStill
from ...launch_settings import Logs, Streams
from ...terminal import why
from ..worker_port import NOWHERE, CannotStart, Destinations, Duplicate, LogsSpecs, Remark, Sink
from .logs import ERROR_FILE_VARIABLE, Place

GROUP = "torchrun.logs_specs"
_OWN = "default"
"""torchrun's name for what happens without a plugin."""
PATIENCE_S = 10.0
"""How long a round waits for the plugin, which may do more than make files."""


def make_plugin(name: str, logs: Logs, installed: Callable[..., Any] = entry_points) -> LogsSpecs | None:
    """The plugin of this name; None for torchrun's own. Raises ValueError with the reason and what there is instead."""
    if name == _OWN:
        return None
    found: Mapping[str, EntryPoint] = {entry.name: entry for entry in installed(group=GROUP)}
    if name not in found:
        known = ", ".join(sorted({_OWN, *found}))
        raise ValueError(f"no such plugin (entry point of the group {GROUP}); write one of: {known}")
    try:
        plugin: LogsSpecs = found[name].load()(
            log_dir=logs.directory,
            redirects=_as_torch_has_it(logs.redirects),
            tee=_as_torch_has_it(logs.tee),
            local_ranks_filter=None if logs.shown is None else set(logs.shown),
        )
    except Exception as error:
        raise ValueError(f"{found[name].value}: {_said(error)}; fix the plugin, or leave it out") from error
    return plugin


@frozen
class PluggedLogs:
    """The files that a plugin names. A plugin that does not answer goes on in the disk's thread, with environments that
    nobody uses any longer; `tell` hears of it."""

    plugin: LogsSpecs
    logs: Logs
    disk: Disk
    tell: Callable[[Remark], None] = lambda lost: None
    report_path: None = None
    patience_s: float = PATIENCE_S

    def places(self, round: int, environments: dict[int, dict[str, str]]) -> Mapping[int, Place]:
        for environment in environments.values():
            environment.pop(ERROR_FILE_VARIABLE, None)  # inherited from another launcher
        try:
            given = {rank: dict(environment) for rank, environment in environments.items()}
            found = self.disk.do(partial(self.plugin.reify, given), patience_s=self.patience_s)
            environments.update(given)
        except StandsStill as error:
            self.tell(
                Remark(f"the plugin of --logs-specs {why(error)}: the output of round {round} is on the console only")
            )
            return {rank: Place(Sink(), Sink(), None) for rank in environments}
        except (Exception, SystemExit) as error:
            raise CannotStart(f"the plugin of --logs-specs says nothing: {_said(error)}") from error
        for rank, environment in environments.items():
            environment.setdefault(ERROR_FILE_VARIABLE, found.error_files.get(rank, ""))
        return {rank: self._place(found, rank) for rank in environments}

    def close(self) -> None:
        """The plugin may keep what it made."""

    def _place(self, found: Destinations, rank: int) -> Place:
        error_file = found.error_files.get(rank, "")
        return Place(
            _sink(found.stdouts, found.tee_stdouts, rank, found.filtered_stdout, self.logs.stdout_filters),
            _sink(found.stderrs, found.tee_stderrs, rank, found.filtered_stderr, self.logs.stderr_filters),
            Path(error_file) if error_file and Path(error_file) != NOWHERE else None,
        )


def _sink(
    redirected: Mapping[int, str], teed: Mapping[int, str], rank: int, filtered: str, filters: tuple[str, ...]
) -> Sink:
    file, tee = redirected.get(rank, ""), teed.get(rank, "")
    if not tee:
        return Sink(Path(file), console=False) if file else Sink()
    needles = tuple(os.fsencode(text) for text in filters)
    return Sink(Path(tee), True, Duplicate(Path(filtered), needles) if needles and filtered else None)


def _as_torch_has_it(streams: Streams) -> Any:
    from torch.distributed.elastic.multiprocessing import Std

    if streams.ranks:
        return {rank: Std(chosen.value) for rank, chosen in streams.ranks.items()}
    return Std(streams.default.value)


def _said(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())
