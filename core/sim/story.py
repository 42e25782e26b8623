"""A run as data: the setting of a simulated world, and the operations on it, in order.

A story says everything that makes a run: told again, it gives the same run; with an operation left out, a smaller one. So an
operation that has no effect when it comes (to fail workers that do not run) does nothing. The text of a story has one
operation per line; its first line is the setting, with what differs from `QUICK`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from enum import Enum
from functools import cache
from typing import Any

from attrs import Attribute, field, fields

from ..group import Alone
from ..group import Settings as GroupSettings
from ..inprocess.exits import CANCELLED, FINAL, HEARD, JOB_OVER
from ..rendezvous import Comparison, FailureLimit, Limits, Settings
from ..values import evolve, frozen
from ..world import LOCAL_WORLD_SIZE_MAX, Endpoint, Node, Party, Profile, World, place_label, rank_policy_label
from .kinds import Kind

OPERATIONS_MAX = 100_000
RACK = "rack"
"""The label of the nodes' racks."""
SHOWN_MAX = 80
"""The most characters of a line that an error shows, and of a word that it repeats: a longer word is in no story."""
SPAN_MAX = 1e6
PROGRESS_BEATS = 8
"""A round that has lasted for this many heartbeats makes progress."""


class StoryError(ValueError):
    """A story that cannot be told; the text names the line and the reason."""


class Backend(Enum):
    """How the register's nodes are heard."""

    CAS = "cas"
    """Counters, as on a TCPStore: each observer counts their silence."""
    LEASE = "lease"
    """Leases, as on etcd: the store takes a silent node's heartbeat away."""


_VERBS = {kind.value: kind for kind in Kind}


@frozen
class Operation:
    """One operation. `slot` names the node: the latest incarnation there. Raises ValueError for one that makes no sense."""

    kind: Kind
    slot: str = ""
    span: float = 0.0

    def __attrs_post_init__(self) -> None:
        kind = self.kind
        if kind.takes_node is not bool(self.slot):
            raise ValueError(f"{kind.value} takes {'a' if kind.takes_node else 'no'} slot, not {self.slot!r}")
        if not 0 <= self.span <= (SPAN_MAX if kind.takes_span else 0):
            span = f"of 0 to {SPAN_MAX:g} seconds" if kind.takes_span else f"for {kind.value}, which takes none"
            raise ValueError(f"{self.span:g} is no span {span}")

    def __str__(self) -> str:
        words = [self.kind.value, self.slot, _spelled(self.span) if self.kind.takes_span else ""]
        return " ".join(word for word in words if word)


def _at_least(low: float, most: float = SPAN_MAX) -> Any:
    def check(instance: object, attribute: Attribute[float], value: float) -> None:
        if not low <= value <= most:
            raise ValueError(f"{attribute.name}: {low:g} to {most:g}, not {value}")

    return check


def _no_or_yes(instance: object, attribute: Attribute[int], value: int) -> None:
    if value not in (0, 1):
        raise ValueError(f"{attribute.name}: 0 or 1, not {value}")


def slot(index: int) -> str:
    """Return the name of a slot: a … z, then n26, n27, …"""
    return chr(ord("a") + index) if index < 26 else f"n{index}"


_SHORT = {
    "min_nodes": "min",
    "max_nodes": "max",
    "max_restarts": "restarts",
    "give_up_after": "give_up",
    "node_unit": "unit",
}
LIMITS = {
    _SHORT.get(each.name, each.name): each.name for each in fields(Limits) if each.name not in ("agreed", "segment")
}
"""The words of a story for the job's limits. Nodes agree on nothing more, and racks make segments."""


@cache
def _slots(nodes: int) -> tuple[str, ...]:
    return tuple(map(slot, range(nodes)))


