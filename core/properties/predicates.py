"""The properties that need more than one state, each by its number, and those that a single fact can break.

docs/protocol.md#properties defines each number. The `Judge` keeps the memory that some of them need.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from ..group import MOVES, Group, Phase
from ..group.state import (
    KILL_S,
    SIGKILL,
    Cause,
    Check,
    Checked,
    Close,
    Command,
    Elapsed,
    End,
    Event,
    Join,
    Leave,
    MarkDone,
    Move,
    Over,
    Ready,
    Record,
    RecordUnfit,
    RecordUnstartable,
    Signal,
    Signalled,
    Start,
)
from ..ranks import Ranks
from ..rendezvous import Complete, Edit, Evict, RendezvousState, Status, Together
from ..rendezvous.actions import entrants
from ..rendezvous.state import AWAY
from ..rendezvous.verify import Finding
from ..world import Node, Profile, Why, World, natural
from .facts import Stepped

ALWAYS = {
    "S2": "all who run a world hold the same one",
    "S3": "ranks are dense, and prefix sums of the local world sizes",
    "S9": "when workers of a world start, those of earlier ones are dead, but for those of a node that is no member of it",
    "S9 strong": "with the fence on these too, unless their agent paused, left, was outlived or superseded, or a link lied",
    "S14b": "DONE says that the node's workers succeeded in this round, and RESERVE that they have no work in it",
    "S15": "who has left is never seated again, but by a restore of an older register",
    "S19": "a batch seats who proposes to enter in its era of an open round, and ends that era",
    "S20": "a world is in the order of its nodes' groups, places, hosts in the first round, and last order or arrival",
    "R8": "nobody edits what another store had written: it is restored first",
    "R9": "a life begins once",
    "R10": "who takes over a restored register of its own job forgets no failure of a life in which a world was completed",
    "R11": "no world completes while somebody who is awake and within reach has known its verdict for long",
    "R12": "a store that is lost stops nobody who is well, and the world that ran stands again",
    "R13": "who is awake does not forget what the store has lost",
    "R14": "who has slept looks before it decides, and restores nothing from before its sleep that does not stand",
    "S17": "workers start at most once per node and world",
    "S18": "who runs a world that does not stand, beside another life's, stops it in time",
    "B4": "no more failures than rounds in which a worker failed",
    "B5": "a round ends as failed by a member whose worker failed in it, and such a member charges its failure",
    "O1": "an agent ends by the verdict that it has read, by its signal, by its barrier's time-out, or by a refusal",
    "O2": "a refusal has its reason in the register and the settings",
    "O3": "who was told to go ends when the register knows, after its time, or at a signal that comes while it leaves",
    "O4": "nobody is overdue, no last call is over and no newcomer ends a round before the time",
    "O5": "nobody leaves unasked, but after the time of its join or of the exit barrier",
    "O7": "a drained node goes on until its workers are ready, its time has come or its round is over",
    "O8": "a drained node is gone by its deadline, unless its agent stood still since its notice",
    "O9": "who is set aside comes back after its cool-down, or when it is called",
    "O10": "a node whose standbys are not ready asks for no seat in a world that runs without it",
    "O6": "who ends a round as fenced was in it and runs no workers, and only who could not start says so",
    "F1": "nobody is fenced within a quarter of the TTL after a start",
    "G1": "the group moves by its table",
    "G2": "nobody joins with a worker alive, or that is drained",
    "G3": "what the others must know comes before our own workers are stopped, and nobody is signalled who is dead",
    "G4": "success is marked when all workers have succeeded, and none was ready to leave; a failure ends a running world",
    "G5": "ended is final, and nothing lives then",
    "G6": "whoever stops or leaves has a way out, and its workers have their grace",
    "G7": "a node with a check, and no other, is checked: it joins if it is fit, and again only after a failure of its own",
    "G8": "where workers restart alone, they live through a change of nodes, but into no other generation; elsewhere never",
}
"""Properties that must hold at every point of every run, beside those of one state and of one step (`verify`)."""
EVENTUALLY = {
    "L2": "every live node is in the one complete world, a spare, or told",
    "L3": "no healthy node is evicted",
    "L4": "no more rounds end for a reason than there are causes of it",
    "L6": "every wait has a deadline and a reason that can be shown",
    "L7": "a spare does not give up, nor does a node that slept before it has waited again",
    "L8": "a link costs a node that lives its seat only if the network refuses in its name, and once",
    "L9": "a world rests soon after its last fault",
    "L10": "the dead lose their seats in time",
    "L11": "what a node asks and writes in one round is bounded",
}
"""What a healed world must reach, and what must not happen on the way."""


def of_write(before: RendezvousState, edit: Edit, after: RendezvousState) -> Iterator[Finding]:
    """Yield what a write breaks that `verify` does not judge: `verify` has no edit, and does not count all seats at every
    read."""
    if isinstance(edit, Together):
        yield from _of_batch(before, edit, after)
    if after.complete and (not before.complete or after.round > before.round):
        yield from _of_order(before, after)
    if after.round > before.round:
        yield from _of_new_round(before, after)
        return
    seats = after.seats
    if not (after.complete or after.closed) and after.census[Status.WAITING]:
        taken = sum(seat.status not in (Status.WAITING, Status.LEAVING, Status.ASIDE) for seat in seats.values())
        if taken < after.limits.max_nodes:
            yield "V4", f"somebody waits, and only {taken} of {after.limits.max_nodes} seats are taken"
    dropped = [node for node in before.expected if node not in seats or seats[node].status is Status.LEAVING]
    aside = [node for node in after.those(Status.ASIDE) if not _is_aside(before, node)]
    called = [node for node in after.expected if _is_aside(before, node)]
    kept = max(before.target - len(dropped), 0)
    if after.target != kept - (bool(aside) and kept > 1) + len(called):
        ways = f"{len(dropped)} dropped, {len(aside)} set aside and {len(called)} called back"
        yield "V7", f"{ways}, but the target went from {before.target} to {after.target}"
    ended = before.ended
    if isinstance(edit, Evict) and not before.complete and ended is not None:
        gone = [node for node in before.those(Status.EXPECTED, Status.LEAVING) if node not in seats]
        lost = any(node != ended.by for node in gone)
        if lost and ended.why is Why.FAILED and after.failures == before.failures:
            yield "B2", "the loss of a member is charged as the failure that it led to"
    if after.complete and not before.complete and not isinstance(edit, Complete):
        size = len(after.members)
        if size < after.limits.max_nodes and not 0 < after.target <= size:
            yield "V6", f"complete without a last call, with {size} of up to {after.limits.max_nodes} nodes"


def _is_aside(state: RendezvousState, node: Node) -> bool:
    seat = state.seats.get(node)
    return seat is not None and seat.status is Status.ASIDE


def of_restore(after: RendezvousState) -> Iterator[Finding]:
    """Yield what a restore breaks by the seats that it makes, by no list of its own."""
    if any(seat.status in (Status.WAITING, Status.LEAVING, Status.ASIDE) for seat in after.seats.values()):
        yield "R7", "who waits, or is on its way out, is restored, and only presence can attest that"


def of_programs(before: RendezvousState, me: Node, after: RendezvousState) -> Iterator[Finding]:
    """Yield whom this batch of mine seats beside another program. I may be allowed to be there, and judge myself."""
    for node in [each for each in after.seats if each not in before.seats and each != me]:
        if is_beside_another_program(after, node, after.seats[node].profile):
            yield "S19", f"{node} is seated, and others of its role run another program"


def is_beside_another_program(state: RendezvousState, node: Node, profile: Profile) -> bool:
    """Return True if others of its role that are there run a program of another name."""
    others = [seat for other, seat in state.seats.items() if other.slot != node.slot and seat.status not in AWAY]
    named = {seat.profile.program for seat in others if seat.profile.role == profile.role} - {""}
    return bool(profile.program) and bool(named - {profile.program})


def _of_batch(before: RendezvousState, edit: Together, after: RendezvousState) -> Iterator[Finding]:
    entered = [node for node in after.seats if node not in before.seats]
    if not entered:
        return
    called = entrants(edit.proposals, before.era)
    if before.complete or any(node not in called for node in entered):
        yield "S19", f"{', '.join(map(str, entered))} are seated without a proposal to enter that counts"
    if after.stale_before != after.version:
        yield "S19", f"{', '.join(map(str, entered))} are seated by proposals that count again"


def _of_new_round(before: RendezvousState, after: RendezvousState) -> Iterator[Finding]:
    if after.quorum_at not in (None, after.version):
        yield "V11", f"the quorum of a new round is older than the round: version {after.quorum_at}"
    if after.ended is not None and after.ended.why is Why.LEFT and after.ended.by in after.seats:
        yield "V8", f"the round ended because {after.ended.by} left, but it is still seated"
    if any(seat.status is Status.GONE and node in after.seats for node, seat in before.seats.items()):
        yield "V10", "who had left after it was done is expected back"


def of_ranks(world: World, ranks: Mapping[Node, Ranks]) -> Iterator[Finding]:
    """Yield what is wrong with these ranks, by counting them and not by the formula of `ranks`."""
    expected = 0
    for member in world.members:
        place = ranks[member.node]
        for local_rank, worker in enumerate(place.workers):
            if (worker.rank, worker.local_rank) != (expected, local_rank):
                yield "S3", f"worker {local_rank} of {member.node} has rank {worker.rank}, not {expected}"
            expected += 1
        if len(place.workers) != member.profile.local_world_size:
            yield "S3", f"{member.node} has {len(place.workers)} ranks for {member.profile.local_world_size} workers"
    if any(place.world_size != expected for place in ranks.values()):
        yield "S3", f"the world has {expected} workers, and some are told otherwise"


def _of_order(before: RendezvousState, after: RendezvousState) -> Iterator[Finding]:
    """Yield which neighbours of a world that is complete now are in the wrong order.

    A node has a number by the seats as they stood before. Who comes with this write comes last; several that do may stand in
    any order. In the first round the number is by place and host. Two nodes of one group are compared by their places, then
    by these numbers. Two nodes of unlike groups are compared by the first numbers of the widest groups in which they differ.
    """
    profiles = {node: after.seats[node].profile for node in after.members}
    arrived: dict[Node, tuple[Any, ...]] = {
        node: (before.seats[node].order,) if node in before.seats else (before.next_order, rank)
        for rank, node in enumerate(profiles)
    }
    numbers = arrived
    if after.round == 0:
        numbers = {node: (its.given_place, natural(its.host), arrived[node]) for node, its in profiles.items()}
    keys = profiles[min(profiles, key=lambda node: numbers[node])].rank_keys
    for one, next_one in pairwise(profiles):
        mine, other = (_rank_of(node, keys, profiles, numbers) for node in (one, next_one))
        if mine > other:
            yield "S20", f"{one} has lower ranks than {next_one}, whose groups, place or last order are lower"


def _rank_of(
    node: Node, keys: tuple[str, ...], profiles: Mapping[Node, Profile], numbers: Mapping[Node, tuple[Any, ...]]
) -> tuple[Any, ...]:
    """Return what gives a node its rank: the first number of each of its groups, then its place, then its own number."""
    widths = range(1, len(keys) + 1)
    firsts = (
        min(
            numbers[each]
            for each in profiles
            if profiles[each].groups(keys[:width]) == profiles[node].groups(keys[:width])
        )
        for width in widths
    )
    return (*firsts, profiles[node].given_place, numbers[node])


_ORDER: tuple[type[Command], ...] = (Record, RecordUnstartable, RecordUnfit, End, Close, Leave, Signal)
"""The order of commands: what other nodes must know comes before this node's workers are stopped."""


