"""The values that the machines of the core share: nodes, worlds, verdicts and failure records.

A machine of the core (rendezvous, group, inprocess) imports this file and no other machine. So everything that two machines
must agree on is defined here. Nothing here knows a clock, a store or a process. Every value refuses bad fields at birth.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

from .derived import Memo, beside, derived
from .values import field, frozen

if TYPE_CHECKING:
    from attrs import Attribute

__all__ = [
    "NO_GENERATION",
    "NO_PLACE",
    "Ending",
    "Endpoint",
    "Fault",
    "Generation",
    "Life",
    "Member",
    "Node",
    "Notice",
    "Origin",
    "Party",
    "Profile",
    "Stacks",
    "Unfit",
    "Verdict",
    "Why",
    "World",
    "WorldId",
    "name_of",
    "world_of",
]

NAME_MAX = 256
"""Most characters of a slot, role, host, address or label. Everything that comes from a store is bounded."""
LABELS_MAX = 32
"""Most labels of one node."""
NODE_RANK = "node_rank"
"""The label with the place that the user, or a scheduler, gave a node among the nodes."""
RANK_POLICY = "rank_policy"
"""The label with the keys by which nodes are to be neighbours in the order of ranks, the widest first."""
MESSAGE_MAX = 4_096
"""Most characters of a failure record's message."""
TAIL_MAX = 20
"""Most log lines of a failure record."""
CALLSTACK_MAX = 16_384
"""Most characters of a failure record's call stack."""
NOTICE_MAX_S = 1e6
"""The longest time that a node may have until it must be gone."""
LOCAL_WORLD_SIZE_MAX = 65_536
SEEN_MAX = 256
"""Most workers of one node whose places are on record."""
SHARES_MAX = 96
"""Most shares of a node's time, by bucket and cause, that are on record. A program names some of the buckets."""
COUNT_MAX = 2**53
"""The largest count. Every JSON reader has whole numbers up to here exactly, so every node can read what one writes."""
PORT_MAX = 65_535


def _check_name(what: str, value: str) -> None:
    if not value or len(value) > NAME_MAX or not value.isprintable():
        raise ValueError(f"{what}: 1 to {NAME_MAX} printable characters, not {value[: NAME_MAX + 1]!r}")


def _check_between(what: str, value: int, low: int, high: int | None) -> None:
    if value < low or (high is not None and value > high):
        bounds = f"at least {low}" if high is None else f"{low} to {high}"
        raise ValueError(f"{what}: {bounds}, not {value}")


def _name(instance: object, attribute: Attribute[str], value: str) -> None:
    _check_name(attribute.name, value)


def _text_or_none(instance: object, attribute: Attribute[str], value: str) -> None:
    if value:
        _check_name(attribute.name, value)


def _between(low: int, high: int | None = None) -> Any:
    def check(instance: object, attribute: Attribute[int], value: int) -> None:
        _check_between(attribute.name, value, low, high)

    return check


class _Node(NamedTuple):
    slot: str
    incarnation: int


class Node(_Node):
    """One agent. `slot` names its place: a supervisor's index, or its address with a random id. `incarnation` tells the
    successive agents of one slot apart: it is the agent's start time.

    Incarnations are compared within a slot only. The later one replaces the earlier. A node is a tuple and no attrs value,
    because it is the key of nearly every mapping of the core: tuples hash and compare without a call in Python. That saves
    5 % of a simulation.
    """

    __slots__ = ()

    def __new__(cls, slot: str, incarnation: int) -> Node:
        _check_name("slot", slot)
        _check_between("incarnation", incarnation, 0, COUNT_MAX)
        return super().__new__(cls, slot, incarnation)

    def __str__(self) -> str:
        return f"{self.slot}#{self.incarnation}"


_MADE_UP = re.compile(r".+/(torchrun-)?[0-9a-f]{8}")
"""The slot of an agent that was given no node id: its address, and digits of its own."""


def name_of(node: Node, host: str, labels: tuple[tuple[str, str], ...] = ()) -> str:
    """Return what people call a node: the id that it was given, else its host. A node rank (of its `labels`) is no id."""
    has_id = not _MADE_UP.fullmatch(node.slot) and not (labels and dict(labels).get(NODE_RANK) == node.slot)
    return node.slot if has_id or not host else host


class _Life(NamedTuple):
    nonce: str
    epoch: int


class Life(_Life):
    """One chain of versions of a register, named by the nonce of the write that began it.

    Genesis begins the life of epoch 1. A restore, after the store has lost the register, begins one with a higher epoch. A
    life is a tuple, as a node is: it is compared at every answer.
    """

    __slots__ = ()

    def __new__(cls, nonce: str, epoch: int = 1) -> Life:
        _check_name("nonce", nonce)
        _check_between("epoch", epoch, 1, COUNT_MAX)
        return super().__new__(cls, nonce, epoch)


