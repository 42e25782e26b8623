"""Standbys: workers that are executed early, finish their imports, and wait for a rank (startup/elastic_standby.py).

A standby is started and tied to the agent like a worker, by the agent's own thread: setpriv, a session of its own, the
reaper. Its command is that of a local rank. `spawn` hands a worker's environment and output to a standby with that command,
and executes the program afresh if there is none. So a start never fails for lack of standbys. One that still imports is
taken too: it is ahead of a new process.

The first standbys start together, while the node waits for the others. Later ones start one at a time, when the workers
have run for a while. They import with SCHED_IDLE where the kernel lets a process end that: a worker that computes loses no
time to them. They are bound to one CPU until "go" if OMP_NUM_THREADS is 1. Otherwise libraries that count the CPUs when
they are loaded would use one thread for ever.
"""

from __future__ import annotations

import marshal
import os
import resource
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import IO, Any

from ....core.backoff import pause_s
from ....core.values import define, evolve
from ...clean_up import run_all
from ...launch_settings import Function, LaunchSettings, Program, StandbySettings
from ...store.notes import StandbyNote
from ..start_up import HOOK, StartUp
from ..watch import process_groups as groups
from ..watch.reaper_process import ReaperProcess
from ..watch.watcher import Watcher
from ..worker_port import CannotStart, Remark, StandbyNews, StandbysReady, WorkerSpec
from .environment import command, lasting_environment, names_of_round
from .programs import ignoring
from .script_imports import EarlyImport, Imports, imports_of, named
from .spawner import Executor, Here, Process, Promoted, Spawner, WorkerStart, bound_to

_VARIABLE = "ELASTIC_STANDBY"
_PACKET_MAX = 65_536
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 60.0
"""The pauses after standbys that died."""
_AFTER_S = 2.0
"""Workers run for this long before the next standby is started."""
_DEATHS_MAX = 3
"""After this many deaths in a row nobody waits for standbys any longer."""
_ASKED_MAX = 20
"""This many imports may be left to the workers, one after the other, because they ask for a variable of the round."""
_PROBE_TIMEOUT_S = 30.0
_CAP_SYS_NICE = 1 << 23
_GPUS = "/dev/nvidia"
"""So the names of the driver's files begin."""


@define(eq=False)
class _Standby:
    process: Process
    control: socket.socket
    command: tuple[str, ...]
    is_ready: bool = False


