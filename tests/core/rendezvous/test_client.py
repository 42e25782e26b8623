"""The client: what each input makes of it in each situation, what it asks for, and what its owner is told."""

from __future__ import annotations

import inspect
import math
import re
from collections import deque
from collections.abc import Callable

import pytest
from attrs import evolve
from worlds import edited, holding, node, profile, running

from elastic.core import rendezvous
from elastic.core.rendezvous import (
    FIRST_PAUSE_S,
    Ask,
    Client,
    Counted,
    Did,
    Done,
    Draw,
    Drawn,
    End,
    Errand,
    Fail,
    Gather,
    Heartbeats,
    Held,
    Idle,
    Input,
    Leave,
    Limits,
    Look,
    Misfit,
    Missed,
    NoState,
    Notice,
    Observe,
    Passed,
    Pause,
    Proposals,
    Propose,
    Pushed,
    Raise,
    RendezvousState,
    Request,
    Restore,
    Restored,
    Seen,
    Settings,
    Settled,
    Shown,
    Silent,
    StoreBack,
    StoreSilent,
    Submitted,
    Told,
    Unknown,
    Wait,
    Who,
    Woke,
    Write,
    apply,
    blank,
    done,
    end,
    join,
    leave,
    restored,
    step,
    watch,
)
from elastic.core.world import Life, Verdict, Why, World

PAIR, ALONE = Settings(Limits(2, 2, 3)), Settings(Limits(1, 1, 3))
RUNNING = running("a b")
ERRAND = Errand("read a log")


def fed(client: Client, *inputs: Input, at: float = 1.0) -> tuple[Client, Ask | None, tuple[Notice, ...]]:
    """After these inputs: the last ask, and all notices."""
    ask: Ask | None = None
    told: tuple[Notice, ...] = ()
    for number, input in enumerate(inputs):
        client, ask, notices = step(client, input, at + number)
        told += notices
    return client, ask, told


def newborn(settings: Settings = PAIR) -> Client:
    return Client(Held(Who(node("a"), profile("a"), settings, Life("life a"))))


def joining(settings: Settings = PAIR) -> Client:
    """It has asked for the register, to join."""
    client, ask, told = fed(newborn(settings), Submitted((Request(join),)), Drawn(0.5), at=0.0)
    assert (ask, told) == (Look(), ())
    return client


def waiting() -> Client:
    """It has arrived and waits for somebody else."""
    client, ask, _ = fed(joining(), Shown(None), at=2.0)
    assert isinstance(ask, Write)
    client, ask, _ = fed(client, Shown(ask.state), at=3.0)
    assert isinstance(ask, Wait) and ask.arm
    return client


def in_a_world() -> Client:
    """Its workers run, and it has begun to watch: it waits for an answer about b's heartbeat."""
    client = Client(holding("a", RUNNING, PAIR), rendezvous.Agenda((Request(join),)))
    client, ask, told = fed(client, Drawn(0.0), at=1.0)
    assert ask == Draw() and [type(notice) for notice in told] == [Told]
    client, ask, _ = fed(client, Drawn(0.0), at=2.0)
    assert ask == Observe((node("b"),))
    return client


def beats(client: Client, at: float = 2.5) -> tuple[Client, Ask | None]:
    return fed(client, Heartbeats({node("b"): 7}, RUNNING.life), at=at)[:2]


# --- what is asked


def test_who_has_nothing_to_do_is_idle() -> None:
    assert fed(newborn(), Passed())[1:] == (Idle(), ())


def test_whatever_begins_begins_with_a_draw_and_the_number_is_its_operation_s() -> None:
    client, ask, _ = fed(newborn(), Submitted((Request(join),)))
    assert (ask, client.agenda.operation) == (Draw(), None)
    client, ask, _ = fed(client, Drawn(0.25), at=5.0)
    assert client.agenda.operation
    assert (ask, client.agenda.operation.jitter, client.agenda.operation.since) == (Look(), 0.25, 5.0)


def test_a_draw_begins_one_thing() -> None:
    client, ask, _ = fed(newborn(ALONE), Submitted((Request(join), ERRAND, Request(done))), Drawn(0.0))
    assert (ask, client.agenda.queue) == (Look(), (ERRAND, Request(done)))