@frozen
class Setting:
    """The world before the first operation. Spans are in seconds, and production's if nothing else is said."""

    nodes: int = field(default=3, validator=_at_least(1))
    """The slots on which an agent may start."""
    limits: Limits = Limits(min_nodes=1, max_nodes=3, max_restarts=3)
    """Holds what all agents agree on. A story has a word for each limit (`LIMITS`)."""
    racks: int = field(default=0, validator=_at_least(0))
    """The slots take turns in this many racks, and a unit is a segment: all its nodes are in one rack. 0: there are none."""
    workers: int = field(default=1, validator=_at_least(1))
    """The workers of each node."""
    backend: Backend = field(default=Backend.CAS, converter=Backend)
    """How silence is noticed."""
    seed: int = 0
    """Draws the messages' delays and the clocks. 0: every message takes a millisecond, and all clocks agree."""
    drift: float = field(default=0.0, validator=_at_least(0))
    """A clock is fast or slow by up to so much (1e-3: a millisecond per second)."""
    offset: float = field(default=100_000.0, validator=_at_least(0))
    """The most seconds that a clock is ahead."""
    tail: float = field(default=0.0, validator=_at_least(0))
    """One message in a thousand takes this many seconds longer, one in five hundred half of that, and so on."""
    unlike: int = field(default=1, validator=_at_least(1))
    """The kinds of nodes: each has a role and a rack of its own, and one worker more than the last. Where there are
    three or more, a rank policy makes the nodes of a rack neighbours."""
    interval: float = field(default=1.0, validator=_at_least(0.01, 3600))
    """From one heartbeat to the next: ten messages at least, and an hour at most."""
    attempts: int = 5
    """How many heartbeats may be missed. A node is dead after a silence of this many intervals."""
    join: float = 600.0
    """The longest wait for a complete round."""
    last_call: float = 5.0
    """How long a round with its minimum of nodes waits for more."""
    overdue: float = 45.0
    """How long a member of the last world may take to come back."""
    upscale: float = 1.0
    """How long a newcomer waits before the running round ends for it."""
    barrier: float = 0.0
    """How long a node whose workers have succeeded waits for the others'. 0: as long as they run."""
    grace: float = 30.0
    """From SIGTERM to SIGKILL."""
    shutdown: float = field(default=0.0, validator=_at_least(0))
    """The same where the agent itself was signalled. 0: as long as `grace`."""
    fence: float = 0.0
    """The age of the last acknowledged heartbeat at which workers are killed. 0: never."""
    helping: int = field(default=8, validator=_at_least(1))
    """When more nodes than this have the same to write, one writes for all."""
    links: int = field(default=0, validator=_no_or_yes)
    """1: the nodes keep links to each other."""
    node_failures: int = field(default=0, validator=_at_least(0))
    """With this many failures of its own within the window a node is set aside. 0: never."""
    window: float = 8.0
    """The window of those failures, and the first cool-down."""
    leaves: int = field(default=0, validator=_no_or_yes)
    """1: it leaves instead, as unfit."""
    checks: int = field(default=0, validator=_no_or_yes)
    """1: a check of each node decides if it joins."""
    notices: int = field(default=1, validator=_no_or_yes)
    """0: no node is given notice that it must be gone."""
    reserves: int = field(default=0, validator=_at_least(0))
    """This many members of each world, the last ones, are its reserves; but never all of them."""
    party: int = field(default=1, validator=_at_least(1, LOCAL_WORLD_SIZE_MAX))
    """This many slots, one after the other, are a party: a newcomer of one waits for the others. 1: nobody waits."""
    party_wait: float = 10.0
    """How long a newcomer waits for the rest of its party."""
    alone: int = field(default=0, validator=_at_least(0))
    """How often a node's workers start again by themselves, and live through changes of nodes. 0: all restart together."""
    enters: int = field(default=1, validator=_no_or_yes)
    """1: workers that start again by themselves have entered a wrapped call. 0: none ever does."""
    codes: int = field(default=0, validator=_no_or_yes)
    """1: their exit codes say what becomes of the job (`core/inprocess/exits`). 0: a worker that fails exits with 1."""
    first_target: int = 0
    """The job's first round waits for this many nodes without a last call. 0: for the maximum."""
    named: int = field(default=0, validator=_at_least(0))
    """1: each node says which program its workers run, so another program beside it is refused. 2: it says with which
    arguments, too, and strangers have other ones."""
    echoes: int = field(default=0, validator=_no_or_yes)
    """1: workers that fail raise, begin to end or are killed, and their peers fail with them. 0: one exits with 1."""
    hang: float = field(default=0.0, validator=_at_least(0))
    """After this long without a move of any worker of its world a hung worker is blamed, and ends. 0: nobody watches."""
    standbys: float = field(default=0.0, validator=_at_least(0))
    """A node's standbys are ready this many seconds after its start, and after each start of its workers, at most. 0: it has
    none."""

    def __attrs_post_init__(self) -> None:
        for word, kind in WORDS.items():
            value = self.value(word)
            if kind == "int" and type(value) is not int:
                raise ValueError(f"{word}: a whole number, not {value}")
        if self.limits.segment != (RACK if self.racks else ""):
            raise ValueError(f"racks: {self.racks} with segments of {self.limits.segment!r}; but(racks=...) sets both")
        if self.drift > 0.1:
            raise ValueError(f"drift: at most 0.1, not {self.drift}")
        self.rendezvous, self.group  # noqa: B018  refused here, not in the middle of a run
        workers = self.workers + min(self.unlike, self.nodes) - 1
        if workers > LOCAL_WORLD_SIZE_MAX:
            raise ValueError(f"workers: at most {LOCAL_WORLD_SIZE_MAX} on a node, not {workers}")
        if self.are_too_few(self.slots):
            racks = f"what segments of {self.limits.node_unit} in {self.racks} racks make"
            most = racks if self.racks else f"nodes, {self.nodes}"
            raise ValueError(f"min: at most {most}, not {self.limits.min_nodes}")
        for given in ("last_call", "standbys"):
            if getattr(self, given) >= self.join:
                raise ValueError(f"{given}: less than join, {self.join:g}, not {getattr(self, given):g}")
        least = self.grace + self.fence + 2
        if self.fence and self.overdue < least:
            raise ValueError(f"overdue: with a fence at least grace + fence + 2, {least:g}, not {self.overdue:g}")

    @property
    def slots(self) -> tuple[str, ...]:
        return _slots(self.nodes)

    def value(self, word: str) -> Any:
        """Return the value of this word of a story: of a limit, or of a field of its own."""
        return getattr(self.limits, LIMITS[word]) if word in LIMITS else getattr(self, word)

    def but(self, **words: Any) -> Setting:
        """Return the setting with these values, by the words of a story. Raises ValueError."""
        own = {word: value for word, value in words.items() if word not in LIMITS}
        limits = {LIMITS[word]: value for word, value in words.items() if word in LIMITS}
        if "racks" in own:
            limits["segment"] = RACK if own["racks"] else ""
        return evolve(self, limits=evolve(self.limits, **limits), **own)

    def are_too_few(self, slots: Collection[str]) -> bool:
        """Return True if the nodes on these slots cannot make a world."""
        if not self.racks:
            return len(slots) < self.limits.min_nodes
        racks = {slot: self._rack(slot) for slot in slots}
        return len(self.limits.fit(racks, self.limits.max_nodes)) < self.limits.min_nodes

    def _rack(self, slot: str) -> str:
        return f"r{self.slots.index(slot) % self.racks}"

    @property
    def rendezvous(self) -> Settings:
        return Settings(
            self.limits,
            join_timeout=self.join,
            last_call_timeout=self.last_call,
            first_target=self.first_target,
            keep_alive_interval=self.interval,
            keep_alive_max_attempt=self.attempts,
            overdue_timeout=self.overdue,
            upscale_after=self.upscale,
            helping_above=self.helping,
            leased=self.backend is Backend.LEASE,
            barrier_timeout=self.barrier or math.inf,
            max_node_failures=self._failure_limit if self.node_failures else None,
            party_timeout=self.party_wait,
            same_program=Comparison.ARGUMENTS if self.named > 1 else Comparison.NAME,
            **({"progress_after": PROGRESS_BEATS * self.interval} if self.limits.give_up_after else {}),
        )

    @property
    def _failure_limit(self) -> FailureLimit:
        return FailureLimit(self.node_failures, self.window, True if self.leaves else None)

    @property
    def group(self) -> GroupSettings:
        return GroupSettings(
            grace=self.grace,
            shutdown_timeout=self.shutdown or self.grace,
            ttl=self.interval * self.attempts,
            keep_alive_interval=self.interval,
            start_timeout=self.join,
            fence=self.fence or None,
            checks=True if self.checks else None,
            alone=self._alone if self.alone else None,
        )

    @property
    def _alone(self) -> Alone:
        return Alone(self.alone, FINAL, JOB_OVER, HEARD, CANCELLED) if self.codes else Alone(self.alone)

    @property
    def longest_grace(self) -> float:
        """How long workers may take to end that are told to."""
        return max(self.grace, self.shutdown)

    def profile(self, slot: str, port: int, program: str = "", is_local: bool = False, arguments: str = "") -> Profile:
        """Return what the node on this slot says of itself. Each start of its workers has a port of its own."""
        kind = self.slots.index(slot) % self.unlike if self.unlike > 1 else 0
        party = self._party(slot) if self.party > 1 else None
        role, rack = f"role{kind}" if kind else "default", self._rack(slot) if self.racks else str(kind or "")
        given = {RACK: rack} if rack else {}
        given |= dict([rank_policy_label((RACK,))]) if self.unlike > 2 else {}
        given |= dict([place_label((self.unlike - kind,))]) if kind else {}
        labels = tuple(sorted(given.items()))
        endpoint = Endpoint("localhost" if is_local else slot, port)
        told = self.workers + kind, role, slot, labels, program, "", arguments
        return Profile(endpoint, *told, link_port=self.links, party=party)

    def _party(self, slot: str) -> Party:
        which = self.slots.index(slot) // self.party
        return Party(f"party {which}", min(self.party, self.nodes - which * self.party))

    def is_reserve(self, node: Node, world: World) -> bool:
        """Return True if this node is a reserve of this world."""
        many = min(self.reserves, len(world.nodes) - 1)
        return node in world.nodes[len(world.nodes) - many :]

    def __str__(self) -> str:
        given = {word: self.value(word) for word in WORDS}
        pairs = (f"{word}={_spelled(value)}" for word, value in given.items() if value != QUICK.value(word))
        return " ".join(["world", *pairs])