class _WorldId(NamedTuple):
    life: Life
    round: int


class WorldId(_WorldId):
    """The identity of a world: the life in which it was completed, and its round. A restore keeps it."""

    __slots__ = ()

    def __new__(cls, life: Life, round: int) -> WorldId:
        _check_between("round", round, 0, None)
        return super().__new__(cls, life, round)


class _Generation(NamedTuple):
    job: str
    round: int


class Generation(_Generation):
    """The name of the processes that live side by side in a job: the round since which none of its rounds has failed.

    A round that ends otherwise keeps the generation. `job` is the nonce of genesis, so two jobs have none in common.
    """

    __slots__ = ()

    def __new__(cls, job: str, round: int) -> Generation:
        _check_between("round", round, 0, COUNT_MAX)
        return super().__new__(cls, job, round)


NO_GENERATION = Generation("", 0)


class Why(Enum):
    """Why a round ended, an operation failed or a job closed. The register and the reports spell it by its value."""

    FAILED = "failed"
    """A worker failed. That costs one restart."""
    LOST = "lost"
    """A member fell silent for a TTL."""
    LEFT = "left"
    """A member left on purpose (signal, drain)."""
    UPSCALE = "upscale"
    """A newcomer waits and there is room."""
    FENCED = "fenced"
    """A member stopped its workers because the store did not acknowledge its heartbeat."""

    DONE = "done"
    """Every worker of every member succeeded."""
    FRUITLESS = "no progress"
    """As many rounds in a row as the limits allow were ended by losses, and none of them grew old."""
    CANNOT_START = "cannot start"
    """The program cannot be executed, so a restart cannot help."""
    ASKED = "asked"
    """A person or program asked for the end."""
    OPERATOR = "by an operator"
    """An operator, who is no node of the job, asked for the end."""

    CLOSED = "closed"
    """The job has its verdict."""
    SUPERSEDED = "superseded"
    """A later incarnation of this node's slot is seated."""
    BEHIND = "its clock is behind"
    """A later incarnation of this node's slot has a seat and is dead. Its successor has a later one."""
    TIMEOUT = "timeout"
    """No round was complete before the join deadline."""
    UNCONFIRMED = "unconfirmed"
    """The register did not answer before the operation's deadline."""
    UNSERVED = "cannot serve the store"
    """This node is to serve the store, and no process of it has ever answered."""
    LIMITS = "limits"
    """The limits in the register differ from this agent's."""
    PROGRAM = "another program"
    """Other nodes of this role run a program of another name."""
    ARGUMENTS = "other arguments"
    """Another job runs here, by its program's arguments, and has no seat for this node."""
    LOOPBACK = "a loopback address"
    """Nodes of several hosts cannot meet where one of them has an address that leads each host to itself."""
    UNFIT = "unfit"
    """A check of this node says that no worker may run on it, it has failed too often, or its workers cannot be started."""
    ILLEGAL = "illegal state"
    """The register holds a state that no node may write."""

    NO_JOB = "no such job"
    """An operator asks something of a job that is not there."""
    NO_NODE = "no such node"
    """An operator asks something of a node that has no seat."""
    NEEDED = "the job needs the node"
    """An operator's drain is refused: without the node the others would be below the minimum."""

    __hash__ = object.__hash__  # as for the register's Status


class Ending(Enum):
    """How a job ends. It ends alike for all nodes."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    LIMIT = "limit"


@frozen
class Verdict:
    """The end of a job, as the register holds it. The write of node `by` in `round` decided it, because of `why`."""

    ending: Ending
    round: int = field(validator=_between(0))
    by: Node
    why: Why


@frozen
class Endpoint:
    """The address and port that a node reserved for one round. Rank 0's become MASTER_ADDR and MASTER_PORT."""

    address: str = field(validator=_name)
    port: int = field(validator=_between(1, PORT_MAX))


def _labels(instance: object, attribute: Attribute[Any], value: tuple[tuple[str, str], ...]) -> None:
    if not value:
        return
    texts = [text for pair in value for text in pair]
    if len(value) > LABELS_MAX or any(len(text) > NAME_MAX or not text.isprintable() for text in texts):
        raise ValueError(f"labels: at most {LABELS_MAX}, each key and value at most {NAME_MAX} printable characters")
    if not all(key for key, _ in value):
        raise ValueError("labels: a key is not empty")
    if list(value) != sorted(dict(value).items()):
        raise ValueError("labels: keys must be unique and sorted")


NO_PLACE = (0,)


