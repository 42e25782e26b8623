"""The answers of a handler: an edit of the register, or the outcome of its operation.

They form a closed union of frozen values. Edits are verbs and carry all that `apply` needs. `Sync` says until when the node
waits for the register to change. `Finish` says that the operation is done. `Fail` says that it cannot be done, and is the
only way in which a handler fails.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..values import frozen
from ..world import Node, Notice, Profile, Verdict, Why, World
from .state import Ended, Failing, Token


@frozen
class Arrive:
    """Take my seat: in the round that expects me back, or in line for a new one."""

    profile: Profile


@frozen
class Leave:
    """Give up my seat, and void every write of mine that may still land."""


@frozen
class End:
    """End the complete round. Its members are expected in the next one. `failing` is what a node whose failure ends it tells
    of its failures."""

    round: int
    why: Why
    failing: Failing | None = None


@frozen
class Done:
    """Mark my seat DONE: all my workers have succeeded in this round."""

    round: int


@frozen
class Reserve:
    """Mark my seat RESERVE: in this round nobody waits for my workers."""

    round: int


@frozen
class Evict:
    """Take the seats of these dead nodes away."""

    dead: frozenset[Node]


@frozen
class Complete:
    """Complete the round with its participants, because the last call is over."""

    round: int


@frozen
class Overdue:
    """Wait no longer for the expected nodes."""

    round: int


@frozen
class Proceed:
    """The complete round makes progress: the fruitless ones before it count no longer, and it is none itself."""

    round: int


@frozen
class Close:
    """Close the job with this verdict."""

    verdict: Verdict


@frozen
class Drain:
    """Give this node notice: it leaves its world in time, and no world waits for it again."""

    node: Node
    notice: Notice


@frozen
class Proposal:
    """What a node has to write, left for somebody to write with what others have; it counts in this era only."""

    era: Token
    edit: Arrive | Done
    enters: bool = False
    """The node has no seat, and asks for one in the open round."""

    @property
    def like(self) -> str:
        """What names all proposals of this kind in this era, in a store that counts them."""
        if self.enters:
            return entering_in(self.era)
        kind = "arrive" if isinstance(self.edit, Arrive) else "done"
        return f"{self.era.life.epoch}-{self.era.version}-{kind}"


def entering_in(era: Token) -> str:
    """Return what names all proposals to enter in this era."""
    return f"{era.life.epoch}-{era.version}-enter"


def entrants(proposals: Mapping[Node, Proposal], era: Token | None) -> Mapping[Node, Proposal]:
    """Return those of these proposals that are to enter in this era (None: in none)."""
    return {node: each for node, each in proposals.items() if each.enters and each.era == era}


@frozen
class Together:
    """What these nodes propose, mine among them, in one write. A proposal that is void or has come true is passed over."""

    proposals: Mapping[Node, Proposal]


Edit = Arrive | Leave | End | Done | Reserve | Evict | Complete | Overdue | Proceed | Close | Drain | Together


@frozen
class Over:
    """The world that my workers run in is over. `ended` says why, if the register tells."""

    round: int
    ended: Ended | None


@frozen
class Settled:
    """The register shows what the operation wanted it to show."""


Outcome = World | Over | Verdict | Settled


@frozen
class Sync:
    """Wait for the register to change, until this time on my clock."""

    until: float


@frozen
class Finish:
    """The operation is done."""

    outcome: Outcome


@frozen
class Fail:
    """The operation cannot be done. `verdict` tells how the job ended, if that is the reason."""

    why: Why
    verdict: Verdict | None = None


Action = Edit | Sync | Finish | Fail