WORDS = {
    "nodes": "int",
    **{word: str(getattr(fields(Limits), name).type) for word, name in LIMITS.items()},
    **{each.name: str(each.type) for each in fields(Setting) if each.name != "limits"},
}
"""All words of a story's first line, in their order, with the types of their values."""
QUICK = Setting(join=60.0, last_call=2.0, overdue=8.0, grace=3.0)
"""The setting of a bare `world`, as the first line of a story: its spans are short, and so is what happens in it."""


def _bit(word: str, text: str) -> bool:
    if text not in ("0", "1"):
        raise ValueError(f"{word}: 0 or 1, not {text}")
    return text == "1"


def _spelled(value: object) -> str:
    """Return the shortest text that is read as this value."""
    if isinstance(value, bool | Backend):
        return str(int(value) if isinstance(value, bool) else value.value)
    short = f"{value:g}" if isinstance(value, float) else str(value)
    return short if not isinstance(value, float) or float(short) == value else str(value)


@frozen
class Story:
    setting: Setting
    operations: tuple[Operation, ...] = ()

    def __str__(self) -> str:
        return "\n".join(map(str, (self.setting, *self.operations)))


def name(node: Node) -> str:
    """Return a node's short name: `a` is the first incarnation of slot a, `a#2` its second."""
    return node.slot if node.incarnation == 1 else str(node)


