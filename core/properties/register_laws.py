"""The laws of what is written to the register: rounds, seats, the budget and restores (S, V, B, R).

`verify`, `verify_step` and `verify_restore` judge most of them, and production runs these before each write. Here
stands what arms them. The laws that are functions need a memory or the edit, or a count of all seats.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

from ..rendezvous import Arrive, Complete, Evict, Leave, Proceed, RendezvousState, Restore, Status, Together
from ..rendezvous.actions import entrants
from ..rendezvous.state import AWAY, known_as, status_of
from ..world import Ending, Life, Node, Profile, Verdict, Why, natural
from .facts import Left, Wrote
from .law import ARMED, EXCUSED, Answers, Holds, Law, law

if TYPE_CHECKING:
    from .judge import Judge

State: TypeAlias = RendezvousState
Groups: TypeAlias = tuple[str, ...]
NOT_TAKEN = (Status.WAITING, Status.LEAVING, Status.ASIDE)
"""Who has such a seat takes no place in a round. (`lives` has a list of its own of what only presence can attest.)"""


def verified(number: str, when: str, holds: Holds, sentence: str, *by: type) -> Law:
    """Make a law that is judged by `verify`. It is armed where `holds` is true of the register before and after a write."""
    return Law(number, sentence, when, by or (Wrote,), holds=holds)


# --- what arms the laws that `verify` judges


def _ends(was: State, now: State) -> bool:
    return now.round > was.round


def _why(was: State, now: State, *whys: Why) -> bool:
    return now.round > was.round and now.ended is not None and now.ended.why in whys


def _set_aside(was: State, now: State) -> bool:
    """Return True if a node is set aside in the second of these registers, and was not in the first one."""
    return now.census[Status.ASIDE] > 0 and not {*now.those(Status.ASIDE)} <= {*was.those(Status.ASIDE)}


COMPLETE: tuple[str, Holds] = ("a write leaves a complete round", lambda was, now: now.complete)
OPEN: tuple[str, Holds] = ("a write leaves an open round", lambda was, now: not now.complete)
END: tuple[str, Holds] = ("a round ends", _ends)


# --- restores

R2 = verified(
    "R2",
    "a write of a life in which no world was complete before",
    lambda was, now: now.provisional or was.provisional,
    "A restored register says what it was made from, and only the completion of a world clears that.",
    Wrote,
    Restore,
)
R3 = verified(
    "R3",
    *COMPLETE,
    "A world stands exactly with the life in which it was completed, and its completion pins that life.",
)
R4 = verified(
    "R4",
    "a restore over another register",
    lambda found, now: found is not now,
    "A restore raises the epoch above both states, and the precedence unless it brings a verdict.",
    Restore,
)
R5 = verified(
    "R5",
    "a restore of a verdict, or over one",
    lambda found, now: bool(now.closed or found.closed),
    "The verdict of a job is never replaced by another one.",
    Restore,
)
R6 = verified(
    "R6",
    "a restore over the register of another job",
    lambda found, now: found.job != now.job,
    "A pinned life of another job is never replaced.",
    Restore,
)


@law("a restore", Restore)
def R7(judge: Judge, it: Wrote) -> Answers:
    """A restore writes what was held, except for what only presence can attest."""
    yield ARMED
    if any(seat.status in NOT_TAKEN for seat in it.after.seats.values()):
        yield "who waits, or is on its way out, is restored, and only presence can attest that"


@law("a write into a store that is a copy", Wrote, Restore)
def R8(judge: Judge, it: Wrote) -> Answers:
    """Nobody edits a register that another store had written."""
    if not it.here:
        yield ARMED
        if not it.restores:
            yield f"{it.edit} of {it.node} changes what another store had written"


@law("a life begins", Life)
def R9(judge: Judge, it: Wrote) -> Answers:
    """A life begins once."""
    yield ARMED
    if it.after.life in judge.begun:
        yield f"{it.node} begins {it.after.life}, which had begun before"


# --- safety

S1 = verified(
    "S1",
    "a write leaves a complete round complete",
    lambda was, now: was.complete and now.complete and was.round == now.round,
    "The world of a complete round does not change while the round stands.",
)
S4 = verified("S4", *COMPLETE, "A complete world has at least the minimum and at most the maximum of nodes.")
S22 = verified(
    "S22",
    "a write leaves a complete round, and worlds have whole units",
    lambda was, now: now.complete and now.limits.node_unit > 1,
    "A complete world has a multiple of `node_unit` nodes.",
)
S23 = verified(
    "S23",
    "a write leaves a complete round, and worlds have segments",
    lambda was, now: now.complete and bool(now.limits.segment),
    "Each `node_unit` members with successive ranks, from the first on, have one value of the label `segment`.",
)
S5 = verified(
    "S5",
    "a write leaves two seats or more",
    lambda was, now: len(now.seats) > 1,
    "The orders of the seats are unique, sorted and below `next_order`, and neither `next_order` nor `stale_before` "
    "decreases.",
)
S6 = verified(
    "S6", *END, "A write raises the round by at most 1, only from a complete round, and with a record of its end."
)
S7 = verified(
    "S7",
    "a write",
    lambda was, now: True,
    "Each write raises the version by exactly 1, keeps life, job and limits, and leaves one state for each version.",
    Wrote,
    Restore,
)
S10 = verified(
    "S10",
    "a write leaves a verdict",
    lambda was, now: now.closed is not None,
    "Nothing is written after the verdict, within one life.",
)
S14 = verified(
    "S14",
    "a job is closed as succeeded",
    lambda was, now: now.closed is not None and now.closed.ending is Ending.SUCCEEDED,
    "A job is closed SUCCEEDED only from a complete round in which nobody is IN and somebody is DONE or GONE.",
)


@law("a node arrives whose slot has another seat", Wrote)
def S8(judge: Judge, it: Wrote) -> Answers:
    """Of each slot at most one incarnation has a seat that is neither GONE nor ABSENT."""
    if isinstance(it.edit, Arrive) and any(kin.slot == it.node.slot and kin != it.node for kin in it.was.seats):
        yield ARMED


@law("a seat becomes DONE, or RESERVE", Wrote)
def S14b(judge: Judge, it: Wrote) -> Answers:
    """A seat becomes DONE only if all workers of its node succeeded in that world, and RESERVE only if they have no work in
    it."""
    for node in it.after.those(Status.DONE):
        if status_of(it.was, node) is not Status.DONE:
            yield ARMED
            if (node, it.after.world_id) not in judge.succeeded:
                yield f"{node} is done in round {it.after.round}, in which its workers have not succeeded"


@law("a node is told that it has left", Wrote, Restore, Left)
def S15(judge: Judge, it: Wrote | Left) -> Answers:
    """A node that was told that it left gets no seat again and comes back to none, but by a restore of an older register,
    or by its own first write that comes late into a store that has forgotten."""
    if isinstance(it, Left):
        yield ARMED
        return
    is_excused = it.restores or (it.before is None and judge.register is not None)
    for node in sorted(judge.left):
        was, now = status_of(it.was, node), status_of(it.after, node)
        if (now and it.restores) or (now and was is None) or (was is Status.EXPECTED and now is Status.IN):
            if not is_excused:
                yield f"{node} is seated after it had left"
            yield ARMED
            yield EXCUSED


@law("a batch seats a node", Wrote)
def S19(judge: Judge, it: Wrote) -> Answers:
    """A batch seats only a node that proposes to enter in the present era, in an open round, beside no other program of its
    role and no loopback address of another host, and ends that era."""
    was, now = it.was, it.after
    if not isinstance(it.edit, Together) or not (entered := [node for node in now.seats if node not in was.seats]):
        return
    yield ARMED
    names, called = ", ".join(map(str, entered)), entrants(it.edit.proposals, was.era)
    if was.complete or any(node not in called for node in entered):
        yield f"{names} are seated without a proposal to enter that counts"
    if now.stale_before != now.version:
        yield f"{names} are seated by proposals that count again"
    for node in entered:
        if node != it.node and is_beside_another_program(now, node, now.seats[node].profile):  # it judges itself
            yield f"{node} is seated, and others of its role run another program"
        if node != it.node and beyond_a_loopback(now, node, now.seats[node].profile, leased=False):
            yield f"{node} is seated, and another host's address or its own is a loopback one"


def beyond_a_loopback(state: State, node: Node, profile: Profile, leased: bool) -> set[Node]:
    """Return the nodes of other hosts that are there, where the address of one of the two leads each host to itself; in an
    etcd (`leased`) of both, too."""
    others = [(other, seat.profile) for other, seat in state.seats.items() if seat.status not in AWAY]
    apart = [(other, its) for other, its in others if other.slot != node.slot and its.host != profile.host]
    local = {other for other, its in apart if its.has_loopback}
    return ({other for other, _ in apart} - (set() if leased else local)) if profile.has_loopback else local


def is_beside_another_program(state: State, node: Node, profile: Profile) -> bool:
    """Return True if others of its role that are there run a program of another name."""
    others = [seat for other, seat in state.seats.items() if other.slot != node.slot and seat.status not in AWAY]
    named = {seat.profile.program for seat in others if seat.profile.role == profile.role} - {""}
    return bool(profile.program) and bool(named - {profile.program})


@law("a world of several nodes is completed", Wrote)
def S20(judge: Judge, it: Wrote) -> Answers:
    """When a world is completed, its members are in the [order of ranks](#the-order-of-ranks).

    A node has a number by the seats as they stood before. Who comes with this write comes last; several that do may stand in
    any order. In the first round the number is by place and host. Two nodes of one group are compared by their places, then
    by these numbers. Two nodes of unlike groups are compared by the first numbers of the widest groups in which they differ.
    """
    was, now = it.was, it.after
    if not it.completes or len(now.members) < 2:
        return
    yield ARMED
    profiles = {node: now.seats[node].profile for node in now.members}
    arrived: dict[Node, tuple[Any, ...]] = {
        node: (was.seats[node].order,) if node in was.seats else (was.next_order, rank)
        for rank, node in enumerate(profiles)
    }
    numbers = arrived
    if now.round == 0:
        numbers = {node: (its.given_place, natural(its.host), arrived[node]) for node, its in profiles.items()}
    keys = profiles[min(profiles, key=lambda node: numbers[node])].rank_keys
    groups = {node: its.groups(keys) for node, its in profiles.items()}
    if now.limits.segment:
        groups = {node: _in_its_segment(node, now, groups, numbers) for node in profiles}
    for one, next_one in pairwise(profiles):
        mine, other = (_rank_of(node, groups, profiles, numbers) for node in (one, next_one))
        if mine > other:
            yield f"{one} has lower ranks than {next_one}, whose groups, place or last order are lower"


def _rank_of(
    node: Node, groups: Mapping[Node, Groups], profiles: Mapping[Node, Profile], numbers: Mapping[Node, tuple[Any, ...]]
) -> tuple[Any, ...]:
    """Return what gives a node its rank: the first number of each of its groups, then its place, then its own number."""
    widths = range(1, len(groups[node]) + 1)
    firsts = (
        min(numbers[each] for each in profiles if groups[each][:width] == groups[node][:width]) for width in widths
    )
    return (*firsts, profiles[node].given_place, numbers[node])


def _in_its_segment(
    node: Node, state: State, groups: Mapping[Node, Groups], numbers: Mapping[Node, tuple[Any, ...]]
) -> Groups:
    """Return the groups of a node where worlds have segments: those of the first node with its value, the value, its own."""
    value = state.value(node)
    first = min((each for each in groups if state.value(each) == value), key=lambda each: numbers[each])
    return (*groups[first], value, *groups[node])


# --- the shape of the register

V1 = verified("V1", *COMPLETE, "In a complete round no seat is EXPECTED.")
V2 = verified("V2", *OPEN, "In an open round no seat is DONE, GONE, RESERVE or ABSENT.")
V3 = verified(
    "V3",
    *OPEN,
    "In an open round the seats that are IN or EXPECTED do not exceed the maximum, but for jobs of segments.",
)
V5 = verified("V5", *OPEN, "In an open round `quorum_at` is set exactly while the nodes that are IN make the minimum.")
V9 = verified(
    "V9",
    "a round ends for a newcomer",
    lambda was, now: _why(was, now, Why.UPSCALE),
    "A newcomer ends no round in which a member is DONE or GONE.",
)
V12 = verified(
    "V12",
    "a round ends by a member",
    lambda was, now: _why(was, now, Why.FAILED, Why.UPSCALE, Why.FENCED),
    "Only a member ends a round as FAILED, UPSCALE or FENCED.",
)
V13 = verified(
    "V13",
    "a world with the digest of a policy stands",
    lambda was, now: bool(was.policy or now.policy),
    "The policy's digest stands only with a complete round, does not change while it stands, and is written by a node "
    "with a policy that completes a world.",
)
V15 = verified(
    "V15",
    "a seat has a notice",
    lambda was, now: bool(now.noticed),
    "A seat with a notice is a member's of a complete round, or LEAVING, and no seat is LEAVING without one.",
)
V16 = verified(
    "V16",
    "a write follows a state in which a seat has a notice",
    lambda was, now: bool(was.noticed),
    "A notice stands until its node has no seat: it is neither taken back nor put off, and who is LEAVING is nothing "
    "else again.",
)
V17 = verified(
    "V17",
    "a write leaves a node that is set aside",
    lambda was, now: now.census[Status.ASIDE] > 0,
    "Of each node that is ASIDE the register says for how long.",
)
V18 = verified(
    "V18",
    "a write leaves an open round in which a node is set aside",
    lambda was, now: now.census[Status.ASIDE] > 0 and not now.complete,
    "In an open round nobody is ASIDE while those that are IN or EXPECTED are fewer than the minimum.",
)
V19 = verified(
    "V19",
    "a node is set aside",
    _set_aside,
    "A node becomes ASIDE only in an open round that its own failure began, after too many failures, with nobody "
    "EXPECTED and within the budget, and the others have their minimum.",
)
V20 = verified(
    "V20",
    "a node is set aside no longer",
    lambda was, now: _set_aside(now, was),
    "A node that is ASIDE is called back only while the others are fewer than the minimum, and whoever is ASIDE no "
    "longer is charged with nothing.",
)
V21 = verified(
    "V21",
    *END,
    "The generation is no later than the round, becomes the new round by an end as FAILED, and changes by nothing "
    "else.",
)


V22 = verified(
    "V22",
    "a world of whole units is completed, and somebody waits",
    lambda was, now: now.limits.node_unit > 1 and _completes(was, now) and now.census[Status.WAITING] > 0,
    "The write that completes a world leaves nobody waiting who would make it larger: with room for a unit, fewer nodes "
    "than one.",
)


def units(state: State, nodes: Sequence[Node]) -> Sequence[Sequence[Node]]:
    """Return the whole units that these nodes make, segments where worlds have those, by their first nodes."""
    unit, segment, kin = state.limits.node_unit, state.limits.segment, dict[str, list[Node]]()
    for node in nodes:
        value = segment and state.seats[node].profile.groups((segment,))[0]
        if value or not segment:
            kin.setdefault(value, []).append(node)
    whole = [those[at : at + unit] for those in kin.values() for at in range(0, len(those) - unit + 1, unit)]
    return sorted(whole, key=lambda those: nodes.index(those[0]))


def _completes(was: State, now: State) -> bool:
    return now.complete and (now.round > was.round or not was.complete)


@law("a world of whole units is completed, and a participant waits", Wrote)
def V23(judge: Judge, it: Wrote) -> Answers:
    """Which participants are over the last whole unit: no member of the last world that has kept its seat, while a node that
    was none becomes a member; where worlds have segments, while one with its value does, or while it makes a whole segment
    with others that wait."""
    now = it.after
    if not it.completes or now.limits.node_unit == 1:
        return
    over = [node for node in now.those(Status.WAITING) if status_of(it.was, node) is not Status.WAITING]
    if over:
        yield ARMED
    others = [node for node in now.members if node not in judge.stayed]
    whole = [node for unit in units(now, over) for node in unit]
    taken = {now.value(node) for node in others}
    moved = sorted(node for node in judge.stayed.intersection(over) if now.value(node) in taken or node in whole)
    if moved and others:
        yield f"{', '.join(map(str, moved))} ran in the last world and wait, and others have taken their places"


@law("a write leaves an open round in which somebody waits", Wrote)
def V4(judge: Judge, it: Wrote) -> Answers:
    """In an open round nobody is WAITING while there is room, which there always is in a job of segments."""
    now = it.after
    if now.complete or not now.census[Status.WAITING]:
        return
    yield ARMED
    if now.round > it.was.round or now.closed:
        return
    taken = sum(seat.status not in NOT_TAKEN for seat in now.seats.values())
    if taken < now.limits.max_nodes or now.limits.segment:
        yield f"somebody waits, and only {taken} of {now.limits.max_nodes} seats are taken"


@law("a round completes without a last call", Wrote)
def V6(judge: Judge, it: Wrote) -> Answers:
    """A round completes at once when the maximum is in and nobody is EXPECTED, and without a last call only at the maximum
    or the target."""
    now = it.after
    if not it.completes or isinstance(it.edit, Complete):
        return
    yield ARMED
    came = len(now.members) + now.census[Status.WAITING]  # some may be over the last whole unit
    if now.round == it.was.round and len(now.members) < now.limits.max_nodes and not 0 < now.target <= came:
        yield f"complete without a last call, with {came} of up to {now.limits.max_nodes} nodes"


@law("a round ends, or one that was expected is dropped", Wrote)
def V7(judge: Judge, it: Wrote) -> Answers:
    """The target of a round after the first is the number of members that can still come back; it falls by each EXPECTED
    seat that is dropped and, above 1, by the node that is set aside, and rises by each that is called back."""
    was, now = it.was, it.after
    if now.round > was.round or any(node not in now.seats for node in was.expected):
        yield ARMED
    if now.round > was.round:
        return
    dropped = [node for node in was.expected if status_of(now, node) in (None, Status.LEAVING)]
    aside = [node for node in now.those(Status.ASIDE) if status_of(was, node) is not Status.ASIDE]
    called = [node for node in now.expected if status_of(was, node) is Status.ASIDE]
    kept = max(was.target - len(dropped), 0)
    if now.target != kept - (bool(aside) and kept > 1) + len(called):
        ways = f"{len(dropped)} dropped, {len(aside)} set aside and {len(called)} called back"
        yield f"{ways}, but the target went from {was.target} to {now.target}"


@law("a round ends as lost or left", Wrote)
def V8(judge: Judge, it: Wrote) -> Answers:
    """A round ends as LOST only if a node that was IN is gone, and as LEFT only without the node that left."""
    now = it.after
    if now.round == it.was.round or now.ended is None or now.ended.why not in (Why.LOST, Why.LEFT):
        return
    yield ARMED
    if now.ended.why is Why.LEFT and now.ended.by in now.seats:
        yield f"the round ended because {now.ended.by} left, but it is still seated"


@law("a round ends", Wrote)
def V10(judge: Judge, it: Wrote) -> Answers:
    """After an end every old member is EXPECTED or has no seat, and none that was GONE is expected back."""
    if it.after.round == it.was.round:
        return
    yield ARMED
    if any(seat.status is Status.GONE and node in it.after.seats for node, seat in it.was.seats.items()):
        yield "who had left after it was done is expected back"


@law("a write in an open round that has its quorum", Wrote)
def V11(judge: Judge, it: Wrote) -> Answers:
    """`quorum_at` does not move while the quorum stands, and is not older than its round."""
    was, now = it.was, it.after
    if was.quorum_at is not None and now.round == was.round and not now.complete:
        yield ARMED
    if now.round > was.round and now.quorum_at not in (None, now.version):
        yield f"the quorum of a new round is older than the round: version {now.quorum_at}"


@law("an operator closes a job", Wrote)
def V14(judge: Judge, it: Wrote) -> Answers:
    """A job that is closed in an operator's name was there, is cancelled, and no node with a seat has closed it."""
    if it.after.closed is not None and it.after.closed.why is Why.OPERATOR:
        yield ARMED
        if it.before is None:
            yield f"{it.node} closes a job that is not there, in an operator's name"


# --- the budget

B1 = verified(
    "B1",
    "a write leaves an open round over the budget",
    lambda was, now: not now.complete and now.over_budget,
    "No round is complete while the failures exceed the budget.",
)
B6 = verified(
    "B6",
    "a write leaves a fruitless round",
    lambda was, now: bool(now.fruitless),
    "A job is closed as FRUITLESS by the write that makes its fruitless rounds in a row as many as `give_up_after`, and by "
    "no other, unless it is over the budget.",
)
B3 = verified(
    "B3",
    "a job is closed as failed, over its budget",
    lambda was, now: _has_failed(now.closed),
    "A job is closed FAILED only over the budget with nobody EXPECTED, as FRUITLESS, or because the program cannot be "
    "started.",
)


_EXCUSED = (Why.CANNOT_START, Why.FRUITLESS)


def _has_failed(verdict: Verdict | None) -> bool:
    return verdict is not None and verdict.ending is Ending.FAILED and verdict.why not in _EXCUSED


@law("a round ends, or a failure is refunded", Wrote)
def B2(judge: Judge, it: Wrote) -> Answers:
    """A round that ends as FAILED costs one failure, no other end costs any, and only a refund gives one back."""
    was, now = it.was, it.after
    if now.round > was.round or now.failures != was.failures:
        yield ARMED
    ended = was.ended
    loses = isinstance(it.edit, Evict) or (was.provisional and isinstance(it.edit, Arrive | Together))
    if now.round > was.round or was.complete or not loses or ended is None:
        return
    gone = [node for node in was.those(Status.EXPECTED, Status.LEAVING) if node not in now.seats and node != ended.by]
    if gone and ended.why is Why.FAILED and now.failures == was.failures:
        yield "the loss of a member is charged as the failure that it led to"


@law("a round ends, or the fruitless rounds become others", Wrote)
def B7(judge: Judge, it: Wrote) -> Answers:
    """Where a job may give up, a round is fruitless that ends as LOST (of drained nodes alone: not) or FENCED, for the
    return of a node that was lost in one, for newcomers if one is lost before the next world, or as FAILED if
    failures count; no other is, nor one that made progress, and all count until a round makes progress."""
    was, now = it.was, it.after
    if now.limits.give_up_after and _comes_to_nothing(it) and now.fruitless[-1:] != (now.ended,):
        yield ARMED
        yield f"{it.edit} of {it.node}: the round that ended for a newcomer does not count, and that is lost"
    if not now.limits.give_up_after or (now.round == was.round and now.fruitless == was.fruitless):
        return
    yield ARMED
    if now.round == was.round:
        if not isinstance(it.edit, Proceed if was.complete else Evict | Arrive | Together):
            yield f"{it.edit} of {it.node} changes which rounds were fruitless"
        return
    lost = {name for ended in was.fruitless for name in ended.lost}
    returns = not was.progressed and not lost.isdisjoint(known_as(was, was.wait_list))
    assert now.ended is not None  # S6
    if now.ended.why is Why.UPSCALE and (now.fruitless != was.fruitless) is not returns:
        yield f"the round of {len(was.fruitless)} fruitless ones before ended for {', '.join(map(str, was.wait_list))}"


@law("a start is lost, or a node leaves whose starts were", Wrote)
def B8(judge: Judge, it: Wrote) -> Answers:
    """The register remembers the last 32 nodes that were thrown out and had no notice, until a node of their slot leaves."""
    was, now, edit = it.was, it.after, it.edit
    out = [node for node, seat in was.seats.items() if seat.status not in (Status.GONE, Status.ABSENT)]
    lost = [node for node in out if not was.seats[node].notice and _is_out(now, node)]
    thrown = sorted(lost) if isinstance(edit, Evict | Arrive | Together) else []
    stay = [node for node in was.lost_starts if not (isinstance(edit, Leave) and node.slot == it.node.slot)]
    if thrown or was.lost_starts != now.lost_starts:
        yield ARMED
    if not was.closed and now.lost_starts != tuple([*stay, *thrown][-32:]):
        yield f"{list(map(str, now.lost_starts))} are remembered as lost after {edit} of {it.node}"


def _is_out(state: RendezvousState, node: Node) -> bool:
    seat = state.seats.get(node)
    return seat is None or seat.status in (Status.GONE, Status.ABSENT)


def _comes_to_nothing(it: Wrote) -> bool:
    """Return True if a node without notice is thrown out of an open round for which the last one had ended."""
    was, ended = it.was, it.was.ended
    if was.complete or was.progressed or was.closed or ended is None or ended.why is not Why.UPSCALE:
        return False
    dead = it.edit.dead if isinstance(it.edit, Evict) else ()
    return any(node in was.seats and not was.seats[node].notice and node not in it.after.seats for node in dead)


@law("a write leaves failures", Wrote)
def B4(judge: Judge, it: Wrote) -> Answers:
    """The failures never exceed the number of worlds in which a worker failed."""
    if not it.after.failures:
        return
    yield ARMED
    failed = judge.failed.get(it.after.job, ())
    if it.after.failures > len(failed):
        rounds = sorted(world.round for world in failed)
        yield f"{it.after.failures} failures, but workers failed in rounds {rounds}"
