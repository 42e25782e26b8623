"""What a launch is to do: one frozen value, made by the CLI (or by a program) and read by the agent.

Every value is checked when it is made, with the value and the remedy in the message; the CLI only says which option it was.
"""

from __future__ import annotations

import signal
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import Attribute, field, frozen

from ..core import group, rendezvous
from ..core.ranks import node_rank_label
from ..core.world import LOCAL_WORLD_SIZE_MAX, NAME_MAX, Endpoint, Profile
from .agent.watchdogs import Oversight
from .workers.logs import Logs as Logs

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
    oversight: Oversight = Oversight()
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
