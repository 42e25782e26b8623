"""The store of a simulated world: one register, the nodes' heartbeats, and the processes that wait for a change.

It knows the true time and no node's clock. The world decides what it answers and when it is silent.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import TypeAlias

from attrs import define, field

from ..rendezvous import Proposal, RendezvousState, Shown, Token, Write
from ..rendezvous.actions import entrants
from ..world import Life, Node
from .story import Backend

Gap: TypeAlias = tuple[float, float]

PAST_MAX = 64
"""How many registers a backup may hold."""
BEATS_MAX = 8
"""How many heartbeats of a node are remembered."""


@define
class Pulse:
    """A node's heartbeat as the store has it."""

    counter: int
    at: deque[float]
    """When its last beats came."""


@define
class Store:
    backend: Backend
    ttl: float
    register: RendezvousState | None = None
    here: bool = True
    """The register was written here, and not in another store that this one is a copy of."""
    _shown: Shown = Shown(None)
    past: deque[tuple[float, RendezvousState]] = field(factory=lambda: deque(maxlen=PAST_MAX))
    """What it held, and from when on."""
    pulses: dict[Node, Pulse] = field(factory=dict)
    proposals: dict[Node, Proposal] = field(factory=dict)
    """The last one of each node."""
    proposed: Counter[str] = field(factory=Counter)
    """How often each kind of proposal was put down."""
    records: set[tuple[Node, object]] = field(factory=set)
    """What nodes have put on record beside the register: failures."""
    format: int = 0
    """In which format the register is written."""
    losses: int = 0
    """How often it lost its memory."""
    full_until: float = 0.0
    down_since: float = 0.0
    down_until: float = 0.0
    refreshed_at: float = 0.0
    """Leases count from here when the store was away, because it could not hear."""

    @property
    def token(self) -> Token | None:
        return self.register.token if self.register else None

    @property
    def shown(self) -> Shown:
        if self._shown.state is not self.register or self._shown.here is not self.here:
            self._shown = Shown(self.register, self.here)
        return self._shown

    @property
    def named(self) -> Life | None:
        """Return the life of the register that was written here."""
        return self.register.life if self.register and self.here else None

    def set(self, write: Write, now: float) -> bool:
        """Compare and set; return True if it was written. A copy takes nothing but another life: a writer that does not know
        yet that the store is a copy would make a second state of an existing version."""
        if write.token != self.token:
            return False
        if self.register is not None and not self.here and write.state.life == self.register.life:
            return False
        self.register, self.here = write.state, True
        self.past.append((now, write.state))
        return True

    def propose(self, node: Node, proposal: Proposal) -> int:
        """Put down; how many have been put down of its kind."""
        self.proposals[node] = proposal
        self.proposed[proposal.like] += 1
        return self.proposed[proposal.like]

    def proposals_of(self, nodes: tuple[Node, ...], entering: Token | None = None) -> Mapping[Node, Proposal]:
        asked = {node: self.proposals[node] for node in nodes if node in self.proposals}
        return {**asked, **entrants(self.proposals, entering)}

    def beat(self, node: Node, counter: int, now: float) -> None:
        pulse = self.pulses.get(node)
        if pulse is None:
            pulse = self.pulses[node] = Pulse(counter, deque(maxlen=BEATS_MAX))
        pulse.counter = counter
        pulse.at.append(now)

    def counters(self, nodes: tuple[Node, ...], now: float) -> Mapping[Node, int | None]:
        return {node: self._counter(node, now) for node in nodes}

    def _counter(self, node: Node, now: float) -> int | None:
        pulse = self.pulses.get(node)
        if pulse is None:
            return None
        if self.backend is Backend.LEASE and now - max(pulse.at[-1], self.refreshed_at) >= self.ttl:
            return None
        return pulse.counter

    def refuses_writes(self, now: float) -> bool:
        """Return True if it is away, or full."""
        return max(self.down_until, self.full_until) > now

    def goes_away(self, now: float, until: float) -> None:
        if self.down_until <= now:
            self.down_since = now
        self.down_until = self.refreshed_at = max(self.down_until, until)

    def silent_for(self, node: Node, span: float, since: float, now: float, late: float, common: float) -> bool:
        """Return True if the node was silent for `span`, and the silence ended at most `late` ago. The node began at
        `since`. An outage of the store longer than `common` silenced every node and does not count."""
        pulse = self.pulses.get(node)
        gaps: Iterable[Gap] = pairwise([since, *(pulse.at if pulse else ()), now])
        if self.down_until - self.down_since > common:
            gaps = (part for gap in gaps for part in self._around_the_outage(*gap))
        return any(after - before >= span and now - after <= late for before, after in gaps)

    def _around_the_outage(self, before: float, after: float) -> tuple[Gap, Gap]:
        return (before, min(after, self.down_since)), (max(before, self.down_until), after)

    def empties(self) -> None:
        self.register, self.here = None, True
        self.losses += 1
        self.pulses.clear()
        self.proposals = {}
        self.proposed.clear()
        self.records.clear()

    def is_restored(self, back: float) -> None:
        """It is what it was at that time: a copy of another store. But of the proposals none is lost: that is worse."""
        older = [state for at, state in self.past if at <= back]
        proposals = self.proposals
        self.empties()
        self.proposals = proposals
        if older:
            self.register, self.here = older[-1], False
