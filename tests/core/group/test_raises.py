"""An uncaught exception is the failure when it is raised, an echo waits for its cause, and a worker that raised has time."""

from __future__ import annotations

from attrs import evolve
from groups import ALONE, CHECKED, FIT, RUN, closed, commands, exited, led, lost, noticed, over, ready, refused, world
from worlds import node

from elastic.core.group import Alone, Group, Phase, Settings, transition
from elastic.core.group.state import (
    ECHO_S,
    SIGKILL,
    SPARED_S,
    Cause,
    Check,
    Command,
    Elapsed,
    End,
    Event,
    Exited,
    Exiting,
    Join,
    Leave,
    MarkDone,
    Over,
    Raised,
    Reaped,
    Record,
    Signal,
    Signalled,
    StartAgain,
)
from elastic.core.world import Origin, Why

TERM, KILL, FAILED, OPEN = Signal(15), Signal(SIGKILL), End(Why.FAILED), End(Why.FAILED, is_open=True)


def raised(local_rank: int = 0, at: float = 1.0, heard_at: float | None = None, is_echo: bool | None = None) -> Raised:
    return Raised(local_rank, at, at if heard_at is None else heard_at, is_echo)


def echo(local_rank: int = 0, at: float = 1.0) -> Raised:
    return raised(local_rank, at, is_echo=True)


def on_record(local_rank: int = 0, at: float = 1.0) -> Record:
    return Record(local_rank, None, at, Origin.RAISE)


def told(group: Group, event: Event) -> tuple[Phase, tuple[Command, ...]]:
    after, commands = transition(group, event)
    return after.phase, commands


def spared(*local_ranks: int) -> Signal:
    return Signal(15, frozenset(local_ranks))


# --- the raise is the failure


def test_a_raise_ends_the_round_at_once_and_its_worker_is_spared() -> None:
    assert told(led(*RUN), raised()) == (Phase.STOPPING, (on_record(), FAILED, spared(0)))
    assert told(led(*RUN, exited(1)), raised()) == (Phase.STOPPING, (on_record(), FAILED))


def test_the_end_of_a_worker_that_raised_completes_its_record_whatever_its_code() -> None:
    for code in (0, 1, -6):
        assert told(led(*RUN, raised()), exited(0, code, at=9.0)) == (
            Phase.STOPPING,
            (Record(0, code, 9.0, Origin.RAISE),),
        )
    leaving = led(*RUN, raised(), Signalled(15, 2.0))
    assert told(leaving, exited(0, 1, at=9.0)) == (Phase.LEAVING, (Record(0, 1, 9.0, Origin.RAISE),))


def test_two_that_raise_are_two_failures_of_one_round() -> None:
    assert told(led(*RUN, raised(at=1.0)), raised(1, at=0.9, heard_at=1.1)) == (Phase.STOPPING, (on_record(1, 0.9),))


def test_a_raise_counts_once_and_only_while_the_worker_lives() -> None:
    assert commands(led(*RUN, raised()), raised()) == ()
    assert commands(led(*RUN, exited(0, 1, at=1.0)), raised()) == ()
    assert commands(led(), raised()) == ()
    assert commands(led(*RUN, Signalled(15, 2.0)), raised()) == ()


def test_what_a_worker_raises_because_it_is_stopped_is_no_failure() -> None:
    stopping = led(*RUN, over(at=1.0))
    assert commands(stopping, raised(at=1.1)) == ()
    assert commands(stopping, raised(at=1.0)) == (on_record(),)


def test_the_node_is_checked_whose_worker_raised() -> None:
    failed = led(FIT, *RUN, raised(), exited(0, 1), exited(1, -15), settings=CHECKED)
    assert commands(failed, Over(0, Why.FAILED, node("a"), 2.0), Reaped(2.0)) == (Check(),)


# --- a worker that raised has time