def test_what_an_answer_shows_was_asked_for_when_the_question_was() -> None:
    """A write that was owed is settled by a question that was sent later, and not by the time of its answer."""
    client = waiting()
    client, ask, _ = fed(client, Submitted((Request(leave),)), Drawn(0.0), at=4.0)
    assert isinstance(ask, Write) and client.asked_at == 5.0
    client, ask, _ = fed(client, Unknown(), at=6.0)
    assert (ask, client.asked_at, client.held.doubt.unsure_at) == (Look(), 6.0, 6.0)
    client, ask, _ = fed(client, Woke(), Shown(ask_state(client)), at=7.0)
    assert (client.held.doubt.woke_at, ask) == (7.0, Look()), "what was asked for before the sleep shows nothing"
    client, ask, _ = fed(client, Shown(ask_state(client)), at=9.0)
    assert client.held.doubt.woke_at is None and isinstance(ask, Write)


@pytest.mark.parametrize(("sent_at", "woke_at"), [(3.5, 4.0), (4.5, None)])
def test_what_a_push_shows_was_so_when_its_wait_was_sent(sent_at: float, woke_at: float | None) -> None:
    """What was waited for before a sleep shows nothing."""
    client, _, _ = fed(waiting(), Woke(), Pushed(RUNNING, sent_at), at=4.0)
    assert client.held.doubt.woke_at == woke_at


def ask_state(client: Client) -> RendezvousState | None:
    return client.held.view.state


def test_between_two_reads_that_take_longer_than_an_interval_the_waiter_is_told_to_wait() -> None:
    """Found by the simulator (L10): a slow node read heartbeats one after the other, and heard of no change."""
    slowly = 2.0 + 2 * PAIR.keep_alive_interval
    client, ask = beats(in_a_world(), at=slowly)
    assert ask == Wait(RUNNING.token, slowly, arm=True)
    client, ask, _ = fed(client, Passed(), at=slowly)
    assert ask == Observe((node("b"),))
    client, ask = beats(client, at=2 * slowly)
    assert ask == Observe((node("b"),)) and client.armed


def test_a_waiter_is_armed_once_and_again_when_it_has_told() -> None:
    client = waiting()
    client, ask, _ = fed(client, Passed(), at=4.0)
    assert isinstance(ask, Wait) and not ask.arm
    state = client.held.view.state
    client, ask, _ = fed(client, Pushed(state, 4.5), at=5.0)
    assert isinstance(ask, Wait) and ask.arm
    client, ask, _ = fed(client, Missed(Silent("gone")), Passed(), at=6.0)
    assert ask == Look()
    client, ask, _ = fed(client, Shown(state), at=8.0)
    assert isinstance(ask, Wait) and ask.arm


def test_a_wait_that_is_over_is_a_look() -> None:
    assert fed(waiting(), Woke(), Passed(), at=4.0)[1] == Look()


def test_a_look_at_heartbeats_is_followed_by_a_wait_for_the_next() -> None:
    client, ask = beats(in_a_world())
    assert isinstance(ask, Wait) and ask.until == 2.0 + PAIR.keep_alive_interval
    assert client.held.view.sightings.read_at == 2.0


def test_proposals_are_counted_and_read_for_all() -> None:
    helped = Settings(Limits(2, 2, 3), helping_above=1)
    over = apply(RUNNING, End(0, Why.FAILED), node("b"))
    client = Client(holding("a", over, helped), rendezvous.Agenda((Request(join),)))
    client, ask, _ = fed(client, Drawn(0.0))
    assert isinstance(ask, Propose)
    client, ask, _ = fed(client, Counted(2), at=2.0)
    assert ask == Gather((node("a"), node("b")))
    client, ask, _ = fed(client, Proposals({}), at=3.0)
    assert isinstance(ask, Write)


def test_an_errand_is_done_in_its_order() -> None:
    client, ask, told = fed(newborn(ALONE), Submitted((ERRAND, Request(join))), Drawn(0.0))
    assert (ask, told) == (ERRAND, ())
    client, ask, _ = fed(client, Did())
    assert ask == Draw()
    client, ask, _ = fed(client, Drawn(0.0))
    assert ask == Look()


def test_an_errand_that_the_store_did_not_answer_waits_for_the_register_to_move() -> None:
    client, ask, _ = fed(in_a_world(), Submitted((ERRAND,)), Heartbeats({}, RUNNING.life), Drawn(0.0), at=2.0)
    assert ask == ERRAND
    client, ask, _ = fed(client, Silent("gone"), Passed(), at=5.0)
    assert ask == Draw()
    after = edited(RUNNING, "b", Done(0))
    client, ask, _ = fed(client, Pushed(after, 6.0), at=7.0)
    assert ask == ERRAND
    client, ask, _ = fed(client, Did(), Pushed(edited(after, "b", Leave()), 8.0), at=8.0)
    assert ask == Draw()


