"""The port to a job's store: the questions that the rendezvous loop asks of any store.

Every backend passes `tests/conformance.py`. States go in and out as values. A backend that keeps bytes uses
`core.rendezvous.codec`, and raises `Unreadable` for a value that does not decode. A client belongs to one thread; `clone`
makes a client for another thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from ...core.rendezvous import Heartbeats as Heartbeats
from ...core.rendezvous import Proposal, RendezvousState, Token
from ...core.rendezvous import Shown as Shown
from ...core.world import Fault, Life, Node, Stacks, Unfit
from .notes import StandbyNote
from .queries import Query, Replies, Reply

FAULTS_MAX = 4_096
"""The most failures that a job's record shows: the first 2,048, and the last 2,048 of all later ones."""


UNFIT_MAX = 64
"""The nodes that stay out, of which a job's record shows the last ones."""


def noted(faults: list[Fault], fault: Fault) -> None:
    """Append the fault. If there are more than FAULTS_MAX then, drop one in the middle."""
    faults.append(fault)
    if len(faults) > FAULTS_MAX:
        del faults[FAULTS_MAX // 2]


class StoreError(Exception):
    """The store cannot do what it was asked. The text names the store and says who must act."""


class OutOfReach(StoreError):
    """The store did not answer, and nothing was written."""


class Denied(OutOfReach):
    """The store runs and refuses us, or is no store that we can use. Somebody must put that right."""


class OutcomeUnknown(StoreError):
    """A write was sent and no answer came: the write was made, will be made, or never will."""


class Unreadable(StoreError):
    """The value under the register's key is no register."""


class Backend(Protocol):
    """A client of one job's register, heartbeats, proposals and faults.

    `get` and `set` are linearizable, together with each loss of the store's memory. `wait_for_change` promises less: it may
    return a register that has been replaced already, but none that is older than what this client and its clones had been
    shown when the wait began. `tests/adapters/store/test_linearizable.py` checks this on real stores under faults.
    """

    @property
    def lease_s(self) -> float | None:
        """How long a heartbeat stays in the store after the last call of `heartbeat`, as granted by the store. None where it
        stays for ever: there a node lives only while its counter moves."""

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

    def heartbeat(self, node: Node, counter: int) -> Life | None:
        """Say that `node` lives. Returns the life of the register in the store that heard it."""

    def heartbeats(self, nodes: Iterable[Node]) -> Heartbeats:
        """Return the heartbeats of these nodes."""

    def remove_heartbeat(self, node: Node) -> None:
        """Take the heartbeat of `node` away, and its proposal and its note: it knows the verdict and goes."""

    def put_proposal(self, node: Node, proposal: Proposal) -> int:
        """Put down what `node` proposes, in the place of what it proposed before. Returns how many have put down a proposal
        of this kind in this era, this one included: a hint, which a try that was repeated may have made too high."""

    def proposals(self, nodes: Iterable[Node], entering: Token | None = None) -> Mapping[Node, Proposal]:
        """The last proposals of those of these nodes that have any, and of all that propose to enter in the era `entering`
        (None: of none). All that were counted are there. What nobody can read is no proposal."""

    def put_fault(self, fault: Fault) -> None:
        """Add a worker's failure to the job's record."""

    def faults(self) -> tuple[Fault, ...]:
        """Return the failures on record, by round, those of one round in the order in which they were put. Of more than
        FAULTS_MAX the middle is left out: the first show how it began, the last how it ended."""

    def clone(self) -> Backend:
        """Return a client of the same register for another thread."""

    def close(self) -> None:
        """Close this client; a wait in it returns. Idempotent."""


class AgentBackend(Backend, Protocol):
    """A client of the agents' own register. It also keeps what each node tells people: of its standbys, of stacks, and why
    it stays out."""

    @property
    def query(self) -> Query | None:
        """The query that stood there at the last heartbeat of this client."""

    def put_note(self, node: Node, note: StandbyNote) -> None:
        """Put down the note of `node`, in the place of its last one."""

    def notes(self, nodes: Iterable[Node]) -> Mapping[Node, StandbyNote]:
        """Return the notes of those of these nodes that have one that can be read."""

    def put_stacks(self, stacks: Stacks) -> None:
        """Put down where the workers of a node were, in the place of what that node put before."""

    def stacks(self, nodes: Iterable[Node]) -> tuple[Stacks, ...]:
        """Return what those of these nodes that have put any put last. What nobody can read is left out."""

    def put_query(self, query: Query) -> None:
        """Ask all agents this, in the place of any other query. After LASTS_S nobody answers any more."""

    def withdraw_query(self, nodes: Iterable[Node]) -> None:
        """Remove the query that this client has put, and the replies of these nodes."""

    def put_reply(self, reply: Reply) -> None:
        """Answer the query that stands there."""

    def replies(self, nodes: Iterable[Node]) -> Replies:
        """Return the query that stands there, and the replies of those of these nodes that have answered one."""

    def put_unfit(self, unfit: Unfit) -> None:
        """Add a node that stays out to the job's record."""

    def unfit(self) -> tuple[Unfit, ...]:
        """Return the nodes that stay out, in the order in which they were put: of more than UNFIT_MAX the last ones. What
        nobody can read is left out."""

    def clone(self) -> AgentBackend:
        """Return a client of the same register for another thread."""