def test_a_worker_that_raised_is_asked_to_end_when_the_others_are_gone_and_2_s_have_passed() -> None:
    assert SPARED_S == 2.0
    both = led(*RUN, raised())
    assert (both.until, both.kill_by) == (30.0, 31.0)
    left = led(*RUN, raised(), exited(1, -15, at=1.5))
    assert left.until == 3.0
    assert commands(left, Elapsed(2.9)) == ()
    assert commands(left, Elapsed(3.0)) == (TERM,)
    asked = led(*RUN, raised(), exited(1, -15, at=1.5), Elapsed(3.0))
    assert (asked.until, asked.kill_by) == (30.0, 31.0)
    assert commands(asked, Elapsed(31.0)) == (KILL,)
    late = led(*RUN, raised(), exited(1, -15, at=9.0))
    assert late.until == 3.0 and commands(late, Elapsed(9.0)) == (TERM,)


def test_a_grace_of_less_than_2_s_is_the_whole_time() -> None:
    left = led(*RUN, raised(), exited(1, -15, at=1.5), settings=Settings(grace=1.0))
    assert left.until == 2.0
    assert commands(left, Elapsed(3.0), Elapsed(3.0)) == (KILL,)


def test_a_worker_that_began_to_end_by_itself_is_spared_too() -> None:
    ending = led(*RUN, Exiting(1, 0.5, 0.5))
    assert commands(ending, exited(0, 1, at=1.0)) == (Record(0, 1, 1.0), FAILED)
    assert led(*RUN, Exiting(1, 0.5, 0.5), exited(0, 1, at=1.0)).until == 3.0
    assert commands(ending, over(at=1.0)) == (spared(1),)
    assert commands(led(*RUN, Exiting(1, 0.5, 0.5), noticed(1.0, at=1.0)), Reaped(2.0)) == ()


def test_the_fence_spares_nobody() -> None:
    fenced = led(*RUN, Exiting(0, 0.5, 0.5), settings=Settings(fence=3.0))
    assert commands(fenced, Elapsed(3.0)) == (KILL,)


def test_a_node_that_leaves_meanwhile_asks_as_late() -> None:
    drained = led(*RUN, raised(), noticed(300.0, at=1.1), exited(1, -15, at=1.5))
    assert drained.phase is Phase.LEAVING and drained.until == 3.0
    assert commands(drained, Elapsed(3.0)) == (TERM,)
    told_to_go = led(*RUN, raised(), Signalled(15, 1.1))
    assert commands(led(*RUN, raised()), Signalled(15, 1.1)) == (Leave(), TERM)
    assert commands(told_to_go, exited(1, -15, at=1.5), Elapsed(3.0)) == ()
    assert commands(drained, Signalled(15, 2.0), Elapsed(3.0)) == (KILL,)


# --- an echo waits for its cause


def test_of_an_echo_the_others_are_stopped_and_the_end_of_the_round_waits() -> None:
    assert ECHO_S == 0.5
    assert told(led(*RUN), echo()) == (Phase.STOPPING, (on_record(), spared(0)))
    assert led(*RUN, echo()).until == 1.5
    assert told(led(*RUN), Exited(0, -6, 1.0, 1.0, is_echo=True)) == (Phase.STOPPING, (Record(0, -6, 1.0), TERM))


def test_the_first_failure_that_is_no_echo_ends_the_round() -> None:
    waits = led(*RUN, echo())
    assert commands(waits, raised(1, at=0.9, heard_at=1.2)) == (on_record(1, 0.9), FAILED)
    assert commands(waits, exited(1, -9, at=0.9)) == (Record(1, -9, 0.9), FAILED)
    assert commands(waits, exited(1, -15, at=1.1)) == ()
    assert commands(waits, raised(1, 0.9, 1.2, is_echo=True)) == (on_record(1, 0.9),)
    assert led(*RUN, echo(), exited(1, -9, at=0.9)).until == 3.0


def test_a_worker_that_somebody_else_killed_is_the_cause_though_its_death_is_heard_after_the_echo() -> None:
    waits = led(*RUN, echo())
    assert commands(waits, exited(1, -9, at=1.2)) == (Record(1, -9, 1.2), FAILED)
    assert commands(led(*RUN, echo(), Elapsed(1.5)), exited(1, -9, at=1.7)) == (Record(1, -9, 1.7),)
    assert commands(led(*RUN, echo(), Elapsed(1.5)), exited(1, -9, at=2.1)) == ()
    assert commands(led(*RUN, raised()), exited(1, -9, at=1.2)) == ()
    ours = led(*RUN, echo(), Elapsed(1.3), settings=Settings(grace=0.3))
    assert ours.stop.kill_at is None and commands(ours, exited(1, -9, at=1.4)) == ()


