"""The monitor, a program beside one wrapped process: it tells the job that the process lives, kills the process at its
limits, and speaks for it when it is dead.

    python -m elastic.adapters.inprocess.beside.monitor < charge

The charge is JSON (`inprocess.supervisor.Charge`): three inherited descriptors (the shared page, its bell, a pidfd of the
process, or -1 where the host has none), the place of the register, and the rules. `core.inprocess.monitoring` decides; this
program sees and acts. It imports neither torch nor a store's client: it speaks to the agent's relay, or to a TCPStore, over
a socket.

One thread looks and acts. Other threads tell it: the heart beats, a follower reads the register, and each request to the
register has a rendezvous loop of its own. So a store that does not answer delays nothing: a hang is killed all the same.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
import select
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any, assert_never

from ....core.inprocess.exits import INTERNAL
from ....core.inprocess.monitoring import (
    Act,
    Kill,
    Monitor,
    Quit,
    Rules,
    SayDead,
    SayEnd,
    SayLeave,
    Sight,
    Terminate,
    Want,
    step,
    until,
    woke,
)
from ....core.inprocess.words import Cause
from ....core.rendezvous import Held, Past, RendezvousState, Settings, Who, handlers
from ....core.rendezvous.agenda import Request
from ....core.rendezvous.context import Handler
from ....core.rendezvous.state import shows_over
from ....core.values import evolve
from ....core.world import Endpoint, Fault, Life, Node, Profile, Why, WorldId
from ... import pidfds
from ...clock import Clock, SystemClock, poll_ms
from ...process_stat import stat
from ...rendezvous.heart import Heart
from ...rendezvous.loop import RendezvousLoop, ToRecord
from ...report.news import LoopNotice, Told
from ...store import numerals
from ...store.port import Backend
from ...threads import NoThread
from ...workers.messages.error_files import leave_error_file
from ...workers.output.logs import ERROR_FILE_VARIABLE
from ..gate.gate import SIGNUM
from ..rank.register_follower import REST_S, RegisterFollower
from ..shared_page import ENTERED, HUNG, NS, RANK, WANT_MONITOR, WORLD_SIZE, Page, seen

SPEAKER = Profile(Endpoint("localhost", 1))
"""The monitor's profile. The monitor takes no seat, so no node reads it."""


def backend_at(place: Mapping[str, Any], clock: Clock, rest_s: float = 0.0) -> Backend:
    """Return a client of the register at that place. A relay tells of a change `rest_s` after it."""
    if "relay" in place:
        from ...store.relay.relay_backend import RelayBackend

        return RelayBackend(place["relay"], place["space"], clock, rest_s=rest_s)
    from ...store.tcpstore.tcpstore import TCPStoreBackend
    from ...store.tcpstore.wire import Address

    return TCPStoreBackend(Address(place["host"], place["port"]), place["space"], clock)