def with_errands_done(*errands: Errand) -> Client:
    client, ask, _ = fed(in_a_world(), Submitted(errands), Heartbeats({}, RUNNING.life), Drawn(0.0), at=2.0)
    for errand in errands[1:]:
        client, ask, _ = fed(client, Did(), Drawn(0.0), at=5.0)
        assert ask == errand
    return fed(client, Did(), at=7.0)[0]


def test_what_is_on_record_is_given_back_once_to_a_store_that_has_forgotten_it() -> None:
    another = Errand("read another log")
    lost = restored(Restore(RUNNING, "again"), None)
    client, ask, told = fed(with_errands_done(ERRAND, another), Pushed(lost, 8.0), at=9.0)
    assert (ask, [type(notice) for notice in told]) == (ERRAND, [Restored, Seen])
    client, ask, _ = fed(client, Did(), at=10.0)
    assert ask == another
    client, ask, _ = fed(client, Did(), at=11.0)
    assert ask == Draw()
    assert fed(client, Pushed(edited(lost, "b", Done(0)), 12.0), at=12.0)[1] == Draw()


def test_what_is_given_back_twice_to_two_stores_is_given_back_once_to_each() -> None:
    lost = restored(Restore(RUNNING, "again"), None)
    client, ask, _ = fed(with_errands_done(ERRAND), Pushed(lost, 8.0), Did(), at=9.0)
    assert ask == Draw()
    client, ask, _ = fed(client, Pushed(restored(Restore(lost, "once more"), None), 12.0), at=12.0)
    assert ask == ERRAND
    assert fed(client, Did(), at=13.0)[1] == Draw()


def test_another_job_is_given_no_record() -> None:
    other = evolve(RUNNING, life=Life("other", 7), job="other", completed_in=Life("other", 7))
    assert fed(with_errands_done(ERRAND), Pushed(other, 8.0), at=9.0)[1] == Draw()


def test_what_the_store_does_not_take_back_waits_for_the_register_to_move() -> None:
    lost = restored(Restore(RUNNING, "again"), None)
    client, ask, _ = fed(with_errands_done(ERRAND, Errand("another")), Pushed(lost, 8.0), Silent("gone"), at=9.0)
    assert isinstance(ask, Pause)
    client, ask, _ = fed(client, Pushed(edited(lost, "b", Done(0)), 12.0), Did(), at=12.0)
    assert ask == Errand("another")


def test_a_copy_shows_no_life() -> None:
    assert (Shown(RUNNING).life, Shown(RUNNING, here=False).life, Shown(None).life) == (RUNNING.life, None, None)


@pytest.mark.parametrize("here", [True, False])
def test_a_register_that_was_written_elsewhere_is_found_and_not_held(here: bool) -> None:
    shown, _, _ = fed(joining(), Shown(RUNNING, here))
    pushed, _, _ = fed(waiting(), Pushed(RUNNING, 4.0, here), at=5.0)
    assert [client.held.view.state == RUNNING for client in (shown, pushed)] == [here, here]
    assert [client.held.found is None for client in (shown, pushed)] == [here, here]


# --- while a question is out


@pytest.mark.parametrize("input", [Submitted((Request(leave),)), Pushed(RUNNING, 1.0), Missed(Silent("gone")), Woke()])
def test_nothing_else_is_asked_while_a_question_is_out(input: Input) -> None:
    assert fed(joining(), input)[1:] == (None, ())


def test_what_is_pushed_while_a_question_is_out_is_heard_after_its_answer() -> None:
    client, _, _ = fed(joining(), Pushed(RUNNING, 1.0))
    assert client.held.view.state is None
    client, _, told = fed(client, Shown(None), at=2.0)
    assert client.held.view.state == RUNNING and client.pushed is None and not client.armed
    assert told[0] == Seen(RUNNING, 2.0)


@pytest.mark.parametrize(("sent_at", "state"), [(3.0, None), (4.0, RUNNING)])
def test_a_push_from_before_a_sleep_tells_a_sleeper_nothing_also_after_the_answer(
    sent_at: float, state: RendezvousState | None
) -> None:
    client, ask, _ = fed(waiting(), Woke(), Passed(), at=4.0)
    assert ask == Look()
    client, _, _ = fed(client, Pushed(RUNNING, sent_at), at=5.0)
    assert client.armed is (state is not None)
    client, _, _ = fed(client, Shown(None), at=6.0)
    assert client.held.view.state == state and not client.armed