def test_after_half_a_second_the_round_ends_and_the_cause_is_open() -> None:
    waits = led(*RUN, echo())
    assert commands(waits, Elapsed(1.4)) == ()
    assert told(waits, Elapsed(1.5)) == (Phase.STOPPING, (OPEN,))
    gone = led(*RUN, echo(), exited(0, 1), exited(1, -15, at=1.1), Reaped(1.1))
    assert (gone.phase, gone.until) == (Phase.STOPPING, 1.5)
    assert told(gone, Elapsed(1.5)) == (Phase.JOINING, (OPEN, Join()))


def test_a_node_that_slept_ends_the_round_before_it_kills_whoever_is_left() -> None:
    assert commands(led(*RUN, echo()), Elapsed(99.0), Elapsed(99.0)) == (OPEN, KILL)
    gone = led(*RUN, echo(), exited(0, 1), exited(1, -15, at=1.1))
    assert told(gone, Elapsed(99.0)) == (Phase.JOINING, (OPEN, Join()))


def test_a_node_on_which_only_echoes_are_known_is_not_checked() -> None:
    gone = led(FIT, *RUN, echo(), exited(0, 1), exited(1, -15, at=1.1), Reaped(1.1), settings=CHECKED)
    assert told(gone, Elapsed(1.5)) == (Phase.JOINING, (OPEN, Join()))
    known = led(FIT, *RUN, echo(), exited(1, -9, at=0.9), exited(0, 1), settings=CHECKED)
    assert commands(known, Over(0, Why.FAILED, node("a"), 2.0), Reaped(2.0)) == (Check(),)


def test_another_node_that_ends_the_round_ends_the_wait() -> None:
    waits, gone = led(*RUN, echo()), led(*RUN, echo(), exited(0, 1), exited(1, -15, at=1.1), Reaped(1.1))
    assert commands(waits, over(), Elapsed(1.5)) == ()
    assert commands(waits, over(7), Elapsed(1.5)) == (OPEN,)
    assert told(gone, over()) == (Phase.JOINING, (Join(),))
    for end in (closed(), refused()):
        assert commands(waits, end, Elapsed(1.5)) == ()
        assert told(gone, end) == (Phase.ENDED, ())


def test_a_node_that_leaves_waits_for_no_cause() -> None:
    waits = led(*RUN, echo())
    assert commands(waits, noticed(at=1.1), Elapsed(1.5)) == (Leave(),)
    assert commands(waits, Signalled(15, 1.1), Elapsed(1.5)) == (Leave(), TERM)
    gone = led(*RUN, noticed(300.0), echo(), exited(0, 1), exited(1, -15, at=1.1), Reaped(1.1))
    assert told(gone, Elapsed(1.5)) == (Phase.LEAVING, (OPEN, Leave()))
    assert told(gone, over(at=1.2)) == (Phase.LEAVING, (Leave(),))


def test_a_worker_without_peers_hears_no_echo() -> None:
    single = evolve(world(workers=1), nodes=(node("a"),), profiles=world(workers=1).profiles[:1])
    assert commands(led(evolve(ready(), world=single), RUN[1]), echo()) == (on_record(), FAILED)


def test_a_worker_that_began_to_end_before_the_first_echo_is_no_echo() -> None:
    waits = led(*RUN, Exiting(1, 0.9, 0.9), echo())
    assert waits.spared == {0, 1}
    ended = Exited(1, 7, 1.3, 1.3, is_echo=True, began_at=0.9)
    assert commands(waits, ended) == (Record(1, 7, 0.9, Origin.ENDING), FAILED)
    assert commands(led(*RUN), ended) == (Record(1, 7, 0.9, Origin.ENDING), FAILED, TERM)
    assert commands(waits, evolve(ended, code=0)) == ()


