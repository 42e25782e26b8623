"""The settings of a launch: one frozen value, made by the CLI (or by a program) and read by every room.

A bad value is refused when the settings are made; the message has the value and the remedy. The CLI adds the option's name.
"""

from __future__ import annotations

import os
import re
import signal
import zlib
from collections.abc import Mapping
from enum import Enum, Flag
from pathlib import Path
from signal import Signals
from typing import TYPE_CHECKING

from ..core import group, rendezvous
from ..core.rendezvous import Comparison
from ..core.values import field, frozen
from ..core.world import LOCAL_WORLD_SIZE_MAX, NAME_MAX, Endpoint, Profile, place_label, rank_policy_label

if TYPE_CHECKING:
    from attrs import Attribute

    from ..core.hangs import HangSettings
    from .store.secret import Secret
    from .workers.worker_port import LogsSpecs

STACKS_SIGNAL = int(signal.SIGRTMIN) + 16
"""The signal at which workers write their stacks, unless they were told another."""
HANDLED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
"""The signals that end an agent in order, unless it was told others."""
_DIGESTED_MAX = 2**22
"""A program of more bytes is not compared with the others'."""
_RUN_PATH = Path(__file__).with_name("workers") / "start" / "run_path.py"


def _sayable(name: str) -> str:
    """Return the name as a register takes it: printable, and not too long."""
    return "".join(each if each.isprintable() else "?" for each in name)[:NAME_MAX]


def _digest(path: str) -> str:
    """Return a checksum of a file, to compare it by; nothing for one that cannot be read, or that is large. A pipe is not
    read, because the worker needs what is in it."""
    if not os.path.isfile(path):
        return ""
    try:
        with open(path, "rb") as file:
            text = file.read(_DIGESTED_MAX + 1)
    except OSError:
        return ""
    return f"{zlib.crc32(text):08x}" if len(text) <= _DIGESTED_MAX else ""


class Kind(Enum):
    """The way in which the workers' program is executed."""

    SCRIPT = "script"
    """python -u program arguments"""
    MODULE = "module"
    """python -u -m program arguments"""
    BINARY = "binary"
    """program arguments"""
    PATH = "path"
    """python -u workers/start/run_path.py program arguments"""


@frozen
class Program:
    """The program that every worker runs."""

    kind: Kind
    name: str
    arguments: tuple[str, ...] = ()
    python: str = ""
    """The interpreter of a script or module."""

    @property
    def command(self) -> tuple[str, ...]:
        """The words to execute, without the arguments."""
        python = self.python, "-u"
        before: Mapping[Kind, tuple[str, ...]] = {
            Kind.SCRIPT: python,
            Kind.MODULE: (*python, "-m"),
            Kind.BINARY: (),
            Kind.PATH: (*python, str(_RUN_PATH)),
        }
        return (*before[self.kind], self.name)

    @property
    def identity(self) -> tuple[str, str]:
        """Return the program's name, without its directory, and the digest of its file: what nodes of one job compare."""
        name = self.name if self.kind is Kind.MODULE else Path(self.name).name
        return _sayable(name), "" if self.kind is Kind.MODULE else _digest(self.name)


@frozen
class Function:
    """The function that every worker calls instead of executing a program. Call and results are files of `folder`."""

    name: str
    folder: str
    python: str
    module: str = "__main__"
    """The module that the function is of."""

    @property
    def identity(self) -> tuple[str, str]:
        """Return the function's name; a function has no file that tells more."""
        return _sayable(self.name), ""


class Std(Flag):
    """A choice of a worker's two streams. Values are those of `--redirects` and `--tee`."""

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
    """Read `0..3` for all ranks, or `rank:v,rank:v`; a rank that is not named has none. Raises ValueError."""
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
    """The choices for the workers' output."""

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
    """The watchdogs to run. `timer_file` is the pipe's path, `stuck_after` is in seconds, `health_port` is 0 for any."""

    timer_file: str | None = None
    stuck_after: float | None = None
    health_port: int | None = None
    health_host: str = "127.0.0.1"
    """The address at which the health port is served: by default only this host reaches it."""


@frozen
class StandbySettings:
    """The standbys of a node. `count` is 0 for one for each worker; `preload` is None for the imports of the program."""

    count: int = 0
    preload: tuple[str, ...] | None = None


@frozen
class Listening:
    """Says where a node listens for others."""

    links: bool = False
    """The agent keeps links to others, by which they learn at once of its death."""
    ports: tuple[int, ...] = (0,)
    """The ports that it may have for these and for its workers, as they are tried; a 0 at the end is any free one."""


@frozen
class NodeCheck:
    """The command that says by its exit code whether this node is fit for work, and how many seconds it may take."""

    command: tuple[str, ...]
    timeout: float = 60.0
    every: float | None = None
    """It runs while the job runs, with this many seconds from one run to the next; None: it runs before the node joins."""


