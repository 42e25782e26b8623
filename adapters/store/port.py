"""The port to a job's store: the questions that the rendezvous loop asks of any store.

Every backend passes `tests/conformance.py`. States go in and out as values. A backend that keeps bytes uses
`core.rendezvous.codec`, and raises `Unreadable` for a value that does not decode. A client belongs to one thread; `clone`
makes a client for another thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar
from urllib.parse import quote

from ...core.rendezvous import Heartbeats as Heartbeats
from ...core.rendezvous import RendezvousState, Token
from ...core.rendezvous import Shown as Shown
from ...core.rendezvous.state import NODES_MAX
from ...core.values import field, frozen
from ...core.world import Life, Node

if TYPE_CHECKING:
    from .notes import Notes

Record = TypeVar("Record")
COPY_PAUSE_S = 0.1
"""The pause before the next look at a copy, which will be restored soon."""
BEATS_MAX = 1_000_000_000
"""The highest counter of a heartbeat: after it an agent writes 1. A higher one is forged."""
LONGEST_PAUSE_S = 1.0
"""The longest pause between two questions to a store that does not answer."""


class StoreError(Exception):
    """The store cannot do what it was asked. The text names the store and says who must act."""


class OutOfReach(StoreError):
    """The store did not answer, and nothing was written."""


class Denied(OutOfReach):
    """The store runs and refuses us, or is no store that we can use. Somebody must put that right."""


class OutcomeUnknown(StoreError):
    """A write was sent and no answer came: the write was made, will be made, or never will."""


class NotServed(OutOfReach):
    """This process is to serve the store, and cannot: the store never was there."""


class Unreadable(StoreError):
    """The value under the register's key is no register."""


@frozen(eq=False)
class Shelf(Generic[Record]):
    """A folder with one record of each node, the last that it put."""

    name: str
    is_large: bool = False
    """A record may be large, so few are read with one question."""
    owner: Callable[[Record], Node] | None = None
    """Return the node that a record names. It must be the node under whose name the record stands."""
    lasts_s: int | None = None
    """A record goes after this time, in a store that has leases."""
    under: Shelf[Any] | None = None
    """The shelf of one record, without which these are not put, and with which they go."""


@frozen(eq=False)
class Log(Generic[Record]):
    """A folder of records in the order in which they were put. Of too many the middle is left out."""

    name: str
    first: int
    """How many of the first records are shown."""
    last: int
    """How many of the last ones."""
    named: Callable[[Record], str]
    """Return the name of a record, for a store that does not number them."""
    is_large: bool = False
    wraps: bool = True
    """A store that numbers the records uses the places of the last ones over and over."""
    counter: str = field()

    @counter.default
    def _counter(self) -> str:
        return f"{self.name}/count"

    def keep(self, records: list[Any], record: Any) -> None:
        """Append the record. If there are too many then, drop one in the middle."""
        records.append(record)
        if len(records) > self.first + self.last:
            del records[self.first]


Folder: TypeAlias = Shelf[Any] | Log[Any]


class Place(NamedTuple):
    """The place of a record. The one record of a shelf for all nodes has an empty name."""

    folder: Folder
    name: str = ""

    @property
    def named(self) -> tuple[str, str]:
        return (self.folder.name, self.name)

    @property
    def key(self) -> str:
        return f"{self.folder.name}/{self.name}" if self.name else self.folder.name


Found: TypeAlias = tuple[Mapping[Place, Any], Sequence[Any]]
"""The data at the places of shelves that have any, and those of a log, the oldest first."""


@lru_cache(maxsize=2 * NODES_MAX)
def spelled(node: Node) -> str:
    """Return the node as part of a key."""
    return quote(str(node), safe="")


class Register(Protocol):
    """The register of one job.

    `get` and `set` are linearizable, together with each loss of the store's memory. `wait_for_change` promises less: it may
    return a register that has been replaced already, but none that is older than what this client and its clones had been
    shown when the wait began. `tests/adapters/store/test_linearizable.py` checks this on real stores under faults.
    """

    def get(self) -> Shown:
        """Return the register."""

    def set(self, state: RendezvousState, token: Token | None) -> Shown:
        """Write `state` if the register still is what `token` names (None: if there is none yet).

        Returns the register afterwards, either way: `state` itself if it was written. A state of another life may follow the
        present one, or be the first. A copy takes no other write: a node that does not know yet that it is a copy would
        make a second state of a version that exists already.
        """

    def wait_for_change(self, token: Token | None, until: float) -> Shown:
        """Return the register as soon as `token` no longer names it, or at `until` on this host's monotonic clock.

        The store announces the change; nobody polls. A client that is closed returns early.
        """


class Pulse(Protocol):
    """The heartbeats of one job's nodes."""

    @property
    def lease_s(self) -> float | None:
        """How long a heartbeat stays in the store after the last call of `heartbeat`, as granted by the store. None where it
        stays for ever: there a node lives only while its counter moves."""

    def heartbeat(self, node: Node, counter: int) -> Life | None:
        """Say that `node` lives. Returns the life of the register in the store that heard it."""

    def heartbeats(self, nodes: Iterable[Node]) -> Heartbeats:
        """Return the heartbeats of these nodes."""

    def remove_heartbeat(self, node: Node) -> None:
        """Take the heartbeat of `node` away, and its records of `notes.GOING`: it knows the verdict and goes."""


class Board(Protocol):
    """The small records of one job. `Notes` makes records of the data: bytes, or the records themselves in memory."""

    @property
    def heard(self) -> Any:
        """The data at `notes.QUERY` at the last heartbeat of this client; empty or None if there were none."""

    def put(self, place: Place, data: Any) -> None:
        """Put the data on a shelf, in the place of what stood there, or append it to a log."""

    def count(self, tally: str, place: Place, data: Any, over: str = "") -> int:
        """Put the data, count it in this tally, and return the count: a hint, which a try that was repeated may have made
        too high. The last record of this name that this client counted in another place of a log goes, and so does the
        tally `over`."""

    def read(self, places: Iterable[Place], log: Log[Any] | None = None) -> Found:
        """Return the data at these places of shelves, and those of the log."""

    def drop(self, places: Iterable[Place]) -> None:
        """Remove these records. One that lasts for a time goes if this client has put it, with those under it."""


class Backend(Register, Pulse, Board, Protocol):
    """A client of one job's register, heartbeats and records."""

    @property
    def notes(self) -> Notes:
        """The records of this client's board."""

    def clone(self) -> Backend:
        """Return a client of the same register for another thread."""

    def close(self) -> None:
        """Close this client; a wait in it returns. Idempotent."""