def test_a_worker_that_began_to_end_after_the_first_echo_is_one_more() -> None:
    late = led(*RUN, Exiting(1, 1.1, 1.1), raised(at=1.0, heard_at=1.2, is_echo=True))
    assert commands(late, Exited(1, 1, 1.4, 1.4, began_at=1.1)) == (Record(1, 1, 1.1, Origin.ENDING),)


def test_a_worker_that_ends_by_our_signal_has_not_failed_though_it_had_begun_to_end() -> None:
    stopping = led(*RUN, Exiting(1, 0.9, 0.9), raised(), exited(0, 1), Elapsed(3.0))
    assert commands(stopping, Exited(1, -15, 3.1, 3.1, began_at=0.9)) == ()
    assert commands(led(*RUN, raised()), Exited(1, -15, 1.1, 1.1, began_at=1.05)) == ()


def test_of_echoes_alone_a_worker_that_began_to_end_before_them_is_on_record_whatever_ends_it() -> None:
    """torch may take longer to end than a worker is spared: it began to end first, so it is the cause."""
    asked = led(*RUN, Exiting(1, 0.9, 0.9), echo(), exited(0, 1), Elapsed(2.0), Elapsed(4.0))
    assert asked.failures.cause is Cause.OPEN
    assert commands(asked, Exited(1, -15, 4.1, 4.1, began_at=0.9)) == (Record(1, -15, 0.9, Origin.ENDING),)


# --- workers that restart alone


def test_alone_a_raise_is_put_on_record_and_the_end_decides() -> None:
    group = led(*RUN, settings=ALONE)
    assert told(group, raised()) == (Phase.RUNNING, (on_record(),))
    for code in (0, 1):
        ended = commands(led(*RUN, raised(), settings=ALONE), exited(0, code, at=1.1))
        assert ended == (Record(0, code, 1.1, Origin.RAISE), StartAgain(0))
    again = led(*RUN, raised(), Exiting(0, 1.0, 1.0), exited(0, 1, at=1.1), settings=ALONE)
    assert (again.until, again.spared) == (None, frozenset())
    assert commands(again, raised(at=5.0)) == (on_record(at=5.0),)


def test_alone_only_the_worker_that_raised_is_told_to_end() -> None:
    both = led(*RUN, raised(), settings=ALONE)
    assert both.until == 3.0
    assert commands(both, Elapsed(2.9)) == ()
    assert commands(both, Elapsed(3.0), Elapsed(31.0)) == (spared(1), Signal(SIGKILL, frozenset({1})))
    asked = led(*RUN, raised(), Elapsed(3.0), settings=ALONE)
    assert asked.until == 31.0
    assert led(*RUN, raised(), Elapsed(3.0), Elapsed(31.0), settings=ALONE).until is None
    assert commands(led(*RUN, exited(1, 76), raised(), settings=ALONE), Elapsed(3.0)) == (TERM,)


def test_alone_the_grace_is_no_shorter_than_the_time_before_it() -> None:
    hasty = led(*RUN, raised(), settings=evolve(ALONE, grace=0.0))
    assert commands(hasty, Elapsed(2.9)) == ()
    assert commands(hasty, Elapsed(3.0)) == (Signal(SIGKILL, frozenset({1})),)


def test_alone_a_raise_is_no_success_whatever_the_code() -> None:
    spent = led(*RUN, exited(1, 76), raised(), settings=evolve(ALONE, alone=Alone(0, frozenset({0, 76, 79}))))
    assert commands(spent, exited(0, 0, at=1.1)) == (Record(0, 0, 1.1, Origin.RAISE), FAILED)


def test_a_raise_between_two_worlds_waits_for_its_end_too() -> None:
    moving = led(*RUN, lost(), settings=ALONE)
    assert told(moving, raised()) == (Phase.MOVING, (on_record(),))
    due = led(*RUN, lost(), raised(), settings=ALONE)
    assert due.until == 3.0
    assert commands(due, Elapsed(3.0)) == (spared(1),)
    assert commands(due, exited(0, 0, at=1.1)) == (Record(0, 0, 1.1, Origin.RAISE), StartAgain(0))
    assert commands(moving, exited(0)) == ()
    assert MarkDone() not in commands(led(*RUN, lost(), raised(), exited(0, 1), settings=ALONE), exited(1))