@frozen
class DrainSettings:
    """They tell what drains this node from its own host: a signal, a file, a check. It must be gone `deadline_s` later."""

    signal: signal.Signals | None = None
    file: str | None = None
    deadline_s: float = 120.0
    check: NodeCheck | None = None
    """The command that checks this node while the job runs; None for no check."""

    @property
    def ignored(self) -> Signals | None:
        """The signal that workers ignore, because a scheduler sends it to all processes. It is none that stops them."""
        return None if self.signal in HANDLED else self.signal


def _name(instance: object, attribute: Attribute[str], value: str) -> None:
    if not value or len(value) > NAME_MAX or not value.isprintable():
        raise ValueError(f"{value!r}: 1 to {NAME_MAX} printable characters")


@frozen
class LaunchSettings:
    """The settings of one `elastic launch`."""

    program: Program | Function
    local_world_size: int = field(default=1)
    run_id: str = field(default="none", validator=_name)
    role: str = field(default="default", validator=_name)
    slot: str | None = None
    """The slot that a supervisor gave this node; else it is the address and a random id."""
    place: tuple[int, ...] = ()
    """The place that this node was given among the nodes, if any: by the user one number, by Slurm its node's and its
    task's."""
    labels: tuple[tuple[str, str], ...] = ()
    """The user says these of this node, for rank policies. They are sorted."""
    rank_keys: tuple[str, ...] = ()
    """The keys by which nodes are to have neighbouring ranks, the widest first."""
    address: str = field(default="localhost", validator=_name)
    """The name or address by which other nodes reach this one."""
    store: str = "in memory"
    """The store's name, for people."""
    serves_store: bool = False
    """This agent serves the store."""
    relay: str = ""
    """The path of the unix socket by which the workers reach the store. A drained node's notice is told beside it."""
    rendezvous: rendezvous.Settings = rendezvous.Settings()
    group: group.Settings = group.Settings()
    logs: Logs = Logs()
    logs_plugin: LogsSpecs | None = None
    """The plugin that says where logs go, if there is one."""
    signals: tuple[signal.Signals, ...] = HANDLED
    linger_s: float = 0.0
    """How long what workers leave may run on after the job has succeeded."""
    drain: DrainSettings = DrainSettings()
    environment: Mapping[str, str] = field(factory=dict)
    """The environment that the workers inherit."""
    virtual_local_rank: bool = False
    """LOCAL_RANK is 0 for every worker, and CUDA_VISIBLE_DEVICES names the one device that is its own."""
    watchdogs: WatchdogSettings = WatchdogSettings()
    stacks_signal: int | None = STACKS_SIGNAL
    """The signal at which workers write their stacks; None: nobody asks for stacks."""
    standby: StandbySettings | None = None
    """The workers that are started early; None for no such."""
    listening: Listening = Listening()
    """The places at which this node listens for the other nodes."""
    node_check: NodeCheck | None = None
    """The command that checks this node before it joins; None for no check."""
    hang: HangSettings | None = None
    """When a hang is suspected, and what follows; None: nobody looks for hangs."""
    token: Secret | None = field(default=None, repr=False)
    """The token that the job's agents share, if there is one."""
    cpus: tuple[frozenset[int], ...] = ()
    """The CPUs that each worker is bound to, by local rank; nothing for no binding."""

    def profile(self, endpoint: Endpoint, host: str) -> Profile:
        """Return the profile with which this node joins; `endpoint` is the port that it has reserved."""
        given = [place_label(self.place)] if self.place else []
        policy = [rank_policy_label(self.rank_keys)] if self.rank_keys else []
        labels = tuple(sorted((*self.labels, *given, *policy)))
        serves = self.serves_store or None
        name, content = self.program.identity
        told = name, content, self._arguments()
        return Profile(endpoint, self.local_world_size, self.role, host, labels, *told, serves_store=serves)

    def _arguments(self) -> str:
        """Return a checksum of the program's arguments and the job's name; nothing where nobody compares it."""
        compares = self.rendezvous.same_program
        is_alone = self.rendezvous.limits.max_nodes == 1 and compares is not Comparison.ARGUMENTS
        if is_alone or compares is Comparison.NONE or not isinstance(self.program, Program):
            return ""
        import hashlib  # a job that meets no other needs none

        text = "\0".join((self.run_id, *self.program.arguments))
        return hashlib.blake2b(text.encode(errors="surrogateescape"), digest_size=8).hexdigest()

    @local_world_size.validator
    def _some_workers(self, attribute: Attribute[int], value: int) -> None:
        if not 1 <= value <= LOCAL_WORLD_SIZE_MAX:
            raise ValueError(f"{value}: 1 to {LOCAL_WORLD_SIZE_MAX} workers per node")
