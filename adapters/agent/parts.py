"""The parts of an agent that not every agent has, and what all parts share.

Each is made here from the settings, or is None. Its module is imported only then: an agent imports what it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ...core.group.state import Checked
from ...core.rendezvous import Standstill
from ...core.values import frozen
from ...core.world import Node, World
from ..clock import Clock
from ..disk import Disk, Patience
from ..launch_settings import LaunchSettings
from ..report.news import Observer, Remark
from ..store.port import Backend
from ..workers.child_processes import SubprocessWorkers
from ..workers.messages.notices import NoticeBoard, notice_path
from ..workers.start.environment import lasting_environment
from ..workers.start.spawner import Executor, Spawner
from ..workers.start_up import StackHandler, StartUp
from ..workers.watch.reaper_process import ReaperProcess
from ..workers.watch.watcher import Watcher
from .drain_file import DrainFile
from .inbox import Inbox
from .watchdogs import Watchdogs

if TYPE_CHECKING:
    from ..workers.start.node_check import NodeChecks
    from ..workers.start.standbys import Standbys
    from .hang_watch import HangWatch
    from .standstill_watch import StandstillWatch


@frozen
class Part:
    """How a part of an agent starts, and how it is closed: after those that were started later, started or not."""

    close: Callable[[], object]
    start: Callable[[], object] = lambda: None


@frozen
class Shared:
    """Holds what the parts of one agent share."""

    settings: LaunchSettings
    node: Node
    host: str
    backend: Backend
    clock: Clock
    inbox: Inbox
    observer: Observer
    disk: Disk
    """The disk of the logs and the error files."""
    patience: Patience
    reaper: ReaperProcess
    watcher: Watcher
    executor: Executor
    start_up: StartUp | None
    """The code that workers run before the program. A forked worker runs none: it reports by itself."""

    @property
    def handler(self) -> StackHandler | None:
        """Return the handler by which workers write their stacks; None if they write none."""
        return self.start_up.stacks if self.start_up else None


def made_watchdogs(shared: Shared) -> Watchdogs:
    asked, inbox = shared.settings.watchdogs, shared.inbox
    return Watchdogs(asked, inbox.stuck, inbox.asked, inbox.watchdog_told, inbox.failed, shared.handler)


def made_standbys(shared: Shared, spawner: Spawner) -> Standbys | None:
    wanted = shared.settings.standby
    if wanted is None:
        return None
    from ..workers.start.standbys import Standbys  # no other launch needs it

    return Standbys(
        shared.settings,
        wanted,
        shared.node.slot,
        spawner,
        shared.reaper,
        shared.watcher,
        shared.clock.now,
        shared.inbox.standby_told,
        start_up=shared.start_up,
        executor=shared.executor,
    )


def made_processes(shared: Shared, spawner: Spawner, reports: bool) -> SubprocessWorkers:
    """Return the processes of the workers. `reports`: they say when they raise."""
    inbox, saw = shared.inbox, shared.observer.saw
    return SubprocessWorkers(
        inbox.died,
        shared.disk,
        shared.clock.now,
        reaper=shared.reaper,
        spawner=spawner,
        watcher=shared.watcher,
        failed=inbox.failed,
        on_report=inbox.reported if reports else None,
        remark=lambda text: inbox.asked(partial(saw, Remark(text))),
        linger_s=shared.settings.linger_s,
        patience=shared.patience,
        on_stuck=inbox.stuck,
    )


def made_checks(shared: Shared) -> NodeChecks | None:
    if shared.settings.node_check is None:
        return None
    from ..workers.start.node_check import NodeChecks  # no other launch needs it

    def checked(is_fit: bool, text: str) -> None:
        shared.inbox.post(Checked(is_fit, text, shared.clock.now()))

    return NodeChecks(shared.settings.node_check, _environment(shared), checked, shared.reaper.protection)


def made_watch_check(shared: Shared) -> NodeChecks | None:
    """Return the checks of this node while the job runs. One that finds it unfit drains it."""
    drain, inbox = shared.settings.drain, shared.inbox
    if drain.check is None:
        return None
    from ..workers.start.node_check import NodeChecks  # no other launch needs it

    told = ""

    def checked(is_fit: bool, text: str) -> None:
        nonlocal told
        if not is_fit:
            inbox.drained(text, drain.deadline_s, unfit=True)
        elif text and text != told:
            inbox.post(Remark(f"warning: {text}; this node stays"))
        told = text

    return NodeChecks(drain.check, _environment(shared), checked, shared.reaper.protection)


def _environment(shared: Shared) -> Mapping[str, str]:
    """Return the environment of a check of this node."""
    return shared.reaper.environment(lasting_environment(shared.settings, shared.node.slot))


def made_hang_watch(shared: Shared, absent: Callable[[World], Sequence[Node]]) -> HangWatch | None:
    """`absent` returns the members of a world that are dead or out of reach, or have no work."""
    settings, inbox = shared.settings.hang, shared.inbox
    if settings is None:
        return None
    from .hang_watch import HangWatch  # no other launch needs it

    post, failed = inbox.post, inbox.failed
    return HangWatch(settings, shared.node, shared.backend, shared.handler, shared.clock, post, failed, absent)


def made_standstill_watch(shared: Shared, tell: Callable[[Standstill], None]) -> StandstillWatch:
    from .standstill_watch import StandstillWatch  # no launch needs it whose store answers

    return StandstillWatch(shared.settings.rendezvous.join_timeout, shared.clock, tell, shared.inbox.failed)


def made_drain_file(shared: Shared) -> DrainFile | None:
    drain, inbox = shared.settings.drain, shared.inbox
    drained = partial(inbox.drained, f"the file {drain.file}", drain.deadline_s)
    return DrainFile(drain.file, drained, inbox.failed) if drain.file else None


def made_board(shared: Shared) -> NoticeBoard | None:
    relay = shared.settings.relay
    return NoticeBoard(notice_path(relay), shared.watcher, shared.inbox.workers_ready) if relay else None
