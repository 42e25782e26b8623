"""The hang watch (--hang-timeout): looks at the workers now and then, and lets `core.hangs` decide what that means.

A look reads each worker's page (`workers/messages/pages.py`) and the size of its log files. Only if none of them shows a
move, stacks are asked for, without disturbing a worker that runs. A look may take a second, so the watch has its own
thread. The agent puts stacks on record and tells people. The end of a blamed worker is made here, as torch's file timers
make one: an error file that says why, and SIGKILL.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from ...core import hangs
from ...core.agent import Hung, Stands
from ...core.hangs import Blame, Busy, HangSettings, Others, Record, Report, Sight, Watch, Withdraw
from ...core.values import evolve, frozen
from ...core.world import Node, Stacks, World
from .. import pidfds, threads
from ..clock import Clock
from ..process_stat import stat
from ..report.news import SuspectedHang
from ..report.stack_records import Seen
from ..store.notes import STACKS
from ..store.port import Backend, StoreError
from ..terminal import printable
from ..workers.messages.error_files import leave_error_file
from ..workers.messages.pages import Page, read_page
from ..workers.output.logs import size
from ..workers.start_up import StackHandler
from ..workers.watch.stacks import Sighting, last_sight
from ..workers.watch.unkillable import state

_JOIN_TIMEOUT_S = 5.0
_DEAD = (None, "Z", "X")
_FAMILY_MAX = 64


@frozen
class Followed:
    """A worker as the hang watch knows it."""

    pid: int
    page: str | None
    outputs: tuple[Path, ...]
    error_file: Path | None


@frozen(eq=False)
class Followers:
    """The workers of one round, by rank, and a look at what they are doing."""

    world: World
    workers: Mapping[int, Followed]
    look: Callable[[], tuple[Seen, ...]]


class HangWatch:
    """Watches the workers of one node from its own thread, until `close`. `tell` is called from there, and `failed`
    with an error that ends it."""

    def __init__(
        self,
        settings: HangSettings,
        node: Node,
        backend: Backend,
        handler: StackHandler | None,
        clock: Clock,
        tell: Callable[[Stands | Hung], None],
        failed: Callable[[BaseException], object],
        absent: Callable[[World], Sequence[Node]] = lambda world: (),
    ) -> None:
        """`absent` returns the members of a world that are dead or out of reach, or have no work."""
        self._absent = absent
        self._settings = settings
        self._node = node
        self._backend = backend.clone()
        self._handler = handler
        self._clock = clock
        self._tell = tell
        self._followers: Followers | None = None
        self._own: Stacks | None = None
        """Where this node's workers stand, while a hang is suspected."""
        self.blamed = set[int]()
        """The process ids of the workers that this watch has ended."""
        self._over = threading.Event()
        self._thread = threading.Thread(target=threads.guarded(self._run, failed), name="elastic-hangs", daemon=True)

    def start(self) -> None:
        threads.start(self._thread)

    def follow(self, followers: Followers | None) -> None:
        """Watch these workers, and no others from now on; None: they are being stopped."""
        self._followers = followers

    def close(self) -> None:
        """End the thread. Idempotent."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join(_JOIN_TIMEOUT_S)
        self._backend.close()

    def _run(self) -> None:
        watch, round, pause_s = Watch(), None, self._settings.every_s
        while not self._over.wait(pause_s):
            followers, pause_s = self._followers, self._settings.every_s
            if followers is None or followers.world.round != round:
                watch, self._own, round = Watch(), None, followers.world.round if followers else None
            if followers:
                watch = self._look(watch, followers)
                now = self._clock.now()
                pause_s = max(hangs.until(watch, now, self._settings) - now, 0.0)

    def _look(self, watch: Watch, followers: Followers) -> Watch:
        found = {rank: _sight(worker) for rank, worker in followers.workers.items()}
        sights = {rank: sight for rank, sight in found.items() if sight}
        if hangs.asks(watch, sights):
            stacks = {seen.rank: sign(seen.sighting) for seen in followers.look()}
            sights = {rank: evolve(sight, stack=stacks.get(rank, "")) for rank, sight in sights.items()}
        world = followers.world
        others = self._others(world)
        watch, acts = hangs.look(watch, sights, others, self._clock.now(), self._settings)
        for act in acts:
            if self._followers is followers:
                self._carry_out(act, watch, followers, others)
        return watch

    def _carry_out(self, act: hangs.Act, watch: Watch, followers: Followers, others: Others) -> None:
        round = followers.world.round
        match act:
            case Record():
                seen = followers.look()
                places = sorted((each.rank, each.sighting.place) for each in seen)
                self._own = Stacks(self._node, round, tuple(places))
                self._tell(Stands(round, seen))
            case Withdraw():
                self._own = None
                self._tell(Stands(round, ()))
            case Report(silent_s, odd, missing):
                busy = {rank: printable(each.name) for rank, each in hangs.overdue(watch, self._settings).items()}
                self._tell(Hung(round, SuspectedHang(round, silent_s, others.stacks, odd, missing, busy)))
            case Blame(rank):
                self._end(followers.workers[rank], act)

    def _others(self, world: World) -> Others:
        """Return what the members have on record for this round. A store that does not answer tells nothing."""
        nodes, absent = list(world.nodes), self._absent(world)
        is_idle = self._node in absent
        if self._own is None:
            return Others(nodes, (), absent, is_idle=is_idle)
        try:
            found = self._backend.notes.read(STACKS, nodes)
        except StoreError:
            return Others(nodes, (self._own,), absent, is_idle=is_idle)
        others = [each for each in found.values() if each.round == world.round and each.node != self._node]
        return Others(nodes, (self._own, *others), absent, found.get(self._node) == self._own, is_idle)

    def _end(self, worker: Followed, blame: Blame) -> None:
        """Kill the worker that is blamed, if it still is ours. Its stack first says where it was."""
        try:
            pidfd = pidfds.opened(worker.pid)
        except OSError:
            return  # it has ended
        try:
            if os.getsid(worker.pid) == worker.pid:
                seen = last_sight(worker.pid, self._handler)
                callstack = seen.callstack if seen else ""
                leave_error_file(worker.error_file, _why(blame, seen.place if seen else ""), callstack)
                self.blamed.add(worker.pid)
                pidfds.send(pidfd, signal.SIGKILL)
        except OSError:
            pass  # it has just ended
        finally:
            os.close(pidfd)


def _why(blame: Blame, place: str) -> str:
    """Return what happened, for the failure's report."""
    where = f"this rank alone was {place}" if blame.is_odd else f"no rank was alone, and this one {place}"
    return f"hang: no rank made progress for {blame.silent_s:.1f} s; {where} (--on-hang=restart)"


