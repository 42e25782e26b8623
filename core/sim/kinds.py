"""What can be done to a simulated world: one row for each kind of operation.

A row says what the operation takes, how it is drawn, and what a world may need to recover from it. What the operation does
is said once more, in `faults`: by its function there, or by whatever obeys the mark that it leaves on its node.
"""

from __future__ import annotations

from enum import Enum

from ..values import frozen

GAPS_S = (0.001, 0.02, 0.02, 0.3, 1.0, 2.5, 6.0)
"""Seconds between two operations."""
AWAY = ("detect", "stop", "gather", "grow")
"""What a world needs (`recoveries.PARTS`) that may hold a node, or all of them, for lost."""
COMES = ("check", "stop", "gather", "grow")
"""What it needs when an agent starts."""


class On(Enum):
    """What an operation is done to."""

    TIME = "time"
    SLOT = "slot"
    """A place where an agent starts, even if the last one still runs there."""
    NODE = "node"
    """The latest agent of a slot that lives."""
    STORE = "store"
    JOB = "job"


class Pool(Enum):
    """The operations that are drawn together (`swarm`)."""

    COMMON = "common"
    RARE = "rare"
    """These end a job."""
    STRANGE = "strange"
    """Starts of agents that the job does not take, or not at once."""
    LOSSES = "losses"
    """These take the store's memory."""
    LINKS = "links"
    """These befall links, where nodes keep them."""
    NOTICES = "notices"
    CHECKS = "checks"
    """These befall the check of a node, where it has one."""


class Needs(Enum):
    """What a node must have, or the operation has no effect."""

    NOTHING = "nothing"
    LINKS = "links"
    CHECKS = "checks"
    NOTICES = "notices"
    WORKERS = "workers"
    WORK = "work"
    """Workers that do not hang, and are not a reserve's."""


class Costs(Enum):
    """What an operation may cost a node that is well (R12)."""

    NOTHING = "nothing"
    """Neither are its workers stopped, nor is it delayed."""
    A_QUESTION = "a question"
    """With the fence that may be too much: no heartbeat counts until the node knows the new life."""
    ITS_WORLD = "its world"


@frozen(kw_only=True)
class Row:
    """What is known of a kind of operation."""

    on: On = On.NODE
    pool: Pool | None = Pool.COMMON
    """None: it is drawn by itself."""
    weight: int = 1
    """How much more often than others of its pool it is drawn. The common ones have a weight that each run draws."""
    spans: tuple[float, ...] = ()
    """How long it may last, or how far it may reach; empty for an operation that takes no span."""
    slowed: bool = False
    """The span grows with the spans of a patient world."""
    needs: Needs = Needs.NOTHING
    recovery: tuple[str, ...] = ()
    """The parts of the recovery from it, beside those that every recovery has."""
    deafens: bool = False
    """It may keep a node from hearing that another one is silent."""
    costs: Costs = Costs.ITS_WORLD
    stays: bool = False
    """It stands as a mark on its node until it comes, or is taken away."""


def _away(*spans: float) -> Row:
    """Return the row of what keeps a node, for this long, from others that may hold it for lost."""
    return Row(spans=spans, slowed=True, recovery=AWAY, deafens=True)


def _question(*spans: float, recovery: str = "again") -> Row:
    """Return the row of what waits for a node's next question, and costs it that question."""
    return Row(stays=True, spans=spans, recovery=(recovery,), deafens=True, costs=Costs.A_QUESTION)


def _outage(*spans: float) -> Row:
    return Row(on=On.STORE, spans=spans, slowed=True, recovery=("stop", "gather", "grow"), deafens=True)


def _loss(*spans: float) -> Row:
    return Row(on=On.STORE, pool=Pool.LOSSES, spans=spans, slowed=True, recovery=AWAY, deafens=True)


def _start(pool: Pool = Pool.COMMON, more: tuple[str, ...] = ()) -> Row:
    return Row(on=On.SLOT, pool=pool, recovery=(*COMES, *more))


def _link(*spans: float, recovery: tuple[str, ...] = (), costs: Costs = Costs.NOTHING) -> Row:
    return Row(pool=Pool.LINKS, needs=Needs.LINKS, spans=spans, slowed=True, recovery=recovery, costs=costs)