@frozen
class Party:
    """The ranks that one node started together: a name that they share, and how many they are."""

    name: str = field(validator=_name)
    size: int = field(validator=_between(1, LOCAL_WORLD_SIZE_MAX))


@frozen
class Profile:
    """The description that a node gives of itself when it arrives. Rank policies may read it."""

    endpoint: Endpoint
    local_world_size: int = field(default=1, validator=_between(1, LOCAL_WORLD_SIZE_MAX))
    role: str = field(default="default", validator=_name)
    host: str = field(default="localhost", validator=_name)
    labels: tuple[tuple[str, str], ...] = field(default=(), validator=_labels)
    program: str = field(default="", validator=_text_or_none)
    """The name of the program that its workers run; empty where nobody says it."""
    content: str = field(default="", validator=_text_or_none)
    """A checksum of that program's file; empty where there is none."""
    arguments: str = field(default="", validator=_text_or_none)
    """A checksum of that program's arguments; empty where nobody compares them."""
    link_port: int = field(default=0, validator=_between(0, PORT_MAX))
    """The port of `endpoint`'s address at which other agents watch this one; 0: they judge it by its heartbeats alone."""
    party: Party | None = None
    """Those with whom it comes; None: it comes alone."""
    serves_store: bool | None = None
    """True: its agent serves the store, which ends with the agent. In a round in which the node is the first, its agent
    serves the workers' store too, unless workers restart alone. The core decides nothing by it."""

    @property
    def has_loopback(self) -> bool:
        """True if its address leads each host to itself."""
        return self.endpoint.address in ("localhost", "::1") or self.endpoint.address.startswith("127.")

    @property
    def given_place(self) -> tuple[int, ...]:
        """The place that the node was given among the nodes. A node without one counts as 0, as in torch's static
        rendezvous."""
        if not self.labels:
            return NO_PLACE
        numbers = dict(self.labels).get(NODE_RANK, "0").split(".")
        return tuple(map(int, numbers)) if all(each.isascii() and each.isdigit() for each in numbers) else NO_PLACE

    @property
    def rank_keys(self) -> tuple[str, ...]:
        """The keys by which nodes are to be neighbours in the order of ranks; nothing for no rank policy."""
        text = dict(self.labels).get(RANK_POLICY, "") if self.labels else ""
        return tuple(text.split(",")) if text else ()

    def groups(self, keys: tuple[str, ...]) -> tuple[str, ...]:
        """Return the group of this node by each key: its host, its role, or its value of that label."""
        known = {**dict(self.labels), "host": self.host, "role": self.role}
        return tuple(known.get(key, "") for key in keys)


_LATER = "+"


def came_later(rank: int, round: int) -> str:
    """Return the slot of a rank whose node came in a later round: its number then may be another rank's too."""
    return f"{rank}{_LATER}{round}"


def came_in(slot: str) -> tuple[str, int]:
    """Return the number of the rank with this slot, and the round in which its node came; 0 if it came with the first."""
    number, _, round = slot.partition(_LATER)
    return (number, int(round or 0)) if (round or "0").isdecimal() else (slot, 0)


def natural(name: str) -> tuple[str | int, ...]:
    """Return the key by which names are sorted as people sort them: the numbers in them are compared as numbers."""
    texts = _NUMBER.split(name)  # text and number take turns, also where a name begins with a number
    return tuple([int(text) if place % 2 else text for place, text in enumerate(texts)])


_NUMBER = re.compile(r"(\d+)")


def rank_policy_label(keys: tuple[str, ...]) -> tuple[str, str]:
    """Return the label with these keys of a rank policy."""
    return RANK_POLICY, ",".join(keys)


def place_label(place: tuple[int, ...]) -> tuple[str, str]:
    """Return the label with this place: a user gives one number, Slurm that of the node and that of the task."""
    return NODE_RANK, ".".join(map(str, place))


def _span(instance: object, attribute: Attribute[float], value: float) -> None:
    if not 0 <= value <= NOTICE_MAX_S:
        raise ValueError(f"{attribute.name}: 0 to {NOTICE_MAX_S:g} seconds, not {value}")


@frozen
class Notice:
    """The word that a node must be gone this many seconds after it hears of that. `source` says who or what wants it, for
    people."""

    deadline_s: float = field(validator=_span)
    source: str = field(validator=_name)


@frozen
class Member:
    """One node of a world, with the profile it arrived with."""

    node: Node
    profile: Profile


