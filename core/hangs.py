"""The suspicion that a node's workers hang: a pure function of what looks at them show, of what other nodes say, and of
time.

A look shows, for each worker that lives, how often its script has called for progress, how much it has printed, and the
stack of its main thread. A script that calls has moved when it has called again. Of any other one new output or another
stack is a move. A script may say that it is busy, and for how long: that span counts instead of the general one.

Nobody is suspected while one worker of the node moves. A node that suspects a hang puts its stacks on record, and then knows
from the records of the others if the whole job stands still. Only then a worker is blamed: the one that is elsewhere.

All spans are in seconds. A clock of the machine's own counts them, which stands while nobody looks: a host that stands still
for a minute takes no minute from its workers.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

from .values import evolve, field, frozen
from .world import Node, Stacks

if TYPE_CHECKING:
    from attrs import Attribute

LOOKS = 8
"""The number of looks within the span."""
LOOK_MAX_S = 15.0
"""The longest span between two looks."""
SOON_S = 0.5
"""The same while the word of others is awaited."""
PATIENCE_S = 1.0
"""So much longer than two spans between looks a node waits for the word of others, before it reports what it knows, and for
the end of the round, before it looks anew for a hang."""


def _above_zero(instance: object, attribute: Attribute[float], value: float) -> None:
    if not 0 < value < math.inf:
        raise ValueError(f"{attribute.name}={value!r}: a number of seconds above 0")


@frozen
class HangSettings:
    """How long a node may stand still before a hang is suspected, and if the job is restarted then."""

    timeout_s: float = field(validator=_above_zero)
    restarts: bool = False

    @property
    def every_s(self) -> float:
        """The span between two looks."""
        return min(self.timeout_s / LOOKS, LOOK_MAX_S)

    @property
    def patience_s(self) -> float:
        """How long the word of others is awaited, and after a blame the end of the round."""
        return 2 * self.every_s + PATIENCE_S


@frozen
class Busy:
    """A span that a script has marked. `number` tells it from the spans before it."""

    number: int
    limit_s: float
    name: str = ""


@frozen
class Sight:
    """What one look shows of a worker. `stack` is empty in a look that did not ask for it."""

    start: int
    """This tells one start of the worker from another."""
    calls: int = 0
    output: int = 0
    busy: Busy | None = None
    stack: str = ""


@frozen
class Silence:
    """What was seen of a worker last, and since when it has not moved."""

    since: float
    sight: Sight


class Told(Enum):
    """How much was reported of a suspicion."""

    NOTHING = "nothing"
    PART = "part"
    """What was known before all nodes had told."""
    WHOLE = "whole"


@frozen
class Blamed:
    """The worker that was blamed, and when: that start of this rank is to end."""

    rank: int
    start: int
    at: float


@frozen
class Watch:
    """What one node knows of its workers, by rank."""

    at: float = 0.0
    """The time on the machine's own clock."""
    looked_at: float | None = None
    silences: Mapping[int, Silence] = field(factory=dict)
    suspects_since: float | None = None
    told: Told = Told.NOTHING
    blamed: Blamed | None = None


@frozen
class Others:
    """The members of the round, this node too, and what those of them have on record that suspect a hang."""

    members: Collection[Node]
    stacks: tuple[Stacks, ...] = ()
    absent: Collection[Node] = ()
    """The members that are dead or out of reach, or have no work: they say nothing, and nobody waits for their word."""
    on_record: bool = True
    """False: the store answers, and does not show what this node has put there."""
    is_idle: bool = False
    """This node has no work, so it says nothing that its workers stand still."""

    @property
    def missing(self) -> tuple[Node, ...]:
        """The members that do not suspect a hang, or have not said so yet."""
        told = {each.node for each in self.stacks if each.places} | {*self.absent}
        return tuple(node for node in self.members if node not in told)


@frozen
class Record:
    """Put on record where this node's workers are; once more if the store has lost that, or was away."""


@frozen
class Withdraw:
    """Take that back: a worker has moved."""


@frozen
class Report:
    """Tell people: the workers have not moved for this long. `odd` is the rank that is elsewhere than all others."""

    silent_s: float
    odd: int | None
    missing: tuple[Node, ...] = ()


@frozen
class Blame:
    """End this worker of this node: the whole job stands still, and its failure restarts it."""

    rank: int
    silent_s: float
    is_odd: bool


Act: TypeAlias = Record | Withdraw | Report | Blame
Step: TypeAlias = tuple[Watch, tuple[Act, ...]]


def out_of_reach(
    members: Collection[Node], me: Node, links: Mapping[Node, bool], silent_since: float | None, now: float, ttl: float
) -> tuple[Node, ...]:
    """Return the members that are dead or out of reach: the store has been silent for a TTL, and the link to them does not
    stand. Without a link to them, no link stands at all."""
    if silent_since is None or now - silent_since < ttl:
        return ()
    reaches_some = any(links.values())
    return tuple(node for node in members if node != me and not links.get(node, reaches_some))


