"""What a handler may answer: an edit of the register, or the outcome of its operation.

A closed union of frozen values. Edits are verbs and carry all that `apply` needs; `Sync` says until when the node waits for
the register to change, `Finish` that the operation is done, `Fail` that it cannot be: the only failure channel.
"""

from __future__ import annotations

from attrs import frozen

from ..world import Node, Profile, Verdict, Why, World
from .state import Ended


@frozen
class Arrive:
    """Take my seat: back into the round that expects me, or in line for a new one."""

    profile: Profile


@frozen
class Leave:
    """Give up my seat, and void whatever I may still have in flight."""


@frozen
class End:
    """The complete round is over; who was in it is expected in the next one."""

    round: int
    why: Why


@frozen
class Done:
    """My workers have all succeeded in this round."""

    round: int


@frozen
class Reserve:
    """I am a reserve in this round: nobody waits for my workers."""

    round: int


@frozen
class Evict:
    """These nodes are dead."""

    dead: frozenset[Node]


@frozen
class Complete:
    """The last call is over: go with those who are in."""

    round: int


@frozen
class Overdue:
    """Wait no longer for those who are still expected."""

    round: int


@frozen
class Close:
    """The job has its verdict."""

    verdict: Verdict


Edit = Arrive | Leave | End | Done | Reserve | Evict | Complete | Overdue | Close


@frozen
class Over:
    """The world that my workers run in is over; `ended` says why, as far as the register tells."""

    round: int
    ended: Ended | None


@frozen
class Settled:
    """The register says what the operation wanted it to say."""


Outcome = World | Over | Verdict | Settled


@frozen
class Sync:
    """Wait for the register to change, until this point on my clock."""

    until: float


@frozen
class Finish:
    """The operation is done."""

    outcome: Outcome


@frozen
class Fail:
    """The operation cannot be done. `verdict` tells how the job ended, when that is why."""

    why: Why
    verdict: Verdict | None = None


Action = Edit | Sync | Finish | Fail