@frozen
class World:
    """The members of a complete round, in rank order: the nodes, and the profile of each.

    `failures` is the number of restarts that the job has spent. Every member has the same number.
    """

    id: WorldId
    nodes: tuple[Node, ...]
    profiles: tuple[Profile, ...]
    failures: int = field(default=0, validator=_between(0))
    policy: str = ""
    """The digest of the ranks that the completer's rank policy gave; empty if the completer had no policy."""
    generation: Generation = NO_GENERATION
    memo: Memo = beside()

    @property
    def round(self) -> int:
        return self.id.round

    @derived
    def members(self) -> tuple[Member, ...]:
        """The nodes with their profiles. Of a thousand it takes longer to make them than to judge the world."""
        return tuple(map(Member, self.nodes, self.profiles))


def world_of(
    id: WorldId,
    members: Collection[Member],
    failures: int = 0,
    policy: str = "",
    generation: Generation = NO_GENERATION,
) -> World:
    """Return the world of these members."""
    nodes, profiles = tuple(each.node for each in members), tuple(each.profile for each in members)
    return World(id, nodes, profiles, failures, policy, generation)


def _encodable(text: str) -> str:
    """Return the text with escapes in place of surrogates, which no store takes: a name that is not UTF-8 has some."""
    return text.encode(errors="backslashreplace").decode()


def _message(text: str) -> str:
    return _encodable(text[:MESSAGE_MAX])[:MESSAGE_MAX]


def _callstack(text: str) -> str:
    """Return the end of the call stack, which says most."""
    return _encodable(text[-CALLSTACK_MAX:])[-CALLSTACK_MAX:]


def _tail(lines: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(_message(line) for line in lines[-TAIL_MAX:])


class Origin(Enum):
    """How a failure became known."""

    RAISE = "raise"
    """The worker reported an uncaught exception when it was raised."""
    ENDING = "ending"
    """The worker had reported that its interpreter began to end, before it ended with a failure."""
    END = "end"
    """By the end of the process alone."""


def _point_in_time(instance: object, attribute: Attribute[float], value: float) -> None:
    if not 0 <= value <= COUNT_MAX:
        raise ValueError(f"{attribute.name}: 0 to {COUNT_MAX} seconds, not {value}")


@frozen
class Fault:
    """The failure record of one worker. It is bounded, and all of it can be UTF-8, because it travels through a store.

    `exit_code` is that of subprocess: negative for a signal; None: the worker had not ended when this was put on record. A
    second record then completes the first. `after_s` is how long the worker had run, `world_size` is the number of workers
    in the round. `host` and `when` (the host's wall clock) are for people, and decide nothing. `remark` is
    what the host knows of the death beyond the exit code. `callstack` and `message` come from the error file on that host.
    """

    node: Node
    round: int = field(validator=_between(0))
    rank: int = field(validator=_between(0))
    local_rank: int = field(validator=_between(0))
    pid: int
    exit_code: int | None
    after_s: float
    world_size: int = field(default=1, validator=_between(1))
    host: str = field(default="", converter=_message)
    when: str = field(default="", converter=_message)
    message: str = field(default="", converter=_message)
    where: str = field(default="", converter=_message)
    log: str = field(default="", converter=_message)
    tail: tuple[str, ...] = field(default=(), converter=_tail)
    remark: str = field(default="", converter=_message)
    callstack: str = field(default="", converter=_callstack)
    error_file: str = field(default="", converter=_message)
    origin: Origin = Origin.END
    at_s: float = field(default=0.0, validator=_point_in_time)
    """When the worker raised, began to end, or died, on its host's monotonic clock: compared within one node only. 0: not
    known."""


def _places(places: tuple[tuple[int, str], ...]) -> tuple[tuple[int, str], ...]:
    return tuple((rank, text[:NAME_MAX]) for rank, text in places[:SEEN_MAX])


def _printable_places(instance: object, attribute: Attribute[Any], value: tuple[tuple[int, str], ...]) -> None:
    for rank, text in value:
        _check_between("rank", rank, 0, COUNT_MAX)
        _check_name("place", text)


@frozen
class Stacks:
    """The places of one node's workers when they were stopped, because a worker failed or a node was lost, or while a hang
    is suspected: by rank, one line each like "in all_reduce (train.py:120 in step)". It is bounded and printable, because it
    travels through a store.
    """

    node: Node
    round: int = field(validator=_between(0))
    places: tuple[tuple[int, str], ...] = field(default=(), converter=_places, validator=_printable_places)


def _name_part(text: str) -> str:
    return _encodable(text[:NAME_MAX])[:NAME_MAX]


@frozen
class Unfit:
    """A node that stays out of the job, because its check found it unfit for work or it cannot start workers. It is bounded,
    because it travels through a store. `host` and `when` (the host's wall clock) are for people."""

    node: Node
    host: str = field(converter=_name_part)
    when: str = field(converter=_name_part)
    reason: str = field(converter=_message)