class Standbys:
    """The standbys of one node, as the spawner of its workers.

    `tell(pid)` is called from the watcher's thread when a standby has something to say; all else is called from the agent's
    own thread.
    """

    def __init__(
        self,
        settings: LaunchSettings,
        wanted: StandbySettings,
        slot: str,
        spawner: Spawner,
        reaper: ReaperProcess,
        watcher: Watcher,
        clock: Callable[[], float],
        tell: Callable[[int], None],
        gpus: str = _GPUS,
        start_up: StartUp | None = None,
        executor: Executor | None = None,
    ) -> None:
        self._settings = settings
        self._wanted = wanted
        ranks = [place % settings.local_world_size for place in range(wanted.count or settings.local_world_size)]
        self._commands = [command(settings.program, rank) for rank in ranks]
        self._of_round = names_of_round(settings)
        lasting = lasting_environment(settings, slot)
        self._environment = {name: text for name, text in lasting.items() if name not in self._of_round}
        self._spawner = spawner
        self._reaper = reaper
        self._watcher = watcher
        self._clock = clock
        self._tell = tell
        self._gpus = gpus
        self._start_up = start_up
        self._executor = executor or Here()
        self._imports: Sequence[EarlyImport] = ()
        self._tainted: set[str] = set()
        self._standbys: dict[int, _Standby] = {}
        self._attempt = 0
        self._deaths = 0
        self._asked = 0
        self._busy = False
        self._next_at: float | None = None
        self._became_workers = 0
        self._imports_s: float | None = None
        self._has_told_holder = False

    # --- the spawner of the workers

    def check(self, specs: Sequence[WorkerSpec]) -> None:
        self._attempt += 1
        self._spawner.check(specs)

    def spawn(self, start: WorkerStart) -> Process:
        while standby := self._next_for(tuple(start.command)):
            try:
                self._go(standby, start if self._start_up else evolve(start, reports=None))
            except OSError:  # it has died, and nobody knows that yet
                self._discard(standby)
            else:
                self._became_workers += 1
                return Promoted(standby.process)
        return self._spawner.spawn(start)

    def close(self) -> None:
        """Kill and reap all standbys. Idempotent."""
        self._next_at, self._commands = None, []
        for standby in self._standbys.values():
            groups.kill(standby.process.pid)
        run_all(*(partial(self._discard, standby) for standby in list(self._standbys.values())), self._spawner.close)

    # --- their lives

    @property
    def pids(self) -> Collection[int]:
        """The process ids of the standbys."""
        return self._standbys.keys()

    @property
    def ready(self) -> int:
        """How many standbys have finished their imports."""
        return sum(standby.is_ready for standby in self._standbys.values())

    @property
    def note(self) -> StandbyNote:
        """Return what the store says of them to people."""
        return StandbyNote(self.ready, self._imports_s)

    @property
    def count(self) -> Mapping[str, float | None]:
        """The standbys so far: how many are ready, how many became workers, how long imports took (seconds)."""
        return {"ready": self.ready, "became_workers": self._became_workers, "imports_s": self._imports_s}

    @property
    def are_settled(self) -> bool:
        """Return True if nothing is gained by waiting: all are ready, or there are none, or they die again and again."""
        return self.ready >= len(self._commands) or self._deaths >= _DEATHS_MAX

    @property
    def until(self) -> float | None:
        """The time at which `passed` is to be called; None for not at all."""
        return self._next_at

    def begin(self) -> Sequence[StandbyNews]:
        """Start all standbys together. Nothing that goes wrong here keeps the job from starting."""
        try:
            self._imports = imports(self._settings.program, self._settings.environment, self._wanted.preload).early
        except CannotStart as reason:
            return self._switch_off(str(reason))
        for missing in self._missing():
            self._start(missing)
        return ()

    def rest(self, now: float, busy: bool) -> None:
        """Start no standby for a while: workers have just been started, or stopped. `busy`: workers run."""
        self._busy = busy
        self._next_at = now + _AFTER_S if self._missing() else None

    def passed(self, now: float) -> None:
        """Start the next standby that is missing, if it is time."""
        if self._next_at is None or now < self._next_at:
            return
        self._next_at = None
        if (missing := self._missing()) and all(standby.is_ready for standby in self._standbys.values()):
            self._start(missing[0])

    def heard(self, pid: int) -> Sequence[StandbyNews]:
        """Take what this standby has to say, or that it is dead."""
        standby = self._standbys.get(pid)
        if standby is None:
            return ()
        try:
            words = standby.control.recv(_PACKET_MAX, socket.MSG_DONTWAIT).decode("utf-8", "replace").split("\0")
        except OSError:
            words = [""]
        match words:
            case ["ready", seconds, holder]:
                return self._became_ready(standby, float(seconds), holder)
            case ["failed", module, why]:
                return self._switch_off(f"import {module} raises {why}; fix it, or name other modules with --preload")
            case ["asked", module, name, by, tainted, others]:
                return self._leave_out(standby, module, name, by, _words(tainted), _words(others))
            case _:
                self._discard(standby)
                self._pause()
                return ()

    def _became_ready(self, standby: _Standby, seconds: float, holder: str) -> Sequence[StandbyNews]:
        standby.is_ready = True
        self._imports_s = seconds
        self._deaths = 0
        self._watch(standby)
        news: list[StandbyNews] = []
        if holder and not self._has_told_holder:
            self._has_told_holder = True
            news.append(
                Remark(
                    f"import {holder} opens a GPU, so a standby holds memory of it; name the imports without it by --preload"
                )
            )
        if self._missing():
            self._next_at = self._clock()
        elif self.ready == len(self._standbys):
            news.append(StandbysReady(self.ready, seconds))
        return news

    def _leave_out(
        self, standby: _Standby, module: str, name: str, by: str, tainted: Sequence[str], others: Sequence[str]
    ) -> Sequence[StandbyNews]:
        """Leave an import to the workers, all but the modules that it shares with others; begin anew."""
        self._asked += 1
        self._tainted.update(tainted)
        instead = [each for each in others if each not in self._tainted]
        self._imports = _without(self._imports, module, instead)
        for spoilt in [each for each in self._standbys.values() if each is standby or not each.is_ready]:
            self._discard(spoilt)
        if self._asked > _ASKED_MAX:
            return self._switch_off(f"too many imports ask for variables of the round: {module} for {name}")
        missing = self._missing()
        for command_ in missing[:1] if self._busy else missing:
            self._start(command_)
        return [Remark(f"standbys do not import {module}: {by} asks for {name} when it is imported")]

    def _switch_off(self, why: str) -> Sequence[StandbyNews]:
        self._next_at, self._commands = None, []
        for standby in list(self._standbys.values()):
            self._discard(standby)
        return [Remark(f"standby is off: {why}")]

    def _missing(self) -> list[tuple[str, ...]]:
        """Return the commands that no standby has."""
        return list((Counter(self._commands) - Counter(each.command for each in self._standbys.values())).elements())

    def _next_for(self, command: tuple[str, ...]) -> _Standby | None:
        fitting = [standby for standby in self._standbys.values() if standby.command == command]
        return max(fitting, key=lambda standby: standby.is_ready, default=None)

    # --- processes

    def _start(self, command: tuple[str, ...]) -> None:
        """Start a standby. A host that cannot have one now is asked again later."""
        self._reaper.expect()
        try:
            idles = self._busy and _can_end_idling()
            standby = self._made(command)
        except (OSError, ValueError, CannotStart):
            self._pause()
            return
        pid = standby.process.pid
        self._reaper.hold([pid])
        if idles:
            _schedule(pid, os.SCHED_IDLE)
        self._standbys[pid] = standby
        self._watch(standby)

    def _made(self, command: tuple[str, ...]) -> _Standby:
        """Raises OSError, ValueError or CannotStart."""
        path = self._environment.get("PYTHONPATH")
        plan: dict[str, Any] = {
            "attempt": self._attempt,
            "path": path,
            "gpus": self._gpus,
            "of_round": tuple(self._of_round),
            "imports": [(each.module, each.importer, each.file, each.line, each.statement) for each in self._imports],
        }
        bound = self._busy and self._environment.get("OMP_NUM_THREADS") == "1"
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            with theirs, _file(plan) as plan_file, _file() as stdout, _file() as stderr:
                environment = {
                    **self._reaper.environment(self._environment),
                    "PYTHONPATH": os.pathsep.join(filter(None, (str(HOOK), path))),
                    _VARIABLE: f"{theirs.fileno()}:{plan_file.fileno()}",
                }
                cpus = frozenset({max(os.sched_getaffinity(0))}) if bound else None
                with bound_to(cpus), self._reaper.protection.lifted():
                    process = self._executor.execute(
                        ignoring(self._settings.drain.ignored, command),
                        environment,
                        stdout.fileno(),
                        stderr.fileno(),
                        (theirs.fileno(), plan_file.fileno()),
                    )
        except BaseException:
            ours.close()
            raise
        return _Standby(process, ours, command)

    def _pause(self) -> None:
        """Start no standby for a while, longer after each one that has died or could not start."""
        self._deaths += 1
        self._next_at = self._clock() + pause_s(self._deaths, _FIRST_PAUSE_S, _LONGEST_PAUSE_S)

    def _watch(self, standby: _Standby) -> None:
        self._watcher.forget(standby.control.fileno())
        self._watcher.watch(standby.control.fileno(), lambda at: self._tell(standby.process.pid))

    def _go(self, standby: _Standby, start: WorkerStart) -> None:
        """Raises OSError if it is dead."""
        cpus = sorted(os.sched_getaffinity(0))  # this thread's, which may be bound for this worker's sake
        policy, priority = os.sched_getscheduler(0), os.sched_getparam(0).sched_priority
        orders: dict[str, Any] = {
            "attempt": self._attempt,
            "environment": dict(start.environment),
            "cpus": cpus,
            "policy": (policy, priority),
            **_start_up_orders(self._start_up, start.environment, start.reports),
        }
        streams = [default if each is None else each for default, each in ((1, start.stdout), (2, start.stderr))]
        given = [*streams, *filter(None, [start.reports])]
        with _file(orders) as file:
            socket.send_fds(
                standby.control, [b"go"], [file.fileno(), *given], socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL
            )
        self._let_go(standby)
        with suppress(OSError):
            os.sched_setaffinity(standby.process.pid, cpus)
        _schedule(standby.process.pid, policy, priority)  # one that still imports waits no longer for idle CPUs

    def _let_go(self, standby: _Standby) -> None:
        del self._standbys[standby.process.pid]
        self._watcher.forget(standby.control.fileno())
        standby.control.close()

    def _discard(self, standby: _Standby) -> None:
        """Kill and reap a standby, and end its group."""
        pid = standby.process.pid
        if pid not in self._standbys:
            return
        self._let_go(standby)
        groups.kill(pid)
        self._reaper.forget(pid)
        standby.process.reap(groups.WAIT_TIMEOUT_S)
        groups.end(pid)


