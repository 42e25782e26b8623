"""One node composed: what its agent hears, and what is done because of it, in which order."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from attrs import evolve
from groups import ALONE, CHECKED, FENCED, beat, closed, exited, led, lost, noticed, over, ready, world
from worlds import LIFE, edited, holding, node, nodes, running

from elastic.core.agent import (
    ANSWERED_MAX,
    Acknowledged,
    Agent,
    Effect,
    Event,
    FollowLinks,
    FollowWorkers,
    Hear,
    Hung,
    PutStacks,
    Queried,
    Reply,
    Report,
    Rest,
    See,
    Settled,
    Stands,
    Stepped,
    Submit,
    Suspect,
    ThrowOut,
    absent,
    awaited,
    begin,
    is_hurried,
    step,
)
from elastic.core.group import Group, Phase, Settings, Stopped
from elastic.core.group.state import (
    Beat,
    Beaten,
    Check,
    Checked,
    Closed,
    Elapsed,
    Exited,
    Gone,
    Move,
    Noticed,
    Reaped,
    Record,
    RecordUnfit,
    Signal,
    Signalled,
    Start,
    StartAgain,
    Tell,
    Unstartable,
)
from elastic.core.group.state import Refused as GroupRefused
from elastic.core.rendezvous import (
    Drain,
    Evict,
    Fail,
    Over,
    Prepared,
    Raise,
    RendezvousState,
    Request,
    Seen,
    StoreBack,
    StoreSilent,
    Told,
    close,
    done,
    drain,
    end,
    join,
    leave,
    linger,
    watch,
)
from elastic.core.rendezvous import End as EndRound
from elastic.core.rendezvous import Leave as LeaveRound
from elastic.core.rendezvous import (
    Settled as Done,
)
from elastic.core.world import Ending, Generation, Life, Notice, Verdict, Why

FAILED = Verdict(Ending.FAILED, 0, node("b"), Why.FAILED)
SUCCEEDED = Verdict(Ending.SUCCEEDED, 0, node("b"), Why.DONE)
SILENT = StoreSilent("no answer", 2.0)
THREE = running("a b c", restarts=2)


def agent(*events: Event, settings: Settings | None = None, **others: object) -> Agent:
    """Return the agent of node a after these events."""
    made, _ = begin(Agent(Group(node("a"), settings or Settings()), **others), 0.0)  # type: ignore[arg-type]
    for event in events:
        made, _ = step(made, event, 0.0)
    return made


def runs(*events: Event, settings: Settings | None = None, **others: object) -> Agent:
    """Return the agent of node a whose two workers run in a world with node b, after these events."""
    return agent(ready(), beat(), *events, settings=settings, **others)


def effects(before: Agent, event: Event, now: float = 1.0) -> Sequence[Effect]:
    """Return what is done because of this event, beside the record of the step itself."""
    _, found = step(before, event, now)
    return [effect for effect in found if not isinstance(effect, Stepped)]


def told(answer: object, handler: object = watch, state: RendezvousState | None = None) -> Told:
    return Told(handler, answer, holding("a", state or running(), ran=0))  # type: ignore[arg-type]


# --- what the group hears


def test_the_first_step_of_an_agent_asks_for_a_seat_or_checks_its_node() -> None:
    joins, found = begin(Agent(Group(node("a"))), 3.0)
    assert found == (Stepped(None, joins.group, joins.group, found[0].commands), Submit(Request(join)))  # type: ignore[union-attr]
    assert joins.group.heart.acked_at == 3.0
    _, found = begin(Agent(Group(node("a"), CHECKED)), 3.0)
    assert found[1:] == (Check(),)


def test_a_step_of_the_group_comes_first_and_says_what_it_was() -> None:
    before = agent()
    after, (stepped, *rest) = step(before, told(world()), 1.0)
    assert isinstance(stepped, Stepped) and stepped.event == ready(at=1.0)
    assert (stepped.before, stepped.after) == (before.group, after.group) and stepped.commands == (Beat(),)
    assert rest == [Beat(), Rest(is_busy=False)]


def test_an_acknowledgement_counts_if_it_names_the_register_that_this_node_was_shown() -> None:
    shown = agent(Seen(running(), 0.0), ready())
    assert step(shown, Acknowledged(0.5, Life("another")), 1.0) == (shown, ())
    assert step(agent(ready()), Acknowledged(0.5, LIFE), 1.0)[1] == ()
    after, found = step(shown, Acknowledged(0.5, LIFE), 1.0)
    assert after.group.heart.acked_at == 0.5 and after.world == world()
    assert [type(effect) for effect in found] == [Stepped, Start, Rest]


def test_a_heartbeat_is_a_step_of_the_group_and_changes_nothing_else() -> None:
    before = runs(Seen(running(), 0.0))
    after, found = step(before, Acknowledged(0.5, LIFE), 1.0)
    assert [type(effect) for effect in found] == [Stepped]
    assert after == evolve(before, group=after.group) and after.group.heart.acked_at == 0.5


def test_an_answer_that_the_group_knows_already_is_no_step() -> None:
    before = runs()
    assert step(before, told(Done(), drain), 1.0) == (before, ())


def test_what_an_operation_came_to_is_heard_by_the_group() -> None:
    ended = runs(told(Over(0, None)))
    assert ended.group.phase is Phase.STOPPING
    assert runs(told(Raise(Fail(Why.TIMEOUT), "why"))).group.refused == GroupRefused(Why.TIMEOUT, "why", 0.0)


def test_when_the_last_worker_has_exited_the_group_hears_that_none_lives() -> None:
    one_left = runs(exited(0, 1))
    assert Hear(Reaped(1.0)) not in effects(runs(), exited(0, 1))
    assert effects(one_left, exited(1, -15, at=1.0)) == [Hear(Reaped(1.0))]


def test_a_notice_in_the_register_is_heard_once() -> None:
    state = edited(running(), "b", Drain(node("a"), Notice(60.0, "a test")))
    after, found = step(runs(), Seen(state, 1.0), 1.0)
    assert isinstance(found[0], Stepped) and found[0].event == Noticed(Notice(60.0, "a test"), 1.0, known=True)
    assert [type(effect) for effect in found[1:]] == [Tell, FollowLinks]
    assert step(after, Seen(state, 2.0), 2.0)[1] == (FollowLinks(),)


# --- commands


COMMANDS = [
    (runs(), exited(0, 1), [Record, Submit, See, Signal, PutStacks, Rest]),
    (runs(), Unstartable("no such file", 1.0), [RecordUnfit, Submit, Rest]),
    (runs(), noticed(known=False), [Submit, Tell]),
    (runs(exited(0)), exited(1), [Submit, Rest, Hear]),
    (agent(settings=CHECKED), Checked(False, "broken", 1.0), [RecordUnfit, Submit, Rest]),
    (runs(settings=ALONE), exited(0, 1), [Record, StartAgain, Rest]),
    (runs(lost(), settings=ALONE), ready(1), [Move, Rest]),
    (runs(settings=FENCED), Elapsed(3.0), [Signal, Rest]),
]


@pytest.mark.parametrize(("before", "event", "kinds"), COMMANDS, ids=[str(type(each[1]).__name__) for each in COMMANDS])
def test_the_commands_of_the_group_are_effects_in_their_order(
    before: Agent, event: Event, kinds: Sequence[type[Effect]]
) -> None:
    assert [type(effect) for effect in effects(before, event)] == kinds


@pytest.mark.parametrize(
    ("before", "event", "request_"),
    [
        (runs(), exited(0, 1), Request(end, Why.FAILED)),
        (runs(exited(0)), exited(1), Request(done)),
        (runs(), Signalled(15, 1.0), Request(leave)),
        (runs(), Unstartable("why", 1.0), Request(close, Why.CANNOT_START, Ending.FAILED)),
        (runs(), noticed(known=False), Request(drain, drain=Drain(node("a"), Notice(60.0, "a test")))),
        (runs(settings=ALONE), lost(), Request(join, alive=Generation("job", 0))),
    ],
)
def test_what_the_group_wants_of_the_rendezvous_is_submitted(before: Agent, event: Event, request_: Request) -> None:
    assert Submit(request_) in effects(before, event)


def test_the_world_of_the_workers_is_the_one_that_they_were_started_or_moved_into() -> None:
    moved = runs(lost(), ready(1), settings=ALONE)
    assert runs().world == world() and moved.world == world(1)
    assert runs(over()).world == world()


def test_the_standbys_rest_when_workers_were_started_or_stopped() -> None:
    assert Rest(is_busy=True) in effects(agent(ready()), beat())
    assert Rest(is_busy=True) in effects(runs(), exited(0, 1))
    assert Rest(is_busy=False) in effects(runs(exited(0)), exited(1))
    assert Rest(is_busy=True) in effects(runs(settings=ALONE), exited(0, 1))
    assert not any(isinstance(effect, Rest) for effect in effects(runs(), exited(0)))


# --- stacks on record


@pytest.mark.parametrize("event", [exited(0, 1), over(), lost(), closed(Ending.FAILED)])
def test_workers_are_looked_at_before_a_failure_stops_them_and_that_goes_on_record(event: Event) -> None:
    kinds = [type(effect) for effect in effects(runs(), event)]
    assert kinds.index(See) < kinds.index(Signal) < kinds.index(PutStacks)
    assert PutStacks(0) in effects(runs(), event)


def test_the_record_is_made_too_where_no_signal_is_due() -> None:
    one = runs(exited(1))
    assert [type(effect) for effect in effects(one, exited(0, 1))] == [Record, Submit, See, PutStacks, Rest, Hear]


@pytest.mark.parametrize(
    ("before", "event"),
    [
        (runs(), Signalled(15, 1.0)),
        (runs(), closed()),
        (runs(exited(0, 1)), exited(1, -15)),
        (runs(puts_stacks=False), exited(0, 1)),
        (agent(), closed(Ending.FAILED)),
    ],
    ids=["a signal", "cancelled", "on record", "not wanted", "no workers"],
)
def test_nothing_goes_on_record_of_workers_that_are_stopped_in_order_or_not_at_all(before: Agent, event: Event) -> None:
    assert {See, PutStacks}.isdisjoint(map(type, effects(before, event)))


def test_the_stacks_of_workers_that_hang_stay_on_record() -> None:
    suspects = runs(Stands(0, ["recv"]))
    assert {See, PutStacks}.isdisjoint(map(type, effects(suspects, exited(0, -9))))
    assert PutStacks(0) in effects(runs(Stands(0, ["recv"]), Stands(0, [])), exited(0, -9))


def test_the_stacks_of_a_hang_are_forgotten_when_its_worker_starts_again() -> None:
    assert runs(Stands(0, ["recv"]), exited(0, 1), settings=ALONE).suspected is None


# --- hangs


def test_a_hang_is_heard_while_the_workers_that_it_is_about_run() -> None:
    assert step(runs(), Stands(0, ["recv"]), 1.0) == (evolve(runs(), suspected=0), (Suspect(0, ["recv"]),))
    assert effects(runs(), Stands(0, [])) == [Suspect(0, [])]
    assert effects(runs(), Hung(0, "report")) == [Report("report")]


@pytest.mark.parametrize("before", [agent(), runs(exited(0, 1)), runs(lost(), settings=ALONE)])
@pytest.mark.parametrize("event", [Stands(0, ["recv"]), Hung(0, "report")])
def test_no_hang_is_heard_of_workers_that_do_not_run_in_their_round(before: Agent, event: Event) -> None:
    assert step(before, event, 1.0) == (before, ())


@pytest.mark.parametrize("event", [Stands(7, ["recv"]), Hung(7, "report")])
def test_no_hang_is_heard_of_another_round(event: Event) -> None:
    assert step(runs(), event, 1.0) == (runs(), ())


# --- queries


def test_a_query_of_this_round_is_answered_once() -> None:
    before = runs(Seen(running(), 0.0))
    after, found = step(before, Queried("one", 0, "query"), 1.0)
    assert found == (Reply("query"),) and after.answered == ("one",)
    assert step(after, Queried("one", 0, "query"), 1.0) == (after, ())
    assert effects(after, Queried("two", 0, "query")) == [Reply("query")]


def test_a_query_of_another_round_or_before_the_register_is_known_is_not_answered() -> None:
    for before, round in ((runs(), 0), (runs(Seen(running(), 0.0)), 7)):
        assert step(before, Queried("one", round, "query"), 1.0) == (before, ())


def test_an_agent_remembers_the_last_queries() -> None:
    many = evolve(runs(Seen(running(), 0.0)), answered=tuple(map(str, range(ANSWERED_MAX))))
    after, _ = step(many, Queried("last", 0, "query"), 1.0)
    assert len(after.answered) == ANSWERED_MAX and after.answered[-1] == "last" and after.answered[0] == "1"


# --- standbys


def test_a_join_holds_back_until_the_standbys_are_settled() -> None:
    waits, (_, joined) = begin(Agent(Group(node("a")), are_settled=False), 0.0)
    assert joined == Submit(Request(join, holds_back=True)) and waits.holds_back
    still, found = step(waits, Settled(are_settled=False), 1.0)
    assert (still, found) == (waits, ())
    after, found = step(waits, Settled(are_settled=True), 1.0)
    assert found == (Submit(Prepared()),) and not after.holds_back and after.are_settled
    assert step(after, Settled(are_settled=True), 1.0) == (after, ())
    assert step(after, Settled(are_settled=False), 1.0) == (evolve(after, are_settled=False), ())


def test_a_join_that_came_to_something_else_holds_back_no_longer() -> None:
    waits, _ = begin(Agent(Group(node("a")), are_settled=False), 0.0)
    leaves, _ = step(waits, Signalled(15, 1.0), 1.0)
    assert not leaves.holds_back and effects(leaves, Settled(are_settled=True)) == []


# --- the register, the store and lost nodes


def test_the_register_is_known_as_it_was_shown_last_and_with_the_last_complete_round() -> None:
    over_ = edited(THREE, "a", EndRound(0, Why.FAILED))
    shown = agent(Seen(THREE, 0.0), Seen(over_, 1.0))
    assert (shown.state, shown.complete) == (over_, THREE)


@pytest.mark.parametrize(("settings", "kept"), [(Settings(), {}), (ALONE, {node("b"): 0})])
def test_lost_nodes_are_kept_in_mind_only_where_their_ranks_are_to_be_thrown_out(
    settings: Settings, kept: dict[object, int]
) -> None:
    before = agent(Seen(THREE, 0.0), settings=settings)
    state = edited(THREE, "a", Evict(nodes("b")))
    after, found = step(before, Seen(state, 1.0), 1.0)
    assert after.lost == kept
    assert found == ((ThrowOut(), FollowLinks()) if kept else (FollowLinks(),))
    assert step(after, Seen(edited(state, "c", LeaveRound()), 2.0), 2.0)[1] == (FollowLinks(),)


def test_each_further_loss_is_thrown_out_too() -> None:
    once = edited(running("a b c d", restarts=2), "a", Evict(nodes("b")))
    before = agent(Seen(running("a b c d", restarts=2), 0.0), Seen(once, 0.0), settings=ALONE)
    after, found = step(before, Seen(edited(once, "a", Evict(nodes("c"))), 1.0), 1.0)
    assert after.lost.keys() == {node("b"), node("c")} and found == (ThrowOut(), FollowLinks())


def test_the_silence_of_the_store_is_known_from_its_begin_to_its_end() -> None:
    both = (FollowLinks(), FollowWorkers())
    silent, found = step(runs(), SILENT, 3.0)
    assert (silent.silent_since, found) == (2.0, both)
    back, found = step(silent, StoreBack(4.0), 4.0)
    assert (back.silent_since, found) == (None, both)


def test_workers_that_start_again_while_the_store_is_silent_are_looked_at() -> None:
    assert FollowWorkers() in effects(runs(SILENT, settings=ALONE), exited(0, 1))
    assert FollowWorkers() not in effects(runs(settings=ALONE), exited(0, 1))


def test_members_are_absent_that_are_out_of_reach_or_have_no_work() -> None:
    world_id = running().world_id
    assert world_id
    ran = evolve(world(), id=world_id)
    shown = runs(Seen(running(), 0.0))
    assert absent(shown, ran, {}, 9.0, ttl=5.0) == ()
    silent, _ = step(shown, SILENT, 2.0)
    assert absent(silent, ran, {}, 9.0, ttl=5.0) == (node("b"),)
    assert absent(silent, ran, {node("b"): True}, 9.0, ttl=5.0) == ()
    gone = edited(running(), "b", LeaveRound())
    assert set(absent(runs(Seen(gone, 0.0)), ran, {}, 9.0, ttl=5.0)) == {node("a"), node("b")}


# --- the end


def test_an_agent_that_knows_the_verdict_lingers_until_the_store_is_seen_to_know_it() -> None:
    after, found = step(agent(), closed(), 1.0)
    assert found[-1] == Submit(Request(linger)) and after.lingers and after.outcome
    still, found = step(after, told(Raise(Fail(Why.TIMEOUT)), watch), 2.0)
    assert still.lingers and found == ()
    seen, found = step(after, told(Done(), linger), 2.0)
    assert not seen.lingers and found == ()


def test_an_agent_that_was_refused_does_not_linger() -> None:
    after = agent(told(Raise(Fail(Why.TIMEOUT), "why"), join))
    assert after.outcome and not after.lingers


def test_an_agent_that_is_over_hears_nothing_more_but_a_signal_which_ends_its_lingering() -> None:
    over_ = agent(closed(), Seen(running(), 0.0))
    assert step(over_, Acknowledged(1.0, LIFE), 1.0) == (over_, ())
    assert step(over_, Signalled(15, 1.0), 1.0) == (evolve(over_, lingers=False), ())


@pytest.mark.parametrize(
    ("event", "hurries"), [(Gone(1.0), False), (Closed(SUCCEEDED, 1.0), False), (Elapsed(99.0), True)]
)
def test_an_agent_that_was_told_to_stop_asks_no_store_that_has_not_heard_of_that(event: Event, hurries: bool) -> None:
    left = agent(Signalled(15, 1.0), event)
    assert left.outcome and is_hurried(left) is (hurries and left.outcome == Stopped(15))


@pytest.mark.parametrize(("why", "hurries"), [(Why.UNCONFIRMED, True), (Why.TIMEOUT, False)])
def test_an_agent_that_has_given_a_silent_store_up_asks_it_nothing_more(why: Why, hurries: bool) -> None:
    assert is_hurried(agent(told(Raise(Fail(why), "why"), join))) is hurries


def test_an_end_that_nobody_asked_for_is_not_hurried() -> None:
    assert not is_hurried(agent(closed()))


def test_the_end_of_a_failed_job_waits_for_the_stacks_of_those_that_ran_and_are_present() -> None:
    left = edited(edited(THREE, "c", LeaveRound()), "a", EndRound(1, Why.FAILED))
    shown = Seen(THREE, 0.0), Seen(left, 1.0)
    assert set(awaited(agent(*shown, Closed(FAILED, 1.0)))) == {node("a"), node("b")}
    assert awaited(agent(*shown, Closed(SUCCEEDED, 1.0))) == ()
    assert awaited(agent(*shown)) == ()
    assert awaited(agent(Closed(FAILED, 1.0))) == ()
    assert awaited(agent(Seen(left, 1.0), Closed(FAILED, 1.0))) == ()


def test_what_an_exit_says_is_heard_by_the_group_as_it_is() -> None:
    assert runs(Exited(0, 1, 1.0, 1.0)).group == led(ready(), Beaten(0.0, 0.0), Exited(0, 1, 1.0, 1.0))
