"""A program: clients of one register on a real store, which ask at random and write down what they asked and were told.

    register_client.py HISTORY STORE ADDRESSES RUN_ID NAME SEED

It ends when its stdin closes. The clients are threads, each with a clone of the first one's backend. Each line of HISTORY is
a JSON list: ["began", client, time, kind, expected, value], and then ["ended", client, time, what the register was], or
["void", client, time] where nothing was written and nothing was shown, or ["unknown", client, time]. `read` makes operations
of these lines. Times are nanoseconds of this host's monotonic clock, which its processes share.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random

from attrs import define, evolve, field
from linearizability import Effect, Operation, Read, Refused, Value, Write

from elastic.adapters.clock import SystemClock
from elastic.adapters.store.port import Backend, OutcomeUnknown, OutOfReach
from elastic.adapters.store.tcpstore.tcpstore import TCPStoreBackend
from elastic.adapters.store.tcpstore.wire import Address
from elastic.core.rendezvous import Limits, RendezvousState, blank
from elastic.core.world import Life

CLIENTS = 3
TIMEOUT_S = 0.5
"""How long an answer may take. So a short fault makes doubtful writes."""
WAIT_S = 0.3
PAUSE_S = 0.02
"""The pause of a client that got no answer."""
REMEMBERED = 40
"""The states whose tokens a client still tries."""

WRITES = ("write",) * 6 + ("late write", "restore")
KINDS = (*WRITES, *("read",) * 3, *("wait",) * 2)


@define
class Client:
    """One thread's questions. A state carries the name of its write as its `policy`, which no store reads."""

    name: str
    backend: Backend
    chance: Random
    history: int
    """A descriptor."""
    ends: threading.Event
    known: deque[RendezvousState | None] = field(factory=lambda: deque([None], maxlen=REMEMBERED))
    writes: int = 0

    def run(self) -> None:
        while not self.ends.is_set():
            if not self._ask(self.chance.choice(KINDS)):
                self.ends.wait(PAUSE_S)

    def _ask(self, kind: str) -> bool:
        """Ask one question. Returns False if there was no answer."""
        base = self.chance.choice(self.known) if kind == "late write" else self.known[-1]
        token = base.token if base else None
        written = self._after(base, kind == "restore")
        self._write("began", kind, _name(base), _name(written) if kind in WRITES else None)
        try:
            match kind:
                case "read":
                    state = self.backend.get().state
                case "wait":
                    state = self.backend.wait_for_change(token, time.monotonic() + WAIT_S).state
                case _:
                    state = self.backend.set(written, token).state
        except OutcomeUnknown:
            self._write("unknown")
            return False
        except OutOfReach:
            self._write("void")
            return False
        self._write("ended", _name(state))
        self.known.append(state)
        return True

    def _after(self, base: RendezvousState | None, restored: bool) -> RendezvousState:
        """Return a new state that may follow this one."""
        self.writes += 1
        name = f"{self.name}:{self.writes}"
        if base is None:
            return evolve(blank(Life(name), Limits()), policy=name)
        life = Life(name, base.life.epoch + 1) if restored else base.life
        return evolve(base, life=life, version=base.version + 1, policy=name)

    def _write(self, what: str, *rest: object) -> None:
        line = json.dumps([what, self.name, time.monotonic_ns(), *rest])
        os.write(self.history, f"{line}\n".encode())


def _name(state: RendezvousState | None) -> Value:
    return state.policy if state else None


def read(lines: Iterable[str]) -> Iterator[Operation]:
    """Yield the operations of one program's lines. Waits return what was pushed.

    A last line that a kill cut off is passed over, and what no line ends has an unknown outcome.
    """
    open_: dict[str, tuple[int, str, Value, Value]] = {}
    for line in lines:
        if not line.endswith("\n"):
            break
        what, client, at, *rest = json.loads(line)
        if what == "began":
            open_[client] = (at, *rest)
            continue
        began_at, kind, expected, value = open_.pop(client)
        if what == "ended":
            effect = _effect(kind, expected, value, *rest)
            yield Operation(client, _session(client), effect, began_at, at, kind == "wait")
        elif what == "unknown":
            yield Operation(client, _session(client), Write(expected, value), began_at, None)
    for client, (began_at, _, expected, value) in open_.items():
        if value is not None:
            yield Operation(client, _session(client), Write(expected, value), began_at, None)


def _effect(kind: str, expected: Value, value: Value, shown: Value) -> Effect:
    if kind not in WRITES:
        return Read(shown)
    return Write(expected, value) if shown == value else Refused(expected, shown)


def _session(client: str) -> str:
    return client.partition(".")[0]


def backend_of(store: str, addresses: str, run_id: str) -> Backend:
    """Return a client as an agent makes it, but with less patience."""
    those = [Address(host, int(port)) for host, _, port in (each.rpartition(":") for each in addresses.split(","))]
    if store == "tcpstore":
        return TCPStoreBackend(those[0], run_id, SystemClock(), timeout_s=TIMEOUT_S)
    from elastic.adapters.store.etcd.access import Access
    from elastic.adapters.store.etcd.etcd_register import EtcdBackend
    from elastic.adapters.store.etcd.members import Members
    from elastic.adapters.store.etcd.run_keys import prefix_of

    return EtcdBackend(Members(those, Access(), TIMEOUT_S, prefix_of(run_id)), run_id, SystemClock(), lease_s=60)


def end(raised: threading.ExceptHookArgs) -> None:
    """End the program: a thread met an error that it does not know."""
    threading.__excepthook__(raised)
    os._exit(1)


def main(history: str, store: str, addresses: str, run_id: str, name: str, seed: str) -> None:
    threading.excepthook = end
    written = os.open(Path(history), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    first, ends = backend_of(store, addresses, run_id), threading.Event()
    backends = [first, *(first.clone() for _ in range(CLIENTS - 1))]
    clients = [
        Client(f"{name}.{number}", backend, Random(f"{seed} {name} {number}"), written, ends)
        for number, backend in enumerate(backends)
    ]
    threads = [threading.Thread(target=client.run) for client in clients]
    for thread in threads:
        thread.start()
    sys.stdin.read()
    ends.set()
    for thread in threads:
        thread.join()
    for backend in backends:
        backend.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
