"""An operator asks something of a running job: one operation of the rendezvous, by somebody who is no node.

An operator writes the register by the same client as the nodes do: it reads, judges and compares before it writes, and gives
a store that lost its memory back what it had read. So nothing has to trust it more than a node. What a job asks of its
nodes it asks of an operator too: the token, whose seal is on each version of the register, or a user of the etcd that may
write. No agent has to live, and there is no second way into a job that would need a guard of its own.
"""

from __future__ import annotations

import os
import pwd
from queue import SimpleQueue

from ...core.rendezvous import Held, Outcome, Raise, Request, Settings, StoreSilent, Told, Who
from ...core.values import evolve
from ...core.world import NAME_MAX, Endpoint, Life, Node, Profile
from ..clock import Clock
from ..store.port import Backend
from ..terminal import printable
from .loop import LoopNotice, RendezvousLoop


def asked(backend: Backend, request: Request, settings: Settings, clock: Clock) -> Outcome | Raise:
    """Carry out what an operator asks; return what came of it, with the store's reason if it has not answered. The operation
    has a deadline, so this ends."""
    notices = SimpleQueue[LoopNotice | BaseException]()
    me = Node(operator_name(), int(clock.wall() * 1000))
    held = Held(Who(me, Profile(Endpoint("localhost", 1)), settings, Life(os.urandom(8).hex())))
    loop = RendezvousLoop(backend, held, clock, notices.put, notices.put)
    silent = ""
    loop.start()
    try:
        loop.submit(request)
        while not isinstance(notice := notices.get(), Told):
            if isinstance(notice, BaseException):
                raise notice
            silent = notice.text if isinstance(notice, StoreSilent) else silent
        answer = notice.answer
        return evolve(answer, text=silent) if isinstance(answer, Raise) and not answer.text else answer
    finally:
        loop.stop()


def operator_name() -> str:
    """Return who asks, for people: the user's name, and the host's."""
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a container's user may have none
        user = str(os.getuid())
    return printable(f"{user}@{os.uname().nodename}")[:NAME_MAX]
