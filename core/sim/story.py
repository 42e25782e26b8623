"""A run as data: the setting of a simulated world, and the operations on it, in order.

A story says everything that makes a run: told again, it gives the same run; with an operation left out, a smaller one. So an
operation that has no effect when it comes (to fail workers that do not run) does nothing. The text of a story has one
operation per line; its first line is the setting, with what differs from the defaults.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from enum import Enum
from functools import cache
from typing import Any

from attrs import Attribute, asdict, field, fields, frozen

from ..group import Settings as GroupSettings
from ..rendezvous import Limits, Settings
from ..world import Node

OPERATIONS_MAX = 100_000
SPAN_MAX = 1e6


class StoryError(ValueError):
    """A story that cannot be told; the text names the line and the reason."""


class Backend(Enum):
    """How the register's nodes are heard."""

    CAS = "cas"
    """Counters, as on a TCPStore: each observer counts their silence."""
    LEASE = "lease"
    """Leases, as on etcd: the store takes a silent node's heartbeat away."""


class Kind(Enum):
    """The operations; the value is the verb of the line."""

    PASS = "pass"
    """Time passes: so many seconds."""
    START = "start"
    """An agent starts on this slot: a new incarnation, even if the last one still runs."""
    CRASH = "crash"
    """The node is gone: agent and workers at once."""
    PAUSE = "pause"
    """The agent's process stands still for so long; its workers run on."""
    SLOW = "slow"
    """Every message of the node takes so much longer, each way, from now on (0: no longer)."""
    CUT = "cut"
    """Nothing passes between the node and the store for so long."""
    CUT_OUT = "cut-out"
    """What the node sends is lost for so long."""
    CUT_IN = "cut-in"
    """What is sent to the node is lost for so long."""
    LOSE_REPLY = "lose-reply"
    """The answer to the node's next write is lost, after it was carried out."""
    LATE_WRITE = "late-write"
    """The node's next write arrives so much later."""
    LATE_REPLY = "late-reply"
    """The answer to the node's next question arrives so much later, after others perhaps."""
    GAP = "gap"
    """The node is not told of the register's next change; its next look finds it."""
    OUTAGE = "outage"
    """The store is away for so long, and remembers all."""
    EMPTY = "empty"
    """The store has forgotten everything."""
    OLDER = "older"
    """The store is restored from a backup that was made so long ago."""
    FAIL = "fail"
    """A worker of the node exits with 1."""
    SUCCEED = "succeed"
    """All workers of the node that live exit with 0."""
    HANG = "hang"
    """The node's workers neither succeed nor heed SIGTERM from now on."""
    UNSTARTABLE = "unstartable"
    """The node's workers cannot be started the next time."""
    DRAIN = "drain"
    """The agent is sent SIGTERM."""
    CANCEL = "cancel"
    """An operator closes the job through this node."""

    __hash__ = object.__hash__  # as for the register's Status

    @property
    def takes_span(self) -> bool:
        return self in _TIMED

    @property
    def takes_node(self) -> bool:
        return self not in (Kind.PASS, Kind.OUTAGE, Kind.EMPTY, Kind.OLDER, Kind.CANCEL)


_VERBS = {kind.value: kind for kind in Kind}
_TIMED = frozenset(
    (
        Kind.PASS,
        Kind.PAUSE,
        Kind.SLOW,
        Kind.CUT,
        Kind.CUT_OUT,
        Kind.CUT_IN,
        Kind.LATE_WRITE,
        Kind.LATE_REPLY,
        Kind.OUTAGE,
        Kind.OLDER,
    )
)


@frozen
class Operation:
    """One operation. `slot` names the node: the latest incarnation there."""

    kind: Kind
    slot: str = ""
    span: float = 0.0

    def __str__(self) -> str:
        words = [self.kind.value, self.slot, f"{self.span:g}" if self.kind.takes_span else ""]
        return " ".join(word for word in words if word)


def _at_least(low: float) -> Any:
    def check(instance: object, attribute: Attribute[float], value: float) -> None:
        if not low <= value <= SPAN_MAX:
            raise ValueError(f"{attribute.name}: {low:g} to {SPAN_MAX:g}, not {value}")

    return check


@cache
def _slots(nodes: int) -> tuple[str, ...]:
    return tuple(map(slot, range(nodes)))


