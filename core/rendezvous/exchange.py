"""What goes between the client and whoever drives it: inputs, asks and notices.

Three closed unions of frozen values. An input is what happened, an ask is what the driver does next, and a notice is what
the driver passes on to the owner of the node (the agent, a wrapped call).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from ..values import frozen
from ..world import Life, Node
from .actions import Outcome, Proposal
from .agenda import Prepared, Request
from .context import Handler, Held
from .errands import Errand
from .links import Says
from .state import RendezvousState
from .turn import Gather, Observe, Propose, Raise, Wait, Write

# --- inputs: answers to a question


@frozen
class Shown:
    """The answer to `Look` and `Write`: the register, None when nothing was ever written. `here`: it was written in the very
    store that answered, and not in one that it is a copy of (restored from a backup)."""

    state: RendezvousState | None
    here: bool = True

    @property
    def life(self) -> Life | None:
        """The life that stands where it was written."""
        return self.state.life if self.state and self.here else None


@frozen
class Heartbeats:
    """The answer to `Observe`: the last counter of each node, None for one that has none, and the life that stands beside
    them."""

    counters: Mapping[Node, int | None]
    life: Life | None


@frozen
class Counted:
    """The answer to `Propose`: how many have put down a proposal of its kind, this one included."""

    count: int


@frozen
class Proposals:
    """The answer to `Gather`: the last proposals of those of the nodes that have any, and of those that enter."""

    of: Mapping[Node, Proposal]


@frozen
class Did:
    """An errand is done."""


@frozen
class Unknown:
    """A write was sent and its answer never came: it may have landed, may still land, or never."""


@frozen
class Silent:
    """The question has no answer; for a write: it did not land and never will."""

    text: str = ""


@frozen
class NoState:
    """The store answered with something else than a register, or will never answer."""

    text: str
    is_unserved: bool | None = None
    """True: this node is to serve the store and cannot, and the store has never answered. A trace leaves out None."""


Answer: TypeAlias = Shown | Heartbeats | Counted | Proposals | Did | Unknown | Silent | NoState

# --- inputs: what may come at any time


@frozen
class Submitted:
    """The owner wants these done, after what it wanted before."""

    items: tuple[Request | Errand | Prepared, ...]


@frozen
class Pushed:
    """The waiter saw the register change: it shows this, by a request that was sent at `sent_at`."""

    state: RendezvousState | None
    sent_at: float
    here: bool = True


@frozen
class Missed:
    """The waiter could not see the register."""

    why: Silent | NoState


@frozen
class Linked:
    """The link to `node` tells something of it. My own last acknowledged heartbeat was sent at `beaten_at`; None: never."""

    node: Node
    says: Says
    beaten_at: float | None


@frozen
class Standstill:
    """No worker of this node has made progress since this time on my clock; None: one has, since the last such word."""

    since: float | None


@frozen
class Advance:
    """A worker of this round on my node has passed all steps that were reached before it."""

    round: int


@frozen
class Woke:
    """The process stood still for longer than a TTL."""


# --- inputs: while no question is out


@frozen
class Drawn:
    """The answer to `Draw`: a number in [0, 1)."""

    jitter: float


@frozen
class Passed:
    """Nothing came until the ask's `until`; also the first input of all."""


Input: TypeAlias = Answer | Submitted | Pushed | Missed | Linked | Standstill | Advance | Woke | Drawn | Passed

ANSWERS = (Shown, Heartbeats, Counted, Proposals, Pushed)
"""What the store answers to a question about the register, or tells by itself."""

UNANSWERED = (Silent, Unknown)
"""What an agent is fed where the store did not answer."""

# --- asks


@frozen
class Look:
    """Read the register."""


@frozen
class Pause:
    """Ask nothing until then: the store does not answer."""

    until: float


@frozen
class Draw:
    """Draw a number: something begins, and the core draws no chance."""


@frozen
class Idle:
    """Nothing is to be done until something is submitted."""


Question: TypeAlias = Look | Write | Observe | Propose | Gather | Errand
"""An ask that is out until its answer comes."""
Rest: TypeAlias = Wait | Pause | Draw | Idle
"""An ask that any input interrupts, but for `Woke`."""
Ask: TypeAlias = Question | Rest

# --- notices


@frozen
class Told:
    """What came of an operation."""

    handler: Handler
    answer: Outcome | Raise
    held: Held
    """What this node remembers, the answer included."""


@frozen
class Seen:
    """The register as this node now holds it."""

    state: RendezvousState
    at: float


@frozen
class Restored:
    """The store lost what this node held; now `after` stands: written back by this node, or what was found instead."""

    before: RendezvousState
    found: RendezvousState | None
    after: RendezvousState
    by_me: bool
    at: float


@frozen
class StoreSilent:
    """The store does not answer, or not with a register; whatever must be asked of it waits."""

    text: str
    at: float


@frozen
class StoreBack:
    """It answers again."""

    at: float


Notice: TypeAlias = Told | Seen | Restored | StoreSilent | StoreBack