GARBAGE = NoState("garbage")


def test_a_sleeper_looks_again_after_an_answer_from_before_its_sleep_that_is_unreadable() -> None:
    """It gave up by that, though somebody had put the register right meanwhile."""
    client, ask, told = fed(joining(), Woke(), GARBAGE, Passed(), at=4.0)
    assert (ask, told) == (Look(), ())
    _, _, told = fed(client, GARBAGE, Passed(), at=8.0)
    assert isinstance(told[-1], Told) and isinstance(told[-1].answer, Raise)


@pytest.mark.parametrize("why", [GARBAGE, NoState("cannot serve", is_unserved=True), Silent("gone")])
def test_a_sleeper_looks_again_after_the_word_of_a_waiter_from_before_its_sleep(why: NoState | Silent) -> None:
    _, ask, told = fed(waiting(), Woke(), Missed(why), Passed(), at=4.0)
    assert (ask, told) == (Look(), ())
    _, ask, told = fed(joining(), Missed(why), Woke(), why, Passed(), Passed(), at=4.0)
    assert ask == Look() and not [each for each in told if isinstance(each, Told)]


def test_the_word_of_a_waiter_from_before_a_sleep_tells_a_sleeper_nothing_also_after_the_answer() -> None:
    """It had an edit to make, and ended by what could not be read before its sleep."""
    client, _, _ = fed(waiting(), Submitted((Request(leave),)), Woke(), Drawn(0.0), at=4.0)
    client, ask, _ = fed(client, Missed(GARBAGE), at=7.0)
    assert (ask, client.armed, client.pushed, client.held.trouble) == (None, False, None, None)
    client, ask, told = fed(client, Shown(ask_state(client)), at=8.0)
    assert isinstance(ask, Write) and not [each for each in told if isinstance(each, Told)]


def test_what_was_pushed_waits_for_the_pause_after_no_answer() -> None:
    client, ask, told = fed(joining(), Pushed(RUNNING, 1.0), Silent("gone"))
    assert isinstance(ask, Pause) and client.held.view.state is None
    client, ask, told = fed(client, Passed(), at=5.0)
    assert told[0] == Seen(RUNNING, 5.0)


def test_what_the_waiter_missed_while_a_question_is_out_is_a_question_without_an_answer() -> None:
    client, ask, _ = fed(joining(), Missed(Silent("gone")), Shown(None))
    assert isinstance(ask, Pause) and client.unanswered == 1


def test_a_join_whose_question_is_out_gives_way_to_a_leave() -> None:
    client, _, _ = fed(joining(), Submitted((Request(leave),)))
    client, ask, _ = fed(client, Shown(None), at=2.0)
    assert ask == Draw() and client.agenda.queue == (Request(leave),)


def test_a_refusal_voids_the_joins_that_wait_their_turn() -> None:
    garbage, again = NoState("garbage"), Submitted((Request(join), ERRAND, Request(done)))
    client, _, told = fed(joining(), again, garbage, Passed())
    assert isinstance(told[-1], Told) and isinstance(told[-1].answer, Raise)
    assert client.agenda.queue == (ERRAND, Request(done))


ANSWERS: tuple[Input, ...] = (
    Shown(None),
    Heartbeats({}, None),
    Counted(1),
    Proposals({}),
    Did(),
    Unknown(),
    Silent(),
    NoState("garbage"),
)


@pytest.mark.parametrize("input", ANSWERS)
def test_nothing_is_answered_that_was_not_asked(input: Input) -> None:
    with pytest.raises(Misfit):
        step(newborn(), input, 1.0)


@pytest.mark.parametrize("input", [*ANSWERS[1:6], Passed(), Drawn(0.0)])
def test_a_question_has_its_own_answer(input: Input) -> None:
    with pytest.raises(Misfit):
        step(joining(), input, 1.0)


def test_nothing_is_drawn_when_nothing_is_due() -> None:
    with pytest.raises(Misfit, match="nothing is due"):
        step(newborn(), Drawn(0.0), 1.0)


# --- what interrupts a rest


def rests(client: Client) -> Ask | None:
    return step(client, Passed(), 4.0)[1]


def test_a_watch_that_waits_gives_way_to_whatever_is_submitted() -> None:
    client, _ = beats(in_a_world())
    client, ask, _ = fed(client, Submitted((Request(done),)), at=2.6)
    assert ask == Draw()