class Program:
    """The program of one monitor."""

    def __init__(self, charge: Mapping[str, Any]) -> None:
        self._node = Node(*charge["node"])
        self._rules = Rules(**charge["rules"])
        self._page = Page(charge["page"], charge["bell"])
        self._process, self._pid = _watched(charge["process"], charge.get("pid", 0))
        self._log = _opened(charge["log"])
        self._clock = SystemClock()
        self._relay: str | None = charge["place"].get("relay")
        self._backend = backend_at(charge["place"], self._clock)
        interval_s = charge["heartbeat_interval_s"]
        self._heart = Heart(self._backend.clone(), self._node, interval_s, self._clock, lambda *_: None, self._failed)
        following = backend_at(charge["place"], self._clock, REST_S)
        rest_s = 0.0 if self._relay else REST_S
        self._follower = RegisterFollower(following, self._saw, self._page.ring, self._failed, rest_s)
        self._loops: list[RendezvousLoop] = []
        self._told: SimpleQueue[RendezvousLoop] = SimpleQueue()
        self._state: RendezvousState | None = None
        self._monitor = Monitor()
        self._to_end: int | None = None
        self._killed_for = ""
        """Why this monitor has killed its process."""
        self._dead = self._settled = False

    def run(self) -> None:
        meant_at = self._clock.now()
        self._heart.start()
        self._follower.start()
        self._say(f"beside {self._node}")
        poll = select.poll()
        poll.register(self._process, select.POLLIN)
        poll.register(self._page.bell, select.POLLIN)
        while not self._look(meant_at):
            meant_at = until(self._monitor, self._sight(), self._rules)
            ready = dict(poll.poll(math.ceil(poll_ms(meant_at - self._clock.now()))))
            self._page.heard()
            if self._process in ready:
                self._dead = True
                poll.unregister(self._process)
        self._close()

    def _close(self) -> None:
        self._follower.stop()
        for loop in self._loops:
            loop.stop()
        self._heart.stop()
        self._backend.close()

    # --- sees

    def _saw(self, state: RendezvousState) -> None:
        """Keep the newest state; called by the follower's thread."""
        self._state = state
        self._page.ring()

    def _heard(self, loop: RendezvousLoop, notice: LoopNotice) -> None:
        """Note the answer to a request; called by that loop's thread."""
        if isinstance(notice, Told):
            if notice.handler is handlers.declare_dead:
                self._settled = True
            self._told.put(loop)
            self._page.ring()

    def _sight(self) -> Sight:
        sight, state = seen(self._page.words), self._state
        return evolve(
            sight,
            dead=self._dead,
            over=shows_over(state, self._node, sight.round),
            settled=self._settled or self._register_is_gone(),
        )

    def _register_is_gone(self) -> bool:
        """Return True if the launcher and its relay are gone: then no register is left to tell."""
        return self._relay is not None and not os.path.exists(self._relay)

    # --- acts

    def _look(self, meant_at: float) -> bool:
        """Look once and act. Return True if nothing is left to do. The look was due at `meant_at`, at the latest.

        The time is read once and first: a stop within this look counts as one before the next."""
        now, sight = self._clock.now(), self._sight()
        self._monitor, acts = step(woke(self._monitor, sight, meant_at, now), sight, now, self._rules)
        for act in acts:
            self._do(act)
        self._end_if_due()
        while not self._told.empty():
            loop = self._told.get()
            self._loops.remove(loop)
            loop.stop()
        return Quit() in acts

    def _do(self, act: Act) -> None:
        match act:
            case Want(token):
                self._page.words[WANT_MONITOR] = token
                self._send(SIGNUM)
                if self._monitor.tries == 1:
                    self._say(f"asks span {token} to end")
            case SayEnd(round):
                self._say(f"ends round {round}: no progress, and its own process does not say so")
                self._to_end = round
            case SayLeave():
                self._say("leaves for it")
                self._speak(handlers.leave)
            case SayDead(replace_s, failed):
                self._say("speaks for it: it is dead, or its call is over and nobody may know")
                fault = self._fault(self._sight().round, *self._death()) if failed else None
                self._speak(handlers.declare_dead, replace_s=replace_s, fault=fault)
            case Terminate():
                self._say("past its limit: SIGTERM, SIGCONT")
                self._leave_error_file()
                self._page.words[HUNG] = 1
                self._send(signal.SIGTERM)
                self._send(signal.SIGCONT)
            case Kill():
                self._say("SIGKILL")
                self._send(signal.SIGKILL)
            case Quit():
                self._say("is done")
            case other:
                assert_never(other)

    def _leave_error_file(self) -> None:
        """Leave the reason for the launcher, which would see only a signal."""
        sight = self._sight()
        if self._clock.now() >= sight.unwind_at:
            why = "user code did not end in time when it was called back (unwind_timeout)"
        else:
            why = f"no progress for {sight.hard_s:g} s (hard_timeout)"
        self._killed_for = f"killed by its monitor: {why}"
        file = os.environ.get(ERROR_FILE_VARIABLE)
        leave_error_file(Path(file) if file else None, self._killed_for)

    def _send(self, signum: signal.Signals) -> None:
        try:
            pidfds.send(self._process, signum)
        except ProcessLookupError:
            pass  # the process is dead: the next look sees that

    def _end_if_due(self) -> None:
        """End the round once its world has been seen: an end counts for the world that is complete in its round."""
        state, round = self._state, self._to_end
        if state is None or round is None or state.round < round:
            return
        self._to_end = None
        if state.round == round:
            self._speak(handlers.end, state.world_id, fault=self._fault(round, Cause.SOFT_TIMEOUT.value, None))

    def _death(self) -> tuple[str, int | None]:
        """Return how the process died, as far as the kernel still tells, and its exit code."""
        code = _exit_code(self._pid, self._process)
        if self._killed_for or code is None:
            return self._killed_for or "its process died", code
        try:
            return (f"killed by {signal.Signals(-code).name}" if code < 0 else f"its process ended with {code}"), code
        except ValueError:  # a signal without a name
            return f"killed by signal {-code}", code

    def _fault(self, round: int, message: str, exit_code: int | None) -> Fault:
        words, now = self._page.words, self._clock.now()
        return Fault(
            node=self._node,
            round=round,
            rank=words[RANK],
            local_rank=numerals.number(os.fsencode(os.environ.get("LOCAL_RANK", ""))) or 0,
            pid=self._pid,
            exit_code=exit_code,
            after_s=now - words[ENTERED] / NS,
            world_size=max(words[WORLD_SIZE], 1),
            host=os.uname().nodename,
            when=self._clock.wall_text(),
            message=message,
            at_s=now,
        )

    def _speak(
        self, handler: Handler, mine: WorldId | None = None, replace_s: float = 0.0, fault: Fault | None = None
    ) -> None:
        """Run this operation on the register, in the node's name; first put the failure on record. Raises NoThread while the
        process lives: its supervisor starts another monitor. For a dead process no other would come: this one takes the
        heartbeat away, and the other ranks see that."""
        try:
            self._begin(handler, mine, replace_s, fault)
        except NoThread:
            if not self._dead:
                raise
            self._heart.stop()

    def _begin(self, handler: Handler, mine: WorldId | None, replace_s: float, fault: Fault | None) -> None:
        nonce = Life(os.urandom(8).hex())
        settings = Settings(leave_timeout=self._rules.leave_s, replace_timeout=replace_s)
        held = Held(Who(self._node, SPEAKER, settings, nonce), past=Past(mine=mine))
        loop: RendezvousLoop = RendezvousLoop(
            self._backend, held, self._clock, lambda notice: self._heard(loop, notice), self._failed
        )
        try:
            loop.start()
        except NoThread:
            loop.stop()
            raise
        self._loops.append(loop)
        if fault:
            loop.submit(ToRecord(lambda: fault))
        loop.submit(Request(handler, Why.FAILED))

    def _failed(self, error: BaseException) -> None:
        """End this program for an error in one of its threads. The supervisor of a process that lives starts another."""
        self._say(f"ends: {error!r}")
        os._exit(INTERNAL)

    def _say(self, text: str) -> None:
        if self._log != -1:
            with suppress(OSError):  # a full disk must not end a process that ends others
                os.write(self._log, f"{self._clock.wall_text()} monitor of {self._node}: {text}\n".encode())


