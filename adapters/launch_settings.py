"""What a launch is to do: one frozen value, made by the CLI (or by a program) and read by the agent.

Every value is checked when it is made, with the value and the remedy in the message; the CLI only says which option it was.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping
from enum import Enum, Flag
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import Attribute, field, frozen

from ..core import group, rendezvous
from ..core.ranks import node_rank_label
from ..core.world import LOCAL_WORLD_SIZE_MAX, NAME_MAX, Endpoint, Profile

if TYPE_CHECKING:
    from .workers.plugged_logs import LogsSpecs

HANDLED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
"""The signals that end an agent in order, unless it was told others."""
RUN_PATH = Path(__file__).with_name("workers") / "run_path.py"


class Kind(Enum):
    """How the workers' program is executed."""

    SCRIPT = "script"
    """python -u program arguments"""
    MODULE = "module"
    """python -u -m program arguments"""
    BINARY = "binary"
    """program arguments"""
    PATH = "path"
    """python -u workers/run_path.py program arguments"""


@frozen
class Program:
    """What every worker runs."""

    kind: Kind
    name: str
    arguments: tuple[str, ...] = ()
    python: str = ""
    """The interpreter of a script or module."""

    @property
    def command(self) -> tuple[str, ...]:
        """What is executed, without the arguments."""
        python = self.python, "-u"
        before: Mapping[Kind, tuple[str, ...]] = {
            Kind.SCRIPT: python,
            Kind.MODULE: (*python, "-m"),
            Kind.BINARY: (),
            Kind.PATH: (*python, str(RUN_PATH)),
        }
        return (*before[self.kind], self.name)


@frozen
class Function:
    """What every worker calls, instead of executing a program. The call and what comes back are files of `folder`."""

    name: str
    folder: str
    python: str


class Std(Flag):
    """Which of a worker's two streams. Values are those of `--redirects` and `--tee`."""

    NONE = 0
    OUT = 1
    ERR = 2
    ALL = 3


@frozen
class Streams:
    """A stream choice for every local rank."""

    default: Std = Std.NONE
    ranks: dict[int, Std] = field(factory=dict)

    def of(self, local_rank: int) -> Std:
        return self.ranks.get(local_rank, self.default)


def parse_streams(text: str) -> Streams:
    """`0..3` for all ranks, or `rank:v,rank:v`; a rank that is not named has none."""
    if re.fullmatch("[0-3]", text):
        return Streams(Std(int(text)))
    if not re.fullmatch(r"\d{1,9}:[0-3](,\d{1,9}:[0-3])*", text, re.ASCII):
        raise ValueError(
            f"{text!r} is not a choice of streams: write 0 (none), 1 (stdout), 2 (stderr) or 3 (both), "
            "or one for each local rank, like 0:3,1:2"
        )
    pairs = (entry.split(":") for entry in text.split(","))
    return Streams(ranks={int(rank): Std(int(value)) for rank, value in pairs})


@frozen
class Logs:
    """What was asked for of the workers' output."""

    directory: str | None = None
    redirects: Streams = Streams()
    tee: Streams = Streams()
    shown: frozenset[int] | None = None
    """The local ranks whose output reaches the console; None for all."""
    prefix: str | None = None
    """The template of a tee'd line's prefix."""
    stdout_filters: tuple[str, ...] = ()
    """Lines of a tee'd stdout that contain one of these go to a file of all local ranks too."""
    stderr_filters: tuple[str, ...] = ()


@frozen
class WatchdogSettings:
    """What is watched. `timer_file` is where the pipe is made, `stuck_after` in seconds, `health_port` 0 for any."""

    timer_file: str | None = None
    stuck_after: float | None = None
    health_port: int | None = None


def _name(instance: object, attribute: Attribute[str], value: str) -> None:
    if not value or len(value) > NAME_MAX or not value.isprintable():
        raise ValueError(f"{value!r}: 1 to {NAME_MAX} printable characters")


@frozen
class LaunchSettings:
    """One `elastic launch`."""

    program: Program | Function
    local_world_size: int = field(default=1)
    run_id: str = field(default="none", validator=_name)
    role: str = field(default="default", validator=_name)
    slot: str | None = None
    """This node's place, if a supervisor gave it one; else it is the address and a random id."""
    node_rank: int | None = None
    """This node's place among the ranks, if it was given one: `core.ranks.by_node_rank`."""
    address: str = field(default="localhost", validator=_name)
    """How other nodes reach this one."""
    store: str = "in memory"
    """Where the nodes meet, for people."""
    relay: str = ""
    """Where the workers reach it: the path of a unix socket."""
    rendezvous: rendezvous.Settings = rendezvous.Settings()
    group: group.Settings = group.Settings()
    logs: Logs = Logs()
    logs_plugin: LogsSpecs | None = None
    """Who says where logs go, if not we."""
    signals: tuple[signal.Signals, ...] = HANDLED
    environment: Mapping[str, str] = field(factory=dict)
    """What the workers inherit."""
    virtual_local_rank: bool = False
    """LOCAL_RANK is 0 for every worker, and CUDA_VISIBLE_DEVICES names the one device that is its own."""
    watchdogs: WatchdogSettings = WatchdogSettings()
    cpus: tuple[frozenset[int], ...] = ()
    """The CPUs that each worker is bound to, by local rank; nothing for no binding."""

    def profile(self, endpoint: Endpoint, host: str) -> Profile:
        """What a node of that host says of itself when it joins; `endpoint` is what it has reserved."""
        labels = () if self.node_rank is None else (node_rank_label(self.node_rank),)
        return Profile(endpoint, self.local_world_size, self.role, host, labels)

    @local_world_size.validator
    def _some_workers(self, attribute: Attribute[int], value: int) -> None:
        if not 1 <= value <= LOCAL_WORLD_SIZE_MAX:
            raise ValueError(f"{value}: 1 to {LOCAL_WORLD_SIZE_MAX} workers per node")