def test_a_join_that_waits_goes_on_beside_an_errand() -> None:
    client, ask, _ = fed(waiting(), Submitted((ERRAND,)), at=4.0)
    assert isinstance(ask, Wait) and client.agenda.queue == (ERRAND,)


def test_a_sleep_interrupts_nothing_and_is_known_with_the_next_input() -> None:
    client, ask, _ = fed(waiting(), Woke(), at=4.0)
    assert ask is None and client.held.doubt.woke_at == 4.0
    assert fed(client, Passed(), at=5.0)[1] == Look()


def test_a_pause_is_cut_short_by_what_comes_in_it() -> None:
    client, ask, _ = fed(joining(), Silent("gone"), at=2.0)
    assert isinstance(ask, Pause)
    assert fed(client, Submitted((Request(leave),)), at=2.01)[1] == Draw()
    assert isinstance(fed(client, Pushed(None, 2.0), at=2.01)[1], Write)


# --- a store that does not answer


def test_pauses_grow_up_to_a_heartbeat_s_interval_and_begin_anew_after_an_answer() -> None:
    client, pauses = joining(), list[float]()
    for number in range(10):
        client, ask, _ = step(client, Silent("gone"), float(number))
        assert isinstance(ask, Pause)
        pauses.append(round(ask.until - number, 3))
        client, ask, _ = step(client, Passed(), float(number))
    longest = PAIR.keep_alive_interval
    assert pauses == [min(FIRST_PAUSE_S * 2**number, longest) for number in range(10)]
    client, ask, _ = fed(client, Shown(None), Unknown(), Silent("gone"), at=20.0)
    assert ask == Pause(22.0 + FIRST_PAUSE_S)


def test_one_question_without_an_answer_is_no_news_and_the_second_is_told_once() -> None:
    client, _, told = fed(joining(), Silent("first"), Passed(), at=1.0)
    assert told == ()
    client, _, told = fed(client, Silent("second"), Passed(), Silent("third"), Passed(), at=3.0)
    assert told == (StoreSilent("second", 1.0),)
    client, _, told = fed(client, Shown(None), at=8.0)
    assert told == (StoreBack(8.0),)
    assert fed(client, Shown(None), at=9.0)[2] == ()


def test_after_one_question_without_an_answer_no_return_is_told() -> None:
    assert fed(joining(), Silent("gone"), Passed(), Shown(None))[2] == ()


def test_a_store_that_answers_with_garbage_is_told_too() -> None:
    """Whoever watches goes on: nothing is decided by that."""
    client, _ = beats(in_a_world())
    garbage = Missed(NoState("garbage"))
    client, ask, told = fed(client, garbage, garbage, at=2.6)
    assert isinstance(ask, Pause)
    assert told == (StoreSilent("garbage", 2.6),)


def test_any_answer_ends_a_silence_and_tells_of_it_if_it_was_told() -> None:
    answer = Heartbeats({node("b"): 1}, RUNNING.life)
    client, _, told = fed(in_a_world(), Silent("a"), Passed(), Silent("b"), Passed(), answer, at=2.0)
    assert [type(notice) for notice in told] == [StoreSilent, StoreBack]
    assert client.unanswered == 0
    assert fed(in_a_world(), Silent("a"), Passed(), answer, at=2.0)[2] == ()


# --- what the owner is told


def test_an_operation_s_answer_is_told_before_anything_else_is_asked() -> None:
    client, ask, told = fed(joining(ALONE), Shown(None))
    assert isinstance(ask, Write)
    client, ask, told = fed(client, Shown(ask.state), at=2.0)
    assert ask == Draw() and client.out is None
    assert [type(notice) for notice in told] == [Seen, Told]
    last = told[-1]
    assert isinstance(last, Told) and isinstance(last.answer, World)
    assert (last.handler, last.held) == (join, client.held)
    assert client.held.past.mine == last.answer.id


def test_who_has_left_has_nothing_to_do() -> None:
    client, ask, _ = fed(waiting(), Submitted((Request(leave),)), Drawn(0.0), at=4.0)
    assert isinstance(ask, Write) and isinstance(ask.edit, Leave)
    client, ask, told = fed(client, Shown(ask.state), at=6.0)
    assert ask == Idle()
    assert [notice.answer for notice in told if isinstance(notice, Told)] == [Settled()]


def test_the_register_is_told_once_when_it_moves_and_not_again() -> None:
    client = joining()
    client, _, told = fed(client, Shown(RUNNING), at=2.0)
    assert told[0] == Seen(RUNNING, 2.0)
    client, _, told = fed(client, Pushed(RUNNING, 2.5), at=3.0)
    assert not [notice for notice in told if isinstance(notice, Seen)]