def _sight(worker: Followed) -> Sight | None:
    """Return what can be seen of a worker from outside; None if it is dead."""
    if is_dead(worker.pid):
        return None
    page = read_page(worker.page)
    return Sight(worker.pid, page.calls, sum(map(size, worker.outputs)), _busy(page))


def is_dead(pid: int) -> bool:
    """Return True if this process is dead, reaped or not."""
    return state(pid) in _DEAD


def _busy(page: Page) -> Busy | None:
    return Busy(page.span, page.limit_s, page.name) if page.span else None


def sign(sighting: Sighting) -> str:
    """Return a text that changes when the main thread moves: its stack, or what the kernel counts of one that runs. Of a
    worker without a stack the main threads of its descendants count too: it may be a shell that waits for the training."""
    task = sighting.tasks[0] if sighting.tasks else None
    text = "" if sighting.is_cut else sighting.text
    if text and not (task and task.state == "R"):
        return text
    counted = [sighting.pid] if text else family(sighting.pid)
    return f"{text}\n{task.line if task else ''} {' '.join(str(counters(pid)) for pid in counted)}"


def family(pid: int) -> Sequence[int]:
    """Return a process and its descendants, the first ones."""
    found = [pid]
    for each in found:
        with suppress(OSError):
            children = Path(f"/proc/{each}/task/{each}/children").read_text().split()
            found += map(int, children[: _FAMILY_MAX - len(found)])
    return found


def counters(pid: int) -> Sequence[str]:
    """Return how often the main thread has gone to sleep, and how often it has touched new memory."""
    folder = Path(f"/proc/{pid}/task/{pid}")
    try:
        status, fields = (folder / "status").read_text(errors="replace"), stat(folder)
    except OSError:
        return ()
    return (
        *(line for line in status.splitlines() if line.startswith("voluntary")),
        *(each.decode() for each in fields[7:8]),
    )
