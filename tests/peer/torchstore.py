"""The store of torch's simulated processes: a TCPStore's operations on plain keys, over a network that loses nothing.

torch talks to its store over one connection, and blocks until it gets an answer. So a message that our simulator loses is
only late here. A cut or an outage holds it until the end, as TCP's retransmission would. A lost answer takes as long as our
client waits before it asks again. This network is kinder to torch than that of core/sim is to us.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from attrs import define, evolve, field
from fibres import this
from torch.distributed import DistStoreError

from elastic.core.sim.network import ANSWER_TIMEOUT_S

if TYPE_CHECKING:
    from torchnode import TorchProcess
    from torchworld import TorchWorld

READ_TIMEOUT_S = 60.0
"""How long a call waits for an answer or for a key: c10d's read_timeout."""

Waiter = Callable[[], None]


class NotYet(Exception):
    """A key that the call needs does not exist yet."""


@define
class TorchStore:
    """The keys, and the calls that wait for one to be set."""

    keys: dict[str, bytes] = field(factory=dict)
    waiting: list[Waiter] = field(factory=list)
    down_until: float = 0.0


@define(eq=False)
class Connection:
    """The client of one process, with the methods of `torch.distributed.Store` that torch's agent uses."""

    world: TorchWorld
    process: TorchProcess
    prefix: str = ""
    timeout: timedelta = timedelta(seconds=READ_TIMEOUT_S)

    def under(self, prefix: str) -> Connection:
        """Return a client that puts this prefix before each key, as a PrefixStore does."""
        return evolve(self, prefix=f"{self.prefix}{prefix}/")

    def set_timeout(self, timeout: timedelta) -> None:
        self.timeout = timeout

    def set(self, key: str, value: bytes | str) -> None:
        self._call(lambda keys: self._put(keys, key, value))

    def get(self, key: str) -> bytes:
        return bytes(self._call(lambda keys: self._found(keys, key)))

    def multi_get(self, names: list[str]) -> list[bytes]:
        return list(self._call(lambda keys: [self._found(keys, key) for key in names]))

    def multi_set(self, names: list[str], values: list[bytes | str]) -> None:
        def sets(keys: dict[str, bytes]) -> None:
            for key, value in zip(names, values, strict=True):
                self._put(keys, key, value)

        self._call(sets)

    def wait(self, names: list[str], timeout: timedelta | None = None) -> None:
        self._call(lambda keys: [self._found(keys, key) for key in names], timeout)

    def add(self, key: str, amount: int) -> int:
        def adds(keys: dict[str, bytes]) -> int:
            total = int(keys.get(self.prefix + key, b"0")) + amount
            keys[self.prefix + key] = str(total).encode()
            return total

        return int(self._call(adds))

    def compare_set(self, key: str, expected: str, desired: str) -> bytes:
        """Return the value after a compare-and-set. Nothing else writes the register's key."""

        def sets(keys: dict[str, bytes]) -> bytes:
            stands = keys.get(self.prefix + key, b"")
            if stands != expected.encode():
                return stands
            keys[self.prefix + key] = desired.encode()
            self.world.landed(self.process, stands, desired.encode())
            return desired.encode()

        return bytes(self._call(sets, write=True))

    def _put(self, keys: dict[str, bytes], key: str, value: bytes | str) -> None:
        keys[self.prefix + key] = value if isinstance(value, bytes) else value.encode()
        waiting, self.world.store.waiting = self.world.store.waiting, []
        for waiter in waiting:
            waiter()

    def _found(self, keys: dict[str, bytes], key: str) -> bytes:
        if self.prefix + key not in keys:
            raise NotYet
        return keys[self.prefix + key]

    # --- there and back, in virtual time

    def _call(
        self, does: Callable[[dict[str, bytes]], Any], timeout: timedelta | None = None, write: bool = False
    ) -> Any:
        world, process, fibre = self.world, self.process, this()
        future, store = world.future, world.store
        answer: list[Any] = []
        ticket = fibre.ticket
        patience = (self.timeout if timeout is None else timeout).total_seconds()

        def arrives() -> None:
            if (held := max(store.down_until, process.cut_out_until if process.alive else 0.0)) > future.now:
                future.at(held, arrives)
                return
            try:
                result = does(store.keys)
            except NotYet:
                store.waiting.append(arrives)
                return
            back = world.delay(process) + process.late_reply
            process.late_reply = 0.0
            if write and process.lose_reply:
                process.lose_reply, back = False, back + ANSWER_TIMEOUT_S
            future.at(future.now + back, returns, result)

        def returns(result: Any) -> None:
            if process.cut_in_until > future.now:
                future.at(process.cut_in_until, returns, result)
                return
            answer.append(result)
            world.wakes(process, fibre, ticket)

        leg = world.delay(process)
        if write and process.late_write:
            leg, process.late_write = leg + process.late_write, 0.0
        future.at(future.now + leg, arrives)
        future.at(future.now + patience, world.wakes, process, fibre, ticket)
        fibre.wait()
        if not answer:
            raise DistStoreError(f"wait timeout after {patience:g} s")
        return answer[0]