def of_group(fact: Stepped) -> Iterator[Finding]:
    """Yield what one step of a worker group breaks by itself."""
    for number, what in _of_step(fact):
        yield number, f"{what}: {fact.before.phase.name} + {fact.event} -> {fact.after.phase.name}: {fact.commands}"


def _of_step(fact: Stepped) -> Iterator[Finding]:
    before, event, after, commands = fact.before, fact.event, fact.after, fact.commands
    kinds = [type(command) for command in commands]
    if after.phase is not before.phase and after.phase not in MOVES.get((before.phase, type(event)), ()):
        yield "G1", "not in the table"
    if before.notice and isinstance(event, Over) and (before.phase, after.phase) == (Phase.RUNNING, Phase.STOPPING):
        yield "G1", "stops, and does not leave, though it is drained and its round is over"
    if Start in kinds and (after.phase is not Phase.RUNNING or not after.running):
        yield "G1", "workers start outside RUNNING"
    if Move in kinds and before.phase is not Phase.MOVING:
        yield "G1", "workers move that wait for no world"
    if (Join in kinds or Check in kinds) and after.running and after.phase is not Phase.MOVING:
        yield "G2", f"joins while workers {sorted(after.running)} live"
    if Join in kinds and after.notice:
        yield "G2", "joins though it is drained"
    if Check in kinds and not before.settings.checks:
        yield "G7", "is checked, and has no check"
    if Join in kinds and before.settings.checks and not _may_join(before, event):
        yield "G7", "joins without the word of its check"
    yield from _of_moving(fact, Signal in kinds)
    ranked = [_ORDER.index(kind) for kind in kinds if kind in _ORDER]
    if ranked != sorted(ranked):
        yield "G3", "in the wrong order"
    if Signal in kinds and not before.running:
        yield "G3", "signals workers that are dead"
    ends_none = Record in kinds and End not in kinds and before.phase is not Phase.STOPPING
    if ends_none and before.settings.alone is None:
        yield "G4", "a failure that ends no round"
    if MarkDone in kinds and after.running:
        yield "G4", f"done while workers {sorted(after.running)} live"
    if MarkDone in kinds and after.notice and after.ready and after.settings.alone is None:
        yield "G4", f"done though workers {sorted(after.ready)} were ready to leave, and had work left"
    if before.phase is Phase.ENDED and (commands or after != before):
        yield "G5", "after the end"
    if isinstance(event, Signalled) and after.phase not in (Phase.LEAVING, Phase.ENDED):
        yield "G6", "a signal that is not heeded"
    if after.phase is Phase.ENDED and after.running:
        yield "G5", f"ended while workers {sorted(after.running)} live"
    again = isinstance(event, Signalled) and before.phase is Phase.LEAVING and before.running
    if again and Signal(SIGKILL) not in commands:
        yield "G6", "a second signal that does not kill"
    if Signal(SIGKILL) in commands and not _may_kill(before, event):
        yield "G6", "kills workers that have time left"
    if after.phase is Phase.LEAVING and not after.left and after.until is None:
        yield "G6", "leaves without end"
    stops = after.phase is Phase.STOPPING and before.phase is not Phase.STOPPING
    if stops and after.running and after.until is None and Signal(SIGKILL) not in commands:
        yield "G6", "stops without end"
    if Start in kinds and after.fence_at is not None and after.fence_at - fact.at < after.settings.ttl / 4:
        yield "F1", f"started at {fact.at:g}, to be fenced at {after.fence_at:g}"