def _start_up_orders(start_up: StartUp | None, environment: Mapping[str, str], reports: int | None) -> dict[str, Any]:
    """Return what a standby does beside the program, and what its environment gets if it executes the program afresh."""
    if start_up is None:
        return {"start_up": (0, 0, 0), "afresh": {}}
    _, _, number = start_up.numbers
    afresh = start_up.variables(environment.get("PYTHONPATH"), number if reports else 0)
    return {"start_up": start_up.numbers, "afresh": afresh}


def imports(program: Program | Function, environment: Mapping[str, str], preload: Sequence[str] | None) -> Imports:
    """Return what standbys import. Raises CannotStart if the workers' Python cannot have standbys."""
    if os.pathsep in str(HOOK):
        raise CannotStart(
            f"{HOOK} cannot be in PYTHONPATH; install elastic in a directory without {os.pathsep!r} in its name"
        )
    path = [each for each in sys.path if each]
    if program.python != sys.executable:
        path = _path_of(program.python, environment)
    if preload is not None:
        return named(preload)
    return imports_of(program, path, environment.get("PYTHONPATH"))


def _path_of(python: str, environment: Mapping[str, str]) -> list[str]:
    """Ask another Python for its sys.path, and so learn that it imports sitecustomize. Raises CannotStart."""
    pythonpath = os.pathsep.join(filter(None, (str(HOOK), environment.get("PYTHONPATH"))))
    try:
        answer = subprocess.run(
            [python, "-u", "-c", "raise SystemExit(1)"],
            env={**environment, "PYTHONPATH": pythonpath, _VARIABLE: "path"},
            capture_output=True,
            timeout=_PROBE_TIMEOUT_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        raise CannotStart(f"PYTHON_EXEC={python} does not import sitecustomize from PYTHONPATH") from None
    return [os.fsdecode(each) for each in answer.stdout.split(b"\0") if each]


def _without(imports: Sequence[EarlyImport], module: str, instead: Sequence[str]) -> Sequence[EarlyImport]:
    """Replace the import of a module by imports of others."""
    there = {each.module for each in imports}
    kept: list[EarlyImport] = []
    for each in imports:
        if each.module != module:
            kept.append(each)
            continue
        kept += [evolve(each, module=other, statement=f"import {other}") for other in instead if other not in there]
        there.update(instead)
    return kept


def _can_end_idling() -> bool:
    """Return True if this process may end SCHED_IDLE: by CAP_SYS_NICE, or by its limit for nice values."""
    with open("/proc/self/status", errors="replace") as status:
        capabilities = next(int(line.split()[1], 16) for line in status if line.startswith("CapEff:"))
    needed = 20 - os.getpriority(os.PRIO_PROCESS, 0)
    return bool(capabilities & _CAP_SYS_NICE) or resource.getrlimit(resource.RLIMIT_NICE)[0] >= needed


def _schedule(pid: int, policy: int, priority: int = 0) -> None:
    """Give all threads of a process this scheduling policy. What the kernel refuses is left as it is."""
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            os.sched_setscheduler(int(thread), policy, os.sched_param(priority))


def _words(text: str) -> list[str]:
    return text.split(",") if text else []


def _file(content: dict[str, Any] | None = None) -> IO[bytes]:
    """Return a file without a name, with this value in it."""
    file = os.fdopen(os.memfd_create("elastic-standby"), "wb", buffering=0)
    if content is not None:
        file.write(marshal.dumps(content, 2))
    return file