def asks(watch: Watch, sights: Mapping[int, Sight]) -> tuple[int, ...]:
    """Return the ranks whose stacks this look needs: none if a worker has moved visibly, and none that calls for
    progress."""
    if any(_moved(watch.silences.get(rank), sight) for rank, sight in sights.items()):
        return ()
    return tuple(rank for rank, sight in sights.items() if not sight.calls)


def look(watch: Watch, sights: Mapping[int, Sight], others: Others, now: float, settings: HangSettings) -> Step:
    """Return the watch after this look, and what follows from it."""
    watch = _seen(watch, sights, now, settings)
    moves = others.is_idle or not sights or any(watch.at < _due_at(each, settings) for each in watch.silences.values())
    if watch.blamed:
        ends = _awaits_its_end(watch, watch.blamed, sights, moves, settings)
        return (watch, ()) if ends else _afresh(watch)
    if moves:
        return (watch, ()) if watch.suspects_since is None else _afresh(watch)
    if watch.suspects_since is None:
        return evolve(watch, suspects_since=watch.at), (Record(),)
    return _suspects(watch, sights, others, watch.suspects_since, settings)


def _afresh(watch: Watch) -> Step:
    return evolve(watch, suspects_since=None, told=Told.NOTHING, blamed=None), (Withdraw(),)


def _awaits_its_end(
    watch: Watch, blamed: Blamed, sights: Mapping[int, Sight], moves: bool, settings: HangSettings
) -> bool:
    """Return True while the round may still end for the death of the blamed worker: that moves the others, and takes nothing
    back. Where workers restart alone, the round goes on without it, or with another start of its rank."""
    if watch.at < blamed.at + settings.patience_s:
        return True
    sight = sights.get(blamed.rank)
    return not moves and sight is not None and sight.start == blamed.start


def until(watch: Watch, now: float, settings: HangSettings) -> float:
    """Return when to look again."""
    waits = watch.suspects_since is not None and watch.told is not Told.WHOLE
    return now + (min(settings.every_s, SOON_S) if waits else settings.every_s)


def overdue(watch: Watch, settings: HangSettings) -> Mapping[int, Busy]:
    """Return the ranks that are in a busy span beyond its limit."""
    found = ((rank, each.sight.busy, each) for rank, each in watch.silences.items())
    return {rank: busy for rank, busy, each in found if busy and watch.at >= _due_at(each, settings)}


def odd_rank(stacks: Collection[Stacks]) -> int | None:
    """Return the only rank that is alone at its place while several are at each other place; None if there is none."""
    places: dict[str, list[int]] = {}
    for each in stacks:
        for rank, place in each.places:
            places.setdefault(place, []).append(rank)
    alone = [ranks[0] for ranks in places.values() if len(ranks) == 1]
    return alone[0] if len(alone) == 1 < len(places) else None


def _suspects(watch: Watch, sights: Mapping[int, Sight], others: Others, since: float, settings: HangSettings) -> Step:
    lost = () if others.on_record or watch.at < since + settings.patience_s else (Record(),)
    missing, odd = others.missing, odd_rank(others.stacks)
    silent_s = watch.at - max(each.since for each in watch.silences.values())
    if missing:
        late = watch.at >= since + settings.patience_s
        if watch.told is not Told.NOTHING or not late:
            return watch, lost
        return evolve(watch, told=Told.PART), (*lost, Report(silent_s, odd, missing))
    report = lost if watch.told is Told.WHOLE else (*lost, Report(silent_s, odd))
    watch = evolve(watch, told=Told.WHOLE)
    rank = min(rank for each in others.stacks for rank, _ in each.places) if odd is None else odd
    if not settings.restarts or rank not in sights:
        return watch, report
    blamed = Blamed(rank, sights[rank].start, watch.at)
    return evolve(watch, blamed=blamed), (*report, Blame(rank, silent_s, odd is not None))


def _seen(watch: Watch, sights: Mapping[int, Sight], now: float, settings: HangSettings) -> Watch:
    """Return the watch with what this look shows. A pause counts twice its length at most."""
    passed_s = 0.0 if watch.looked_at is None else min(now - watch.looked_at, 2 * settings.every_s)
    at = watch.at + passed_s
    silences = {rank: _silence(watch.silences.get(rank), sight, at) for rank, sight in sights.items()}
    return evolve(watch, at=at, looked_at=now, silences=silences)


def _silence(before: Silence | None, sight: Sight, at: float) -> Silence:
    if before is None or _moved(before, sight) or _has_another_stack(before.sight, sight):
        return Silence(at, sight)
    return Silence(before.since, sight if sight.stack else evolve(sight, stack=before.sight.stack))


def _moved(before: Silence | None, sight: Sight) -> bool:
    """Return True if the worker has moved visibly since then: its stack is not looked at."""
    if before is None or before.sight.start != sight.start or before.sight.busy != sight.busy:
        return True
    return before.sight.calls != sight.calls or (not sight.calls and before.sight.output != sight.output)


def _has_another_stack(before: Sight, now: Sight) -> bool:
    return not now.calls and bool(before.stack) and bool(now.stack) and before.stack != now.stack


def _due_at(silence: Silence, settings: HangSettings) -> float:
    """Return when this worker has been silent for too long."""
    busy = silence.sight.busy
    return silence.since + (busy.limit_s if busy else settings.timeout_s)