def _may_kill(before: Group, event: Event) -> bool:
    """Return True if a second signal came, the workers have had their grace, the fence falls or the node must be gone."""
    if not isinstance(event, Elapsed):
        return isinstance(event, Signalled) and before.phase is Phase.LEAVING
    settings, is_told = before.settings, before.phase is Phase.LEAVING and not before.drained
    ends = (
        (before.stopped_at, settings.shutdown_timeout if is_told else settings.grace),
        (before.fence_at, 0.0),
        (before.gone_by, -KILL_S),
    )
    return any(since is not None and event.at >= since + span for since, span in ends)


def _may_join(before: Group, event: Event) -> bool:
    """Return True if a group with a check may join: the check found its node fit, or no failure of it ended the round."""
    match event:
        case Checked(is_fit):
            return is_fit
        case Over(by=by) if before.cause is Cause.UNKNOWN:
            return by not in (None, before.node)
        case _:
            return before.cause is Cause.ELSEWHERE and before.phase is not Phase.CHECKING


def _of_moving(fact: Stepped, signals: bool) -> Iterator[Finding]:
    """Yield what is wrong with workers that live through a change of nodes, or do not."""
    before, event, after = fact.before, fact.event, fact.after
    if before.settings.alone is None:
        if after.phase is Phase.MOVING:
            yield "G8", "workers live on that restart with all others"
        return
    if before.world is None or not before.running:
        return
    ended = isinstance(event, Over) and event.round == before.world.round and event.generation
    entered = before.phase is Phase.MOVING and isinstance(event, Ready) and event.world.generation
    stays = before.world.generation in (ended, entered)
    if stays and signals and not (before.failed or before.notice):
        yield "G8", "a change of nodes stops living workers"
    if not stays and (ended or entered) and after.phase in (Phase.RUNNING, Phase.MOVING):
        yield "G8", "workers live on though a round has failed since they started"


def fences(before: Group, event: Event, after: Group) -> bool:
    """Return True if this node stops its workers in this step because no heartbeat was acknowledged."""
    runs = before.phase in (Phase.RUNNING, Phase.MOVING)
    stops = runs and after.phase is Phase.STOPPING and isinstance(event, Elapsed)
    return stops and before.fence_at is not None and event.at >= before.fence_at