def parsed(lines: Iterable[str]) -> Story:
    """Return the story that this text tells; empty lines and comments (#) are for the reader. Raises StoryError."""
    setting, operations = None, list[Operation]()
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            _check_words(line)
            if setting is None:
                setting = parsed_setting(line)
            else:
                operations.append(parsed_operation(line))
        except (ValueError, TypeError) as error:
            raise StoryError(f"line {number}: {line.strip()[:SHOWN_MAX]!r}: {error}") from None
        if len(operations) > OPERATIONS_MAX:
            raise StoryError(f"line {number}: more than {OPERATIONS_MAX} operations")
    if setting is None:
        raise StoryError("no story: the first line says `world`, with its settings")
    return Story(setting, tuple(operations))


def _check_words(line: str) -> None:
    longest = max(map(len, line.split()))
    if longest > SHOWN_MAX:
        raise ValueError(f"a word of {longest:,} characters, and none has more than {SHOWN_MAX}")


def parsed_setting(line: str) -> Setting:
    """Return the setting of this line. Raises ValueError."""
    first, *pairs = line.split()
    if first != "world":
        raise ValueError("the first line says `world`, with its settings")
    given: dict[str, Any] = {}
    for pair in pairs:
        word, _, value = pair.partition("=")
        if word not in WORDS:
            raise ValueError(f"{word!r} is not a setting (known: {', '.join(WORDS)})")
        read = type(QUICK.value(word))
        given[word] = _bit(word, value) if read is bool else read(value)
    return QUICK.but(**given)


def parsed_operation(line: str) -> Operation:
    """Return the operation of this line. Raises ValueError."""
    verb, *words = line.split()
    if verb not in _VERBS:
        raise ValueError(f"{verb!r} is nothing that can be done (known: {', '.join(_VERBS)})")
    kind = _VERBS[verb]
    wanted = [*(["a slot"] if kind.takes_node else []), *(["seconds"] if kind.takes_span else [])]
    if len(words) != len(wanted):
        raise ValueError(f"{verb} takes {' and '.join(wanted) or 'nothing'}")
    return Operation(kind, words[0] if kind.takes_node else "", float(words[-1]) if kind.takes_span else 0.0)