def _watched(pidfd: int, parent: int) -> tuple[int, int]:
    """Return a descriptor that tells of the death of the process, and its id; 0 if it is gone. Without a pidfd the process
    is known as the parent of this one, while it lives."""
    if pidfd != -1:
        return pidfd, _pid_of(pidfd)
    with suppress(ProcessLookupError):
        watched = pidfds.opened(parent)
        if os.getppid() == parent:
            return watched, parent
    return os.eventfd(1, os.EFD_CLOEXEC), 0


def _pid_of(pidfd: int) -> int:
    """Return the process id that this pidfd stands for; 0 if the process is gone."""
    for line in Path(f"/proc/self/fdinfo/{pidfd}").read_text().splitlines():
        if line.startswith("Pid:"):
            return max(int(line.split()[1]), 0)
    return 0


_GET_INFO, _INFO_BYTES, _INFO_EXIT, _EXIT_AT = 0xC040FF0B, 64, 8, 60
"""PIDFD_GET_INFO, the size of its answer, the bit for the exit code (since Linux 6.15), and where that stands."""


def _exit_code(pid: int, pidfd: int) -> int | None:
    """Return the exit code of a dead process, as subprocess has it; None if the kernel does not tell. /proc tells until its
    parent has reaped it, and the pidfd tells from then on."""
    try:
        state, *rest = stat(pid)
        if state == b"Z":
            return os.waitstatus_to_exitcode(int(rest[-1]))
    except OSError:
        pass  # it has been reaped
    info = bytearray(_INFO_EXIT.to_bytes(8, sys.byteorder) + bytes(_INFO_BYTES - 8))
    try:
        fcntl.ioctl(pidfd, _GET_INFO, info)
    except OSError:
        return None  # an older kernel
    if not int.from_bytes(info[:8], sys.byteorder) & _INFO_EXIT:
        return None
    return os.waitstatus_to_exitcode(int.from_bytes(info[_EXIT_AT:], sys.byteorder))


def _opened(log: str | None) -> int:
    """Return a descriptor of the log; -1 if there is to be none, or there can be none: the supervisor has said that."""
    try:
        return os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644) if log else -1
    except OSError:
        return -1


def main() -> None:
    """Run the monitor. It ignores the signals of a terminal, a service or a scheduler, which are for the process itself."""
    for signum in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(signum, signal.SIG_IGN)
    Program(json.load(sys.stdin)).run()


if __name__ == "__main__":
    main()