def test_a_register_that_is_another_life_is_told_as_restored_with_who_did_it() -> None:
    client, _ = beats(in_a_world())
    client, ask, told = fed(client, Pushed(None, 3.5), at=4.0)
    assert isinstance(ask, Write) and told == ()
    _, _, mine = fed(client, Shown(ask.state), at=5.0)
    assert mine == (Restored(RUNNING, None, ask.state, True, 5.0), Seen(ask.state, 5.0))
    other = evolve(ask.state, life=Life("by b", 2))
    _, _, theirs = fed(client, Shown(other), at=5.0)
    assert theirs[0] == Restored(RUNNING, None, other, False, 5.0)


def test_a_register_that_was_found_is_told_beside_what_was_lost() -> None:
    client, _ = beats(in_a_world())
    older = apply(blank(Life("another"), PAIR.limits), rendezvous.Arrive(profile("z")), node("z"))
    client, ask, _ = fed(client, Pushed(older, 3.5), at=4.0)
    while not isinstance(ask, Write):
        client, ask, _ = fed(client, Passed(), at=5.0)
    _, _, told = fed(client, Shown(ask.state), at=6.0)
    assert isinstance(told[0], Restored) and told[0].found == older


def test_a_sleeper_that_finds_nothing_is_told_of_no_register() -> None:
    client, _ = beats(in_a_world())
    client, _, _ = fed(client, Woke(), Passed(), at=4.0)
    _, _, told = fed(client, Shown(None), at=6.0)
    assert not [notice for notice in told if isinstance(notice, Seen | Restored)]


def test_who_is_refused_is_told_why() -> None:
    client, _, told = fed(joining(), NoState("garbage"), Passed())
    assert told == (Told(join, Raise(Fail(Why.ILLEGAL), "garbage"), client.held),)


# --- the loop as the package tells it


def driven() -> Callable[..., None]:
    """The code in the package's docstring."""
    assert rendezvous.__doc__
    found = re.search(r"(    def drive\(.*)", rendezvous.__doc__, re.DOTALL)
    assert found
    code = inspect.cleandoc("\n" + found[1])
    assert len(code.splitlines()) <= 25
    scope = dict(vars(rendezvous))
    exec(code, scope)
    made: Callable[..., None] = scope["drive"]
    return made


class Store:
    """A register that always answers; the owner's inbox ends when nobody submits anything any longer."""

    def __init__(self, *items: Request | Errand) -> None:
        self.state: RendezvousState | None = None
        self.items = deque(items)
        self.told = list[Notice]()
        self.armed = 0
        self.now = 0.0

    def get(self) -> Shown:
        return Shown(self.state)

    def set(self, state: RendezvousState, token: object) -> Shown:
        if token == (self.state.token if self.state else None):
            self.state = state
        return Shown(self.state)

    def inbox(self, ask: Ask) -> Input | None:
        return Submitted((self.items.popleft(),)) if self.items else None

    def waiter(self, ask: Ask) -> None:
        self.armed += isinstance(ask, Wait) and ask.arm

    def clock(self) -> float:
        self.now += 0.1
        return self.now


def test_the_loop_of_the_docstring_runs_a_job_to_its_verdict() -> None:
    done_so_far = list[str]()
    store = Store(Request(join), Errand(lambda: done_so_far.append("an errand")), Request(done))
    driven()(newborn(ALONE), store, store.inbox, store.waiter, store.clock, lambda: 0.0, store.told.append)
    answers = [notice.answer for notice in store.told if isinstance(notice, Told)]
    assert [type(answer) for answer in answers] == [World, Verdict]
    assert (done_so_far, store.armed) == (["an errand"], 1)
    assert store.state and store.state.closed


def test_nothing_waits_for_ever_that_is_under_a_deadline() -> None:
    ask = step(waiting(), Passed(), 4.0)[1]
    assert isinstance(ask, Wait) and not math.isinf(ask.until)
    assert [handler.__name__ for handler in (watch, end)] == ["watch", "end"]


def test_a_node_that_can_never_serve_its_store_gives_up_at_once() -> None:
    _, _, told = fed(joining(), NoState("cannot serve", is_unserved=True), Passed())
    (refused,) = [each.answer for each in told if isinstance(each, Told)]
    assert refused == Raise(Fail(Why.UNSERVED), "cannot serve")
