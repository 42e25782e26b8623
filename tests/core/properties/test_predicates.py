"""Each property can fail: the judge finds the smallest lie about a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from attrs import evolve
from groups import ALONE, CHECKED, FENCED, GROUPS, RUN, SUCCEED, beat, closed, exited, led, lost, noticed, over, ready
from worlds import arrived, circles, circling, edited, holding, node, profile, register, running

from elastic.core.group import Group, Phase, Settings, transition
from elastic.core.group.state import (
    SIGKILL,
    Check,
    Checked,
    Command,
    Course,
    Deadline,
    Departure,
    Elapsed,
    End,
    Event,
    Failures,
    Heart,
    Join,
    LeaveReason,
    MarkDone,
    Move,
    Noticed,
    Over,
    Raised,
    Record,
    Signal,
    Signalled,
    Start,
    StartAgain,
    Stop,
    Wait,
)
from elastic.core.group.state import Close as CloseJob
from elastic.core.group.state import Reaped as GroupReaped
from elastic.core.properties.facts import (
    Fact,
    Failed,
    Left,
    Moved,
    Reaped,
    Started,
    Stepped,
    Succeeded,
    WaitsForever,
    Wrote,
)
from elastic.core.properties.group_laws import fences
from elastic.core.properties.judge import ASKED, Judge
from elastic.core.properties.law import Strength
from elastic.core.properties.law import findings as found
from elastic.core.ranks import Ranks, WorkerRanks, assign
from elastic.core.rendezvous import (
    Arrive,
    Close,
    Complete,
    Done,
    Drain,
    Edit,
    Ended,
    Evict,
    Leave,
    Proceed,
    Proposal,
    RendezvousState,
    Restore,
    Seat,
    Status,
    Together,
    Token,
    Violation,
    join,
    restored,
    watch,
)
from elastic.core.rendezvous import End as EndEdit
from elastic.core.world import (
    Ending,
    Endpoint,
    Life,
    Node,
    Notice,
    Verdict,
    Why,
    World,
    WorldId,
    place_label,
    rank_policy_label,
    world_of,
)

TWO = running("a b", restarts=3)
WORLD = TWO.world
A, B = node("a"), node("b")


def judged(*facts: Fact, judge: Judge | None = None) -> Judge:
    judge = judge or Judge()
    for fact in facts:
        judge.saw(fact)
    return judge


def wrote(before: RendezvousState | None, who: str, edit: Edit, after: RendezvousState | None = None) -> Wrote:
    """Return the fact of a write; `after` is its state if the edit does not make it."""
    if after is None:
        assert before is not None
        after = edited(before, who, edit)
    return Wrote(node(who), before, edit, after)


def broken(number: str, *facts: Fact, judge: Judge | None = None) -> None:
    with pytest.raises(Violation) as found:
        judged(*facts, judge=judge)
    assert found.value.number == number


NEXT = edited(TWO, "a", EndEdit(0, Why.FAILED))
BACK = edited(edited(NEXT, "a", Arrive(TWO.seats[A].profile)), "b", Arrive(TWO.seats[B].profile))


def test_a_run_that_is_well_breaks_nothing() -> None:
    judge = judged(
        Started(A, WORLD),
        Started(B, WORLD),
        Failed(A, WORLD.id),
        Reaped(A),
        wrote(TWO, "a", EndEdit(0, Why.FAILED)),
        Reaped(B),
        Started(A, BACK.world),
        Started(B, BACK.world),
        Reaped(B),
        Succeeded(B, BACK.world.id),
        wrote(BACK, "b", Done(1)),
        Left(A),
    )
    assert judge.register is not None and judge.register.seats[B].status is Status.DONE


def test_a_first_write_is_judged_from_nothing() -> None:
    first = arrived(register("2"), "a")
    assert judged(wrote(None, "a", Arrive(first.seats[A].profile), first)).register is first


def test_S2_another_world_of_the_same_round() -> None:
    broken("S2", Started(A, WORLD), Started(B, evolve(WORLD, failures=1)))


def _shifted(by: int) -> Callable[[World], Mapping[Node, Ranks]]:
    """Return a policy whose ranks are all wrong by so much."""

    def policy(world: World) -> Mapping[Node, Ranks]:
        return {
            who: evolve(ranks, workers=tuple(evolve(worker, rank=worker.rank + by) for worker in ranks.workers))
            for who, ranks in assign(world).items()
        }

    return policy


def _crowded(world: World) -> Mapping[Node, Ranks]:
    """Return the ranks of a world with one worker more than a node has."""
    return {
        who: evolve(ranks, workers=(*ranks.workers, WorkerRanks(ranks.world_size, 1, 0)))
        for who, ranks in assign(world).items()
    }


def _empty(world: World) -> Mapping[Node, Ranks]:
    """Return the ranks of a world without workers."""
    return {who: evolve(ranks, workers=(), world_size=0) for who, ranks in assign(world).items()}


def _sized(size: int) -> Callable[[World], Mapping[Node, Ranks]]:
    """Return a policy that tells all nodes this world size."""

    def policy(world: World) -> Mapping[Node, Ranks]:
        return {who: evolve(ranks, world_size=size) for who, ranks in assign(world).items()}

    return policy


@pytest.mark.parametrize(
    "policy",
    [_shifted(1), _shifted(-1), _crowded, _empty, _sized(9), _sized(0)],
    ids=["too high", "too low", "too many", "none", "too large a world", "too small a world"],
)
def test_S3_ranks_that_are_not_dense(policy: Callable[[World], Mapping[Node, Ranks]]) -> None:
    broken("S3", Started(A, world_of(WORLD.id, WORLD.members[:1])), judge=Judge(assign=policy))


ENDED = Ended(0, Why.FAILED, A)


def completed(round: int, line: str, *seated: tuple[str, str, str], latest: str = "") -> Wrote:
    """Return the write that completes a round of these nodes, each with its place and rack, in the order `line`.

    They stood in the order in which they are named; those in `latest` come with this write. Their hosts are their names.
    """
    said = {
        name: evolve(
            holding(name, None).who.profile,
            labels=(place_label((int(place),)), *((("rack", rack), rank_policy_label(("rack",))) if rack else ())),
        )
        for name, place, rack in seated
    }
    blank = evolve(register(str(len(said)), 1), round=round, target=len(said))
    opened = {node(name): Seat(Status.IN, order, said[name]) for order, name in enumerate(said) if name not in latest}
    before = evolve(blank, version=7, seats=opened, next_order=len(opened), job="job", ended=ENDED if round else None)
    seats = {node(name): Seat(Status.IN, order, said[name]) for order, name in enumerate(line)}
    done = evolve(before, version=8, seats=seats, next_order=len(line), complete=True, completed_in=before.life)
    return Wrote(node(line[-1]), before, Complete(round), done)


def findings(fact: Wrote) -> set[str]:
    """Return the laws that this write breaks, but for those that `verify` judges."""
    return {number for number, _ in found(ASKED[Wrote], Judge(), fact, Strength())}


@pytest.mark.parametrize(
    ("round", "line", "wrong", "seated"),
    [
        (0, "ab", "ba", ("b00", "a00")),
        (0, "ba", "ab", ("a10", "b00")),
        (1, "ba", "ab", ("b00", "a00")),
        (1, "ab", "ba", ("b10", "a00")),
        (0, "acb", "abc", ("c0x", "b0y", "a0x")),
        (0, "bac", "abc", ("c1x", "b0y", "a1x")),
        (1, "cab", "abc", ("c0x", "b0y", "a0x")),
        (1, "acb", "cab", ("c1x", "b0y", "a0x")),
    ],
    ids=["hosts", "places", "as before", "places later", "racks", "first racks", "racks later", "places in a rack"],
)
def test_S20_a_world_in_another_order(round: int, line: str, wrong: str, seated: tuple[str, ...]) -> None:
    those = [(text[0], text[1], text[2].strip("0")) for text in seated]
    assert findings(completed(round, line, *those)) == set()
    assert findings(completed(round, wrong, *those)) == {"S20"}


def test_S20_who_comes_with_the_write_comes_last_in_any_order() -> None:
    those = [("c", "0", ""), ("b", "0", ""), ("a", "0", "")]
    for line in ("cab", "cba"):
        assert findings(completed(1, line, *those, latest="ab")) == set()
    assert findings(completed(1, "acb", *those, latest="ab")) == {"S20"}


def test_S9_workers_of_a_member_still_run() -> None:
    broken("S9", Started(A, WORLD), Started(B, BACK.world))


def test_S9_strong_with_a_fence_those_of_an_evicted_node_are_dead_too() -> None:
    alone = world_of(WORLD.id._replace(round=1), WORLD.members[1:])
    judged(Started(A, WORLD), Started(B, alone))
    broken("S9 strong", Started(A, WORLD), Started(B, alone), judge=Judge(fenced=True))
    judged(Started(A, WORLD), Started(B, alone), judge=Judge(fenced=True, excused={A: 9.0}))
    judged(Started(A, WORLD), Started(B, alone), judge=Judge(fenced=True, leaving={A}))
    judged(Started(A, WORLD), Started(B, alone), judge=Judge(fenced=True, superseded={A}))


AFTER = arrived(edited(TWO, "a", EndEdit(0, Why.UPSCALE)), "a b")
"""The next world of the same generation."""


def test_S9_workers_that_restart_alone_live_on_beside_those_of_their_generation() -> None:
    alone = Stepped(ON, lost(), WAY, (), 1.0)
    starts = Started(A, WORLD), Started(B, WORLD)
    broken("S9", *starts, Reaped(A), Started(A, AFTER.world))
    judge = judged(*starts, alone, evolve(alone, after=evolve(WAY, node=B)), Reaped(A), Started(A, AFTER.world))
    judged(Moved(B, AFTER.world), judge=judge)
    assert judge.running[B] == AFTER.world
    broken("S9", Started(B, WORLD), alone, evolve(alone, after=evolve(WAY, node=B)), Started(A, BACK.world))
    broken("S9", *starts, alone, evolve(alone, after=evolve(WAY, node=B)), Moved(A, BACK.world))


def test_who_moves_without_a_worker_runs_nothing() -> None:
    assert judged(Moved(A, WORLD)).running == {}


def test_S9_asks_nothing_of_another_life() -> None:
    judged(Started(A, WORLD), Started(B, evolve(BACK.world, id=WorldId(Life("new", TWO.life.epoch), BACK.world.round))))


def test_a_superseded_node_is_remembered() -> None:
    after = edited(TWO, "a#2", Arrive(TWO.seats[A].profile))
    assert judged(wrote(TWO, "a#2", Arrive(TWO.seats[A].profile), after)).superseded == {A}


def test_S14b_done_without_success() -> None:
    broken("S14b", wrote(TWO, "b", Done(0)))


def test_S15_seated_after_it_had_left() -> None:
    spare = running("a", size="1")
    broken("S15", Left(B), wrote(spare, "b", Arrive(TWO.seats[B].profile)))


def test_S15_seated_by_its_own_write_in_a_store_that_has_forgotten() -> None:
    again, arrive = restored(Restore(TWO, "again"), None), Arrive(TWO.seats[B].profile)
    without = edited(again, "b", Leave())
    restores = Wrote(A, None, Restore(without, "third"), restored(Restore(without, "third"), None))
    broken("S15", Left(B), restores, wrote(restores.after, "b", arrive))


def test_S15_comes_back_to_the_seat_that_an_older_restore_has_given_it() -> None:
    again = edited(restored(Restore(TWO, "again"), None), "a", EndEdit(0, Why.UPSCALE))
    broken("S15", Left(B), wrote(again, "b", Arrive(TWO.seats[B].profile)))


def test_S15_is_excused_where_an_older_state_is_restored_or_a_store_has_forgotten_before_a_first_write() -> None:
    restores = Wrote(A, None, Restore(TWO, "again"), restored(Restore(TWO, "again"), None))
    first = wrote(None, "b", Arrive(TWO.seats[B].profile), arrived(register("2"), "b"))
    lost = evolve(register("2"), life=Life("lost"), job="lost")
    earlier = wrote(None, "a", Arrive(TWO.seats[A].profile), arrived(lost, "a"))
    for facts in ((restores,), (earlier, first)):
        strength = judged(Left(B), *facts).strength
        assert (strength.armed["S15"], strength.excused["S15"]) == (2, 1)
    broken("S15", Left(B), first)


def test_a_leaving_that_leaves_the_seats_as_they_are_breaks_nothing() -> None:
    judged(Left(node("c")), wrote(TWO, "c", Leave()))


BEGUN = arrived(register("4"), "a")
ENTERS = Proposal(BEGUN.era, Arrive(profile("b")), enters=True)


@pytest.mark.parametrize(
    "proposals",
    [{}, {B: evolve(ENTERS, enters=False)}, {B: evolve(ENTERS, era=Token(BEGUN.life, BEGUN.version))}],
    ids=["none", "of a member", "of another era"],
)
def test_S19_seated_without_a_proposal_that_counts(proposals: Mapping[Node, Proposal]) -> None:
    broken("S19", wrote(BEGUN, "b", Together(proposals), edited(BEGUN, "b", Together({B: ENTERS}))))


def test_S19_seated_in_a_world_that_stands() -> None:
    waits = arrived(running("a", size="1:2"), "b")
    runs, enters = running("a", size="1:2"), evolve(ENTERS, era=running("a", size="1:2").era)
    broken("S19", wrote(runs, "b", Together({B: enters}), evolve(waits, stale_before=waits.version)))


def test_S19_seated_by_a_proposal_that_counts_again() -> None:
    entered = edited(BEGUN, "b", Together({B: ENTERS}))
    judged(wrote(BEGUN, "b", Together({B: ENTERS}), entered))
    broken("S19", wrote(BEGUN, "b", Together({B: ENTERS}), evolve(entered, stale_before=0)))


def test_S19_seated_though_a_loopback_address_is_between_two_hosts() -> None:
    local = evolve(profile("b"), endpoint=Endpoint("localhost", 1))
    enters = Proposal(BEGUN.era, Arrive(local), enters=True)
    seat = edited(BEGUN, "b", Together({B: ENTERS})).seats[B]
    entered = evolve(edited(BEGUN, "b", Together({B: ENTERS})), seats={**BEGUN.seats, B: evolve(seat, profile=local)})
    broken("S19", wrote(BEGUN, "a", Together({B: enters}), entered))
    judged(wrote(BEGUN, "b", Together({B: enters}), entered))


def test_S19_seated_beside_another_program() -> None:
    named = evolve(profile("b"), program="other.py")
    enters = Proposal(BEGUN.era, Arrive(named), enters=True)
    entered = edited(BEGUN, "b", Together({B: enters}))
    judged(wrote(BEGUN, "a", Together({B: enters}), entered))
    a = evolve(BEGUN.seats[A], profile=evolve(BEGUN.seats[A].profile, program="train.py"))
    before = evolve(BEGUN, seats={A: a})
    seats = {A: a, B: entered.seats[B]}
    broken("S19", wrote(before, "a", Together({B: enters}), evolve(entered, seats=seats)))
    judged(wrote(before, "b", Together({B: enters}), evolve(entered, seats=seats)))


def test_S17_started_twice() -> None:
    broken("S17", Started(A, WORLD), Reaped(A), Started(A, WORLD))


def test_B4_more_failures_than_rounds_that_failed() -> None:
    broken("B4", wrote(TWO, "a", EndEdit(0, Why.FAILED)))


def test_V6_complete_below_the_maximum_without_a_last_call() -> None:
    first = arrived(register("1:2"), "a")
    broken(
        "V6",
        wrote(
            None, "a", Arrive(first.seats[A].profile), evolve(first, complete=True, completed_in=first.life, base=())
        ),
    )
    judged(wrote(first, "a", Complete(0)))


def test_V7_a_dropped_seat_that_is_still_waited_for() -> None:
    broken("V7", wrote(NEXT, "a", Evict(frozenset({B})), evolve(edited(NEXT, "a", Evict(frozenset({B}))), target=2)))


def test_B2_a_loss_that_is_charged_as_the_failure_that_it_led_to() -> None:
    refunded = edited(NEXT, "a", Evict(frozenset({B})))
    charged = evolve(refunded, failures=1, ended=NEXT.ended)
    broken("B2", wrote(NEXT, "a", Evict(frozenset({B})), charged))
    judged(wrote(NEXT, "a", Evict(frozenset({B}))))


def test_B2_a_death_with_the_store_that_is_charged_as_the_failure_that_it_led_to() -> None:
    before = restored(Restore(NEXT, "again"), None)
    refunded = edited(before, "b#2", Arrive(profile("b")))
    charged = evolve(refunded, failures=1, ended=NEXT.ended)
    broken("B2", wrote(before, "b#2", Arrive(profile("b")), charged))
    judged(wrote(before, "b#2", Arrive(profile("b"))))


def test_V11_a_quorum_that_is_older_than_its_round() -> None:
    grown = edited(arrived(running("a", size="1:2"), "b"), "a", EndEdit(0, Why.UPSCALE))
    assert grown.quorum_at == grown.version
    before = arrived(running("a", size="1:2"), "b")
    broken("V11", wrote(before, "a", EndEdit(0, Why.UPSCALE), evolve(grown, quorum_at=1)))


def test_V8_a_node_that_left_and_is_still_seated() -> None:
    stays = edited(TWO, "a", EndEdit(0, Why.FENCED))
    broken("V8", wrote(TWO, "a", Leave(), evolve(stays, ended=Ended(0, Why.LEFT, A))))


def test_V10_a_node_that_was_gone_and_is_expected_back() -> None:
    gone = edited(edited(TWO, "b", Done(0)), "b", Leave())
    after = edited(gone, "a", EndEdit(0, Why.FENCED))
    back = {**after.seats, B: evolve(gone.seats[B], status=Status.EXPECTED)}
    broken("V10", wrote(gone, "a", EndEdit(0, Why.FENCED), evolve(after, seats=back, target=2)))


def test_a_step_that_verify_refuses_is_found_too() -> None:
    broken("S7", wrote(TWO, "b", Done(0), evolve(TWO, version=TWO.version + 2)))


# --- across a loss


def restore(held: RendezvousState, before: RendezvousState | None = None, **changes: Any) -> Wrote:
    deed = Restore(held, "again")
    return Wrote(A, before, deed, evolve(restored(deed, before), **changes))


def test_R8_an_edit_of_a_copy() -> None:
    broken("R8", evolve(wrote(BACK, "b", Leave()), here=False))
    judged(evolve(restore(BACK, BACK), here=False))


def test_R9_a_life_that_begins_twice() -> None:
    judge = judged(restore(TWO))
    with pytest.raises(Violation, match="R9"):
        judge.saw(restore(TWO))


def test_a_restore_is_judged_as_one() -> None:
    assert judged(restore(TWO)).register == restore(TWO).after
    broken("R7", restore(TWO, failures=1))
    broken("R4", restore(TWO, life=Life("again", 1)))


def test_a_restored_world_was_completed_before() -> None:
    assert not restore(TWO).completes
    assert not restore(TWO, arrived(register("2"), "a")).completes
    first = arrived(register("1:2"), "a")
    assert wrote(first, "a", Complete(0)).completes
    assert not wrote(BACK, "b", Leave()).completes


def test_B4_counts_the_failures_of_a_job_across_its_lives() -> None:
    failed = wrote(TWO, "a", EndEdit(0, Why.FAILED))
    whole = arrived(restore(NEXT).after, "a b")
    again = wrote(whole, "b", EndEdit(1, Why.FAILED))
    judge = judged(Failed(A, WORLD.id), failed, restore(NEXT), Failed(B, whole.world.id), again)
    assert judge.failed == {"life": {WORLD.id, whole.world.id}}
    broken("B4", Failed(A, WORLD.id), failed, restore(NEXT), again)


def test_S9_workers_of_an_earlier_life_of_the_job_still_run() -> None:
    whole = arrived(restore(NEXT).after, "a b")
    later = wrote(restore(NEXT).after, "a", Arrive(TWO.seats[A].profile))
    before = Started(A, WORLD), Failed(B, WORLD.id), restore(NEXT), later
    broken("S9", *before, Started(B, whole.world))
    judged(*before, Reaped(A), Started(B, whole.world))


def test_S2_a_restored_world_is_the_one_that_was() -> None:
    judged(Started(A, WORLD), restore(TWO), Started(B, restore(TWO).after.world))


# --- the group


def stepped(before: Group, event: Event, phase: Phase, *commands: Command, **changes: Any) -> Stepped:
    after = evolve(before, phase=phase, **changes)
    return Stepped(before, event, after, commands, 1.0)


NOBODY = frozenset[int]()
GROUP = evolve(led(ready()), phase=Phase.RUNNING, running=frozenset({0, 1}))
READY = evolve(GROUP, course=Course(ready=frozenset({0})))
UNKNOWN = GROUPS["checking, cause unknown"]
LEAVING = evolve(GROUP, phase=Phase.LEAVING, departure=Departure(LeaveReason.SIGNAL, 5.0))
LEFT = evolve(LEAVING, departure=Departure(LeaveReason.SIGNAL, 5.0, is_shown=True))
STOPPING = evolve(GROUP, phase=Phase.STOPPING, stop=Stop(0.0))
REAPED = evolve(STOPPING, running=NOBODY, stop=Stop(0.0, 9.0))
DRAINED = evolve(GROUP, running=NOBODY, deadline=Deadline(Notice(20.0, "a test"), 20.0))
ON, WAY = led(*RUN, settings=ALONE), led(*RUN, lost(), settings=ALONE)
"""Workers that restart alone: in their world, and on their way into the next one."""


@pytest.mark.parametrize(
    ("number", "fact"),
    [
        ("G1", stepped(GROUP, over(), Phase.BARRIER)),
        ("G1", stepped(led(ready()), over(), Phase.JOINING, Start(WORLD))),
        ("G1", stepped(DRAINED, over(), Phase.STOPPING)),
        ("G1", stepped(led(), ready(), Phase.HELD)),
        ("G1", stepped(led(ready()), Elapsed(600.0), Phase.HELD, wait=Wait(0.0, 605.0, is_last_try=True))),
        ("G2", stepped(evolve(DRAINED, phase=Phase.STOPPING), GroupReaped(1.0), Phase.JOINING, Join())),
        ("G4", stepped(DRAINED, exited(0), Phase.BARRIER, MarkDone(), course=READY.course)),
        ("G2", stepped(evolve(GROUP, phase=Phase.STOPPING), GroupReaped(1.0), Phase.JOINING, Join())),
        ("G3", stepped(GROUP, exited(0, 1), Phase.STOPPING, Signal(15), Record(0, 1, 0.0), End(Why.FAILED))),
        ("G3", stepped(evolve(GROUP, phase=Phase.STOPPING, running=NOBODY), over(), Phase.STOPPING, Signal(15))),
        ("G4", stepped(GROUP, exited(0, 1), Phase.STOPPING, Record(0, 1, 0.0), Signal(15))),
        ("G4", stepped(GROUP, exited(0), Phase.BARRIER, MarkDone())),
        ("G4", stepped(ON, evolve(exited(0, 1), entered=False), Phase.RUNNING, Record(0, 1, 0.0))),
        ("G4", stepped(WAY, evolve(exited(0, 1), entered=False), Phase.MOVING, Record(0, 1, 0.0))),
        ("G5", stepped(evolve(GROUP, phase=Phase.ENDED, running=NOBODY), over(), Phase.ENDED, Join())),
        ("G5", stepped(evolve(GROUP, phase=Phase.BARRIER), closed(), Phase.ENDED)),
        (
            "G6",
            stepped(LEAVING, Signalled(15, 1.0), Phase.LEAVING, MarkDone(), running=NOBODY, departure=LEFT.departure),
        ),
        ("G6", stepped(evolve(GROUP, running=NOBODY), Signalled(15, 1.0), Phase.LEAVING)),
        ("G6", stepped(GROUP, over(), Phase.STOPPING)),
        ("G6", stepped(evolve(GROUP, phase=Phase.BARRIER), over(), Phase.BARRIER, Signal(15), stop=Stop(kill_at=40.0))),
        (
            "G6",
            stepped(
                STOPPING,
                Noticed(Notice(20.0, "a test"), 1.0),
                Phase.LEAVING,
                stop=Stop(1.0),
                departure=LEAVING.departure,
            ),
        ),
        ("G6", stepped(evolve(GROUP, phase=Phase.STOPPING), Signalled(15, 1.0), Phase.STOPPING)),
        ("G6", stepped(STOPPING, Elapsed(29.9), Phase.STOPPING, Signal(SIGKILL))),
        ("G6", stepped(STOPPING, Signalled(15, 1.0), Phase.LEAVING, Signal(SIGKILL), departure=LEAVING.departure)),
        ("G6", stepped(GROUP, over(), Phase.STOPPING, Signal(SIGKILL))),
        (
            "G6",
            stepped(
                ON,
                Raised(0, 1.0, 1.0),
                Phase.RUNNING,
                Record(0, None, 1.0),
                stop=Stop(kill_at=1.0 + ON.settings.grace - 0.1),
            ),
        ),
        ("G7", stepped(STOPPING, GroupReaped(1.0), Phase.CHECKING, Check(), running=NOBODY)),
        ("G7", stepped(led(settings=CHECKED), Checked(False, "", 1.0), Phase.JOINING, Join())),
        ("G7", stepped(led(settings=CHECKED), over(), Phase.JOINING, Join())),
        ("G7", stepped(GROUPS["stopping, cause here"], GroupReaped(1.0), Phase.JOINING, Join(), running=NOBODY)),
        ("G7", stepped(UNKNOWN, Over(0, None, None, 1.0), Phase.JOINING, Join())),
        ("G1", stepped(GROUP, ready(1), Phase.RUNNING, Move(WORLD))),
        ("G8", stepped(GROUP, lost(), Phase.MOVING, Join())),
        ("G8", stepped(ON, lost(), Phase.STOPPING, Signal(15), stop=Stop(kill_at=1.0))),
        ("G8", stepped(WAY, ready(1), Phase.STOPPING, Signal(15), stop=Stop(kill_at=1.0))),
        ("G8", stepped(ON, over(), Phase.MOVING, Join())),
        ("G8", stepped(WAY, ready(1, generation=1), Phase.RUNNING, Move(WORLD))),
        ("G10", stepped(led(ready()), beat(), Phase.RUNNING, Start(WORLD), running={0}, stop=Stop(0.0))),
        ("G10", stepped(WAY, ready(1), Phase.RUNNING, Move(WORLD), course=Course(restarted=1))),
        (
            "G4",
            stepped(
                evolve(ON, course=Course(succeeded=True)),
                exited(0, 76),
                Phase.STOPPING,
                Record(0, 76, 0.0),
                CloseJob(Ending.CANCELLED, Why.ASKED),
                running=NOBODY,
            ),
        ),
        ("G10", stepped(led(ready()), over(), Phase.JOINING, Join())),
        ("G10", stepped(led(*SUCCEED), over(), Phase.JOINING, Join(), world=None)),
        ("G10", stepped(REAPED, GroupReaped(1.0), Phase.JOINING, Join(), world=None)),
        ("G10", stepped(evolve(REAPED, world=None, stop=Stop(0.0)), GroupReaped(1.0), Phase.CHECKING, running={0})),
        ("G11", stepped(READY, exited(0, 1), Phase.RUNNING, StartAgain(0))),
        ("G11", stepped(READY, beat(), Phase.RUNNING, Start(WORLD), running={0})),
        (
            "F1",
            stepped(led(ready(), settings=FENCED), beat(), Phase.RUNNING, Start(WORLD), running={0}, heart=Heart(-2.0)),
        ),
    ],
)
def test_a_group_that_goes_wrong_is_found(number: str, fact: Stepped) -> None:
    broken(number, fact)


def test_F1_judges_only_a_start_within_a_quarter_of_the_ttl_before_the_fence() -> None:
    held, quarter = led(ready(), settings=FENCED), FENCED.ttl / 4
    starts = stepped(held, beat(), Phase.RUNNING, Start(WORLD), running={0}, heart=Heart(-2.0 + quarter * 0.9))
    broken("F1", starts)
    judged(evolve(starts, after=evolve(starts.after, heart=Heart(-2.0 + quarter))))


def test_G5_an_ended_group_hears_more_but_does_not_change() -> None:
    ended = evolve(GROUP, phase=Phase.ENDED, running=NOBODY)
    judged(stepped(ended, Signalled(15, 1.0), Phase.ENDED))
    broken("G5", stepped(ended, Signalled(15, 1.0), Phase.ENDED, heart=Heart(9.0)))


def test_a_killing_stop_needs_no_other_end() -> None:
    running = evolve(GROUP, settings=FENCED, heart=Heart(0.0))
    judged(stepped(running, Elapsed(3.0), Phase.STOPPING, Signal(SIGKILL)))
    judged(stepped(LEFT, Signalled(15, 1.0), Phase.LEAVING, Signal(SIGKILL)))


def test_G6_workers_are_killed_at_the_end_of_their_grace_at_the_fence_and_when_their_node_must_be_gone() -> None:
    fenced = evolve(STOPPING, settings=FENCED, heart=Heart(0.0))
    told = evolve(LEFT, stop=Stop(0.0), settings=Settings(shutdown_timeout=40.0))
    gone = Departure(LeaveReason.DRAINED, 5.0, is_shown=True)
    drained = evolve(LEFT, stop=Stop(0.0), deadline=DRAINED.deadline, departure=gone)
    for group, at in ((STOPPING, 30.0), (fenced, 3.0), (told, 40.0), (drained, 19.0)):
        judged(stepped(group, Elapsed(at), group.phase, Signal(SIGKILL)))
        broken("G6", stepped(group, Elapsed(at - 0.1), group.phase, Signal(SIGKILL)))


def test_G6_no_group_gives_its_workers_more_than_their_grace() -> None:
    settings = Settings(grace=3.0, shutdown_timeout=1.0)
    group, told = evolve(GROUP, settings=settings), Signalled(15, 5.0)
    stopping = evolve(group, phase=Phase.STOPPING, stop=Stop(5.0))
    for before, event, phase, span in (
        (group, over(), Phase.STOPPING, 3.0),
        (group, told, Phase.LEAVING, 1.0),
        (stopping, noticed(), Phase.LEAVING, 3.0),
    ):
        reason = LeaveReason.DRAINED if isinstance(event, Noticed) else LeaveReason.SIGNAL
        departure = Departure(reason, 5.0, is_shown=True)
        stops = stepped(before, event, phase, stop=Stop(5.0, 5.0 + span), departure=departure)
        judged(stops)
        broken("G6", evolve(stops, after=evolve(stops.after, stop=Stop(5.0, 5.1 + span))))


def test_G6_a_worker_that_raised_is_killed_after_its_grace_and_no_other_one_with_it() -> None:
    raised = evolve(ON, running=frozenset({0, 1}), failures=Failures(frozenset({0})), stop=Stop(kill_at=31.0))
    kills = stepped(raised, Elapsed(31.0), Phase.RUNNING, Signal(SIGKILL, frozenset({1})), stop=Stop())
    judged(kills)
    broken("G6", evolve(kills, commands=(Signal(SIGKILL),)))
    broken("G6", evolve(kills, event=Elapsed(30.9)))
    stop = Stop(kill_at=1.0 + ON.settings.grace)
    judged(stepped(ON, Raised(0, 1.0, 1.0), Phase.RUNNING, Record(0, None, 1.0), stop=stop))


def test_a_step_that_does_nothing_is_not_judged() -> None:
    judged(Stepped(GROUP, over(7), GROUP, (), 1.0))


def test_a_node_that_leaves_is_remembered() -> None:
    leaving = stepped(GROUP, Signalled(15, 1.0), Phase.LEAVING, departure=LEAVING.departure)
    assert judged(leaving).leaving == {A}


def test_a_fence_is_known_when_it_falls() -> None:
    running = evolve(GROUP, settings=FENCED, heart=Heart(0.0))
    fenced, _ = transition(running, Elapsed(3.0))
    assert fences(running, Elapsed(3.0), fenced)
    assert not fences(running, over(), transition(running, over())[0])


def test_L6_only_a_spare_joins_without_end() -> None:
    broken("L6", WaitsForever(holding("a", TWO), join))
    broken("L6", WaitsForever(holding("a", None), join))
    spare = edited(running("a", size="1"), "b", Arrive(TWO.seats[B].profile))
    judged(WaitsForever(holding("b", spare), join), WaitsForever(holding("a", TWO), watch))


# --- what other rules count too, by lists of their own


def test_V4_is_judged_by_the_seats_that_are_taken() -> None:
    waits = arrived(running("a b", size="2:3"), "c d")
    open_ = edited(waits, "a", EndEdit(0, Why.FAILED))
    alone = evolve(open_, seats={**open_.seats, node("c"): evolve(open_.seats[node("c")], status=Status.WAITING)})
    assert findings(Wrote(A, open_, Leave(), alone)) - {"B4"} == {"V4"}
    assert findings(Wrote(A, open_, Leave(), open_)) == {"B4"}


def test_R7_nobody_is_restored_who_waits() -> None:
    waits = arrived(running("a b", size="2:2"), "c")
    deed = Restore(waits, "again")
    assert [number for number, _ in found(ASKED[Restore], Judge(), Wrote(A, None, deed, waits), Strength())] == ["R7"]
    assert [*found(ASKED[Restore], Judge(), Wrote(A, None, Restore(TWO, "again"), TWO), Strength())] == []


def test_V14_an_operator_closes_no_job_that_is_not_there() -> None:
    edit = Close(Verdict(Ending.CANCELLED, 0, node("operator"), Why.OPERATOR))
    broken("V14", wrote(None, "operator", edit, edited(register("2"), "operator", edit)))
    judged(wrote(TWO, "operator", edit))


def test_S21_workers_belong_to_a_world_of_their_node() -> None:
    broken("S21", Started(node("c"), TWO.world))
    broken("S21", Moved(node("c"), TWO.world))
    judged(Started(A, TWO.world), Moved(A, TWO.world))


AFTER_A_LOSS = circles(1, give_up=9)


@pytest.mark.parametrize(("who", "returns"), [("b#2", True), ("c", False)])
def test_B7_a_newcomer_s_round_is_fruitless_exactly_if_it_was_lost(who: str, returns: bool) -> None:
    alone = edited(edited(AFTER_A_LOSS, "a", Evict(frozenset({node("b#2")}))), "a", Arrive(profile("a")))
    waits = arrived(alone if alone.complete else edited(alone, "a", Complete(2)), "b#3" if returns else who)
    right = wrote(waits, "a", EndEdit(2, Why.UPSCALE))
    judged(right)
    ended = right.after.ended
    assert ended and (right.after.fruitless == (*waits.fruitless, ended)) is returns
    other = waits.fruitless if returns else (*waits.fruitless, ended)
    broken("B7", evolve(right, after=evolve(right.after, fruitless=other)))


def test_B7_the_fruitless_rounds_change_by_nothing_but_an_old_round_and_a_refund() -> None:
    drain = Drain(A, Notice(9.0, "a test"))
    drained = edited(AFTER_A_LOSS, "a", drain)
    broken("B7", wrote(AFTER_A_LOSS, "a", drain, evolve(drained, fruitless=())))
    broken("B7", wrote(AFTER_A_LOSS, "a", drain, evolve(drained, fruitless=(), progressed=True)))


def test_B7_a_newcomer_that_is_lost_before_the_next_world_makes_its_round_count() -> None:
    begun = edited(arrived(circling("a", size="1:2"), "b"), "a", EndEdit(0, Why.UPSCALE))
    right = wrote(begun, "a", Evict(frozenset({B})))
    judged(right)
    broken("B7", evolve(right, after=evolve(right.after, fruitless=())))


def test_B7_a_round_that_made_progress_does_not_count() -> None:
    state = edited(circling(), "a", Proceed(0))
    right = wrote(state, "a", Evict(frozenset({B})))
    judged(right)
    assert right.after.ended
    broken("B7", evolve(right, after=evolve(right.after, fruitless=(right.after.ended,))))


def test_B8_what_is_lost_is_remembered_until_its_slot_leaves() -> None:
    lost = wrote(TWO, "a", Evict(frozenset({B})))
    judged(lost)
    broken("B8", evolve(lost, after=evolve(lost.after, lost_starts=())))
    left = wrote(lost.after, "b#2", Leave())
    judged(left)
    broken("B8", evolve(left, after=evolve(left.after, lost_starts=(B,))))