def _check(weight: int = 1, more: tuple[str, ...] = ()) -> Row:
    """Return the row of what becomes of a node's next check."""
    recovery = ("check", *more)
    return Row(stays=True, pool=Pool.CHECKS, weight=weight, needs=Needs.CHECKS, recovery=recovery, costs=Costs.NOTHING)


class Kind(Enum):
    """The operations; the value is the verb of the line."""

    row: Row

    def __new__(cls, verb: str, row: Row) -> Kind:
        made = object.__new__(cls)
        made._value_ = verb
        made.row = row
        return made

    PASS = "pass", Row(on=On.TIME, pool=None, spans=GAPS_S, slowed=True)
    """Time passes: this many seconds."""
    CRASH = "crash", Row(recovery=("detect", "stop", "gather"))
    """The node is gone: agent and workers at once."""
    PAUSE = "pause", _away(0.5, 2.5, 4.0, 7.0, 15.0)
    """The agent's process stands still for this long; its workers run on."""
    KILL = "kill", Row(spans=(0.05, 0.5, 1.0, 3.0), recovery=("detect", "stop", "gather"))
    """The agent is killed; its workers are dead so much later, and its port refuses connections from then on."""
    PAUSE_HEART = "pause-heart", _away(2.5, 4.0, 7.0, 15.0)
    """The agent's heart stands still for this long; the agent and its loop go on."""
    PAUSE_LOOP = "pause-loop", _away(0.5, 2.5, 7.0, 15.0)
    """The loop of the agent's rendezvous stands still for this long; its heart beats on."""
    PAUSE_WAITER = "pause-waiter", _away(0.3, 2.5, 7.0, 15.0)
    """The agent's waiter stands still for this long. What it was shown before comes as late."""
    SLOW = "slow", Row(stays=True, spans=(0.0, 0.1, 0.6, 1.5), recovery=("delays", *AWAY), deafens=True)
    """Every message of the node takes so much longer, each way, from now on (0: no longer)."""
    CUT = "cut", _away(0.5, 3.0, 6.5, 12.0)
    """Nothing passes between the node and the store for this long."""
    CUT_OUT = "cut-out", _away(1.0, 4.0, 8.0)
    """What the node sends is lost for this long."""
    CUT_IN = "cut-in", _away(1.0, 4.0, 8.0)
    """What is sent to the node is lost for this long."""
    LOSE_REPLY = "lose-reply", _question()
    """The answer to the node's next write is lost, after it was carried out."""
    LATE_WRITE = "late-write", _question(0.05, 1.0, 3.0, 8.0)
    """The node's next write arrives so much later."""
    LATE_REPLY = "late-reply", _question(0.05, 0.5, 1.5, 3.0)
    """The answer to the node's next question arrives so much later, after others perhaps."""
    TWICE = "twice", Row(stays=True, spans=(0.01, 0.5, 3.0, 12.0), deafens=True, costs=Costs.NOTHING)
    """The node's next write arrives once more, so much later."""
    GAP = "gap", _question(recovery="look")
    """The node is not told of the register's next change; its next look finds it."""
    OUTAGE = "outage", _outage(0.5, 3.0, 8.0)
    """The store is away for this long, and remembers all."""
    FULL = "full", _outage(0.5, 3.0, 8.0)
    """The store takes no write for this long, as an etcd without space: it answers reads, and hears heartbeats."""
    FAIL = "fail", Row(needs=Needs.WORK, recovery=("check", "stop"))
    """A worker of the node exits with 1."""
    KILL_WORKER = "kill-worker", Row(needs=Needs.WORKERS, recovery=("check", "stop"))
    """A worker of the node is killed by SIGKILL, which the agent did not send: the system was out of memory, perhaps."""
    SUCCEED = "succeed", Row(needs=Needs.WORK, recovery=("leave", "stop"))
    """All workers of the node that live exit with 0."""
    HANG = "hang", Row(stays=True, needs=Needs.WORKERS, recovery=("stop",), costs=Costs.NOTHING)
    """The node's workers neither succeed nor heed SIGTERM from now on."""
    ADVANCE = "advance", Row(needs=Needs.WORK, costs=Costs.NOTHING)
    """A worker of the node passes all steps that were reached before its world."""
    DRAIN = "drain", Row(recovery=("leave", "stop", "gather"))
    """The agent is sent SIGTERM."""
    START = "start", _start()
    """An agent starts on this slot: a new incarnation, even if the last one still runs."""
    UNSTARTABLE = "unstartable", Row(stays=True, pool=Pool.RARE, recovery=("stop", "gather"), costs=Costs.NOTHING)
    """No worker of the node can be started the next time; where there is a seed, perhaps only for what the host lacks."""
    CANCEL = "cancel", Row(on=On.JOB, pool=Pool.RARE, recovery=("stop",))
    """An operator closes the job."""
    START_BACK = "start-back", _start(Pool.STRANGE, ("behind",))
    """The same, by a clock that was set back over a reboot: its incarnation is an earlier one than the last."""
    START_OTHER = "start-other", _start(Pool.STRANGE)
    """An agent starts that was given other limits."""
    START_STRANGER = "start-stranger", _start(Pool.STRANGE)
    """An agent starts whose workers run another program."""
    START_LOCAL = "start-local", _start(Pool.STRANGE)
    """An agent starts whose address leads each host to itself."""
    START_UNABLE = "start-unable", _start(Pool.STRANGE, ("leave",))
    """An agent starts whose workers cannot be started: it finds that before it joins."""
    START_NEXT = "start-next", _start(Pool.STRANGE, ("join",))
    """An agent of another version starts, which reads and writes another format of the register."""
    EMPTY = "empty", _loss()
    """The store has forgotten everything."""
    OLDER = "older", _loss(0.01, 0.5, 3.0, 12.0, 60.0)
    """The store is restored from a backup that was made this long ago."""
    UNLINK = "unlink", _link()
    """Every link from and to the node breaks; new ones pass."""
    REFUSE = "refuse", _link(0.05, 1.0, 6.0, recovery=AWAY, costs=Costs.ITS_WORLD)
    """The network breaks the links to the node, and refuses new ones in its name for this long."""
    MUTE = "mute", _link(0.5, 4.0, 12.0)
    """Links from and to the node carry nothing for this long, and nobody is told."""
    NOTICE = (
        "notice",
        Row(
            pool=Pool.NOTICES,
            weight=2,
            needs=Needs.NOTICES,
            spans=(0.5, 3.0, 8.0, 20.0),
            slowed=True,
            recovery=("leave", "stop", "gather", "grow"),
        ),
    )
    """The node is drained: it must be gone this many seconds later. It hears that on its host, or an operator tells the
    register."""
    DRAIN_SEAT = (
        "drain-seat",
        Row(
            on=On.JOB,
            pool=Pool.NOTICES,
            spans=(0.5, 3.0, 8.0, 20.0),
            slowed=True,
            recovery=("leave", "stop", "gather", "grow"),
        ),
    )
    """An operator drains any node that the register names, dead or gone perhaps, or one that it names no longer: it must be
    gone this many seconds later."""
    FIND_UNFIT = (
        "find-unfit",
        Row(
            pool=Pool.NOTICES,
            needs=Needs.NOTICES,
            spans=(0.5, 3.0, 8.0),
            slowed=True,
            recovery=("leave", "stop", "gather", "grow"),
        ),
    )
    """The check of the node while its job runs finds it unfit: it is drained, and must be gone this many seconds later."""
    UNFIT = "unfit", _check(2, ("leave", "gather"))
    """The node's next check finds it unfit."""
    HANG_CHECK = "hang-check", _check()
    """The node's next check does not end by itself. It is killed at its time-out, and the node joins."""
    BREAK_CHECK = "break-check", _check()
    """The node's next check ends with an exit code that says nothing of the node, and the node joins."""

    __hash__ = object.__hash__  # as for the register's Status

    @property
    def takes_span(self) -> bool:
        return self.row.spans != ()

    @property
    def takes_node(self) -> bool:
        return self.row.on in (On.NODE, On.SLOT)


def pool(which: Pool) -> tuple[Kind, ...]:
    """Return the operations of this pool, each as often as it weighs."""
    return tuple(kind for kind in Kind if kind.row.pool is which for _ in range(kind.row.weight))