@frozen
class Setting:
    """The world before the first operation. Spans are in seconds; a `fence` of 0 means none.

    `seed` draws the messages' delays and the clocks (0: every message takes a millisecond, and all clocks agree); a clock is
    fast or slow by up to `drift` (1e-3: a millisecond per second), and ahead by up to `offset`.
    """

    nodes: int = field(default=3, validator=_at_least(1))
    min: int = 1
    max: int = 3
    restarts: int = 3
    workers: int = field(default=1, validator=_at_least(1))
    backend: Backend = field(default=Backend.CAS, converter=Backend)
    seed: int = 0
    drift: float = field(default=0.0, validator=_at_least(0))
    offset: float = field(default=100_000.0, validator=_at_least(0))
    interval: float = 1.0
    attempts: int = 5
    join: float = 60.0
    last_call: float = 2.0
    overdue: float = 8.0
    upscale: float = 1.0
    barrier: float = 0.0
    grace: float = 3.0
    fence: float = 0.0
    helping: int = field(default=8, validator=_at_least(1))
    """When more nodes than this have the same to write, one writes for all."""

    def __attrs_post_init__(self) -> None:
        if self.drift > 0.1:
            raise ValueError(f"drift: at most 0.1, not {self.drift}")
        if self.fence and self.overdue < self.grace + 5:
            raise ValueError(f"overdue: with a fence at least grace + 5, {self.grace + 5:g}, not {self.overdue:g}")
        self.rendezvous, self.group  # noqa: B018  refused here, not in the middle of a run

    @property
    def slots(self) -> tuple[str, ...]:
        return _slots(self.nodes)

    @property
    def limits(self) -> Limits:
        return Limits(self.min, self.max, self.restarts)

    @property
    def rendezvous(self) -> Settings:
        return Settings(
            self.limits,
            join_timeout=self.join,
            last_call_timeout=self.last_call,
            keep_alive_interval=self.interval,
            keep_alive_max_attempt=self.attempts,
            overdue_timeout=self.overdue,
            upscale_after=self.upscale,
            helping_above=self.helping,
            leased=self.backend is Backend.LEASE,
            barrier_timeout=self.barrier or math.inf,
        )

    @property
    def group(self) -> GroupSettings:
        return GroupSettings(
            grace=self.grace,
            shutdown_timeout=self.grace,
            ttl=self.interval * self.attempts,
            keep_alive_interval=self.interval,
            start_timeout=self.join,
            fence=self.fence or None,
        )

    def __str__(self) -> str:
        given = asdict(self, value_serializer=lambda *each: getattr(each[-1], "value", each[-1]))
        return " ".join(["world", *(f"{key}={_spelled(given[key])}" for key in _differing(self))])


def _differing(setting: Setting) -> list[str]:
    return [each.name for each in fields(Setting) if getattr(setting, each.name) != each.default]


def _spelled(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


@frozen
class Story:
    setting: Setting
    operations: tuple[Operation, ...] = ()

    def __str__(self) -> str:
        return "\n".join(map(str, (self.setting, *self.operations)))


def slot(index: int) -> str:
    """Return the name of a slot: a … z, then n26, n27, …"""
    return chr(ord("a") + index) if index < 26 else f"n{index}"


def name(node: Node) -> str:
    """Return a node's short name: `a` is the first incarnation of slot a, `a#2` its second."""
    return node.slot if node.incarnation == 1 else str(node)


def parsed(lines: Iterable[str]) -> Story:
    """Return the story that this text tells; empty lines and comments (#) are for the reader. Raises StoryError."""
    setting, operations = None, list[Operation]()
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            if setting is None:
                setting = parsed_setting(line)
            else:
                operations.append(parsed_operation(line))
        except (ValueError, TypeError) as error:
            raise StoryError(f"line {number}: {line.strip()!r}: {error}") from None
        if len(operations) > OPERATIONS_MAX:
            raise StoryError(f"line {number}: more than {OPERATIONS_MAX} operations")
    if setting is None:
        raise StoryError("no story: the first line says `world`, with its settings")
    return Story(setting, tuple(operations))


def parsed_setting(line: str) -> Setting:
    """Return the setting of this line. Raises ValueError."""
    first, *pairs = line.split()
    if first != "world":
        raise ValueError("the first line says `world`, with its settings")
    defaults = {each.name: each.default for each in fields(Setting)}
    given: dict[str, object] = {}
    for pair in pairs:
        key, _, value = pair.partition("=")
        if key not in defaults:
            raise ValueError(f"{key!r} is not a setting (known: {', '.join(defaults)})")
        given[key] = value if key == "backend" else type(defaults[key])(value)  # type: ignore[misc]
    return Setting(**given)  # type: ignore[arg-type]


def parsed_operation(line: str) -> Operation:
    """Return the operation of this line. Raises ValueError."""
    verb, *words = line.split()
    if verb not in _VERBS:
        raise ValueError(f"{verb!r} is nothing that can be done (known: {', '.join(_VERBS)})")
    kind = _VERBS[verb]
    wanted = [*(["a slot"] if kind.takes_node else []), *(["seconds"] if kind.takes_span else [])]
    if len(words) != len(wanted):
        raise ValueError(f"{verb} takes {' and '.join(wanted) or 'nothing'}")
    span = float(words[-1]) if kind.takes_span else 0.0
    if not 0 <= span <= SPAN_MAX:
        raise ValueError(f"{words[-1]} is no span of 0 to {SPAN_MAX:g} seconds")
    return Operation(kind, words[0] if kind.takes_node else "", span)
