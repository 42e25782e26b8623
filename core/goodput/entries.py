"""What an account enters: pieces of a node's time, each in one bucket for one reason, and what the node knows of how rounds
ended, by which a book turns a reason into a cause. Times are whole microseconds on the node's own clock, so sums are exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TypeAlias

from ..values import frozen
from ..world import Node, Why

BUCKETS = (
    "training",
    "running",
    "recomputed",
    "hanging",
    "starting",
    "stopping",
    "checking",
    "waiting",
    "spare",
    "finished",
    "unknown",
)
"""What a node may do, in the order in which people read it; beside these, busy spans have buckets of their names. `running`
is the training of a program that says nothing of its progress."""
TRAINING = ("training", "running")


def micros(at: float) -> int:
    """Return a time in whole microseconds. Each time is rounded once, and never a span."""
    return round(at * 1_000_000)


class Kind(Enum):
    """The kinds of causes."""

    NONE = "none"
    """The node trains."""
    FIRST = "first start"
    """The node is on its way into its first world, which no end of a round made it join."""
    FAILURE = "failure"
    """A worker failed, or could not be started."""
    HANG = "hang"
    """No worker made progress, and the hang watch ended one."""
    LOSS = "loss"
    """A node fell silent, or its agent died."""
    UPSCALE = "upscale"
    """A node waited and there was room."""
    DRAIN = "drain"
    """A node left because it was drained."""
    STORE = "store"
    """The store did not answer, or a node stopped its workers because of that."""
    OPERATOR = "operator"
    """A person or a program told an agent to stop, or cancelled the job."""
    PROGRAM = "program"
    """The program said that it was busy."""
    SPARE = "spare"
    """The node has no place in the round."""
    END = "end of the job"
    """The workers of this node are done; others are not yet."""
    UNKNOWN = "unknown"
    """Steps are missing in the trace."""


KINDS: Mapping[Why, Kind] = {
    Why.FAILED: Kind.FAILURE,
    Why.LOST: Kind.LOSS,
    Why.LEFT: Kind.OPERATOR,
    Why.UPSCALE: Kind.UPSCALE,
    Why.FENCED: Kind.STORE,
    Why.FRUITLESS: Kind.LOSS,
    Why.DONE: Kind.END,
    Why.CANNOT_START: Kind.FAILURE,
    Why.ASKED: Kind.OPERATOR,
    Why.OPERATOR: Kind.OPERATOR,
    Why.CLOSED: Kind.END,
    Why.SUPERSEDED: Kind.LOSS,
    Why.BEHIND: Kind.LOSS,
    Why.TIMEOUT: Kind.LOSS,
    Why.UNCONFIRMED: Kind.STORE,
    Why.UNSERVED: Kind.STORE,
    Why.LIMITS: Kind.OPERATOR,
    Why.PROGRAM: Kind.OPERATOR,
    Why.ARGUMENTS: Kind.OPERATOR,
    Why.LOOPBACK: Kind.OPERATOR,
    Why.UNFIT: Kind.FAILURE,
    Why.ILLEGAL: Kind.STORE,
    Why.NO_JOB: Kind.OPERATOR,
    Why.NO_NODE: Kind.OPERATOR,
    Why.NEEDED: Kind.OPERATOR,
}
"""The reason of a round's end, or of a refusal -> the kind of the cause. A node that left was drained if it had notice."""

Reason: TypeAlias = Kind | int
"""Why a node does what it does: a cause that is known at once, or the round whose end made it do so."""


# --- entries ----------------------------------------------------------------------------------------------------------


@frozen
class Piece:
    """The node was in one bucket from `start` to `end`. `awaits` are the nodes that its round waited for. `job` names the
    job of a round, or of those nodes."""

    node: Node
    start: int
    end: int
    bucket: str
    reason: Reason
    job: str = ""
    awaits: tuple[Node, ...] = ()
    tail: int | None = None
    """The round whose end the node's workers made no progress before: they hung, if that end was a hang's."""


@frozen
class RoundEnd:
    """How a round ended, as one node knows it. `known_at` is the place of the register that told so; (0, 0): the node's own
    word, which gives way to that of any register."""

    job: str
    round: int
    why: Why
    by: Node | None
    lost: tuple[str, ...] = ()
    is_drain: bool = False
    known_at: tuple[int, int] = (0, 0)


@frozen
class Culprit:
    """This node ended the round for the failure of a worker of its own, of this rank; None: its workers did not start."""

    job: str
    round: int
    node: Node
    rank: int | None
    is_hang: bool = False
    """The hang watch had ended that worker."""


@frozen
class Arrival:
    """This node came into the job with the round that this one's end opened."""

    job: str
    round: int
    node: Node


@frozen
class Death:
    """A link told this node that the agent of another one, and its workers, are dead: in this round."""

    job: str
    round: int
    node: Node


@frozen
class Meeting:
    """This node met the register of this job, as the n-th one."""

    node: Node
    job: str
    number: int


Entry: TypeAlias = Piece | RoundEnd | Culprit | Arrival | Death | Meeting
