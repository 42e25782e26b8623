"""A book adds up what nodes have entered, and says the cause of each piece."""

from __future__ import annotations

from itertools import permutations
from typing import get_args

from goodputs import read, totals
from traced import finished
from worlds import node

from elastic.core.goodput import (
    KINDS,
    Arrival,
    Book,
    Cause,
    Culprit,
    Death,
    Entry,
    Kind,
    Meeting,
    Piece,
    Reason,
    RoundEnd,
    Share,
    added,
    booked,
    bucket,
    cause,
    jobs,
    losses,
    of_job,
    share,
)
from elastic.core.world import Why

A, B, C = node("a"), node("b"), node("c")


def of(reason: Reason, *ends: RoundEnd | Culprit | Arrival | Death) -> Cause:
    book = booked((Piece(A, 0, 5, "stopping", reason, "job"), *ends))
    (share,) = book.shares
    return cause(book, share)


def test_each_reason_of_the_register_is_of_a_kind() -> None:
    assert KINDS.keys() == set(Why)


def test_a_cause_that_is_known_at_once_needs_no_end_of_a_round() -> None:
    assert of(Kind.FIRST) == Cause(Kind.FIRST)


def test_a_round_whose_end_nobody_knows_is_no_cause() -> None:
    assert of(3, RoundEnd("job", 2, Why.LOST, B), RoundEnd("other", 3, Why.LOST, B)) == Cause(Kind.UNKNOWN, "job", 3)


def test_a_failure_names_the_worker_that_the_blamed_node_s_trace_tells() -> None:
    end = RoundEnd("job", 3, Why.FAILED, B)
    assert of(3, end) == Cause(Kind.FAILURE, "job", 3, B)
    assert of(3, end, Culprit("job", 3, C, 1), Culprit("job", 3, B, 7)) == Cause(Kind.FAILURE, "job", 3, B, 7)


def test_a_loss_names_the_nodes_that_are_lost() -> None:
    assert of(3, RoundEnd("job", 3, Why.LOST, B, ("gpu-07",))) == Cause(Kind.LOSS, "job", 3, B, lost=("gpu-07",))
    assert of(3, RoundEnd("job", 3, Why.UPSCALE, B, ("gpu-07",))) == Cause(Kind.UPSCALE, "job", 3, B)


def test_a_node_that_left_was_drained_or_told_to() -> None:
    assert of(3, RoundEnd("job", 3, Why.LEFT, B)).kind is Kind.OPERATOR
    assert of(3, RoundEnd("job", 3, Why.LEFT, B, is_drain=True)).kind is Kind.DRAIN
    assert of(3, RoundEnd("job", 3, Why.FENCED, B, is_drain=True)).kind is Kind.STORE


def test_a_drain_stays_one_for_who_came_after_the_notice_was_gone() -> None:
    told = (
        RoundEnd("job", 3, Why.LEFT, B, is_drain=True, known_at=(1, 7)),
        RoundEnd("job", 3, Why.FAILED, A, known_at=(1, 8)),
        RoundEnd("job", 3, Why.LEFT, B, known_at=(1, 9)),
    )
    books = [booked((each, Piece(A, 0, 5, "stopping", 3, "job"))) for each in told]
    for one, two, three in permutations(books):
        whole = added(added(one, two), three)
        assert whole == added(one, added(two, three))
        assert [cause(whole, share) for share in whole.shares] == [Cause(Kind.DRAIN, "job", 3, B)]
    assert of(3, RoundEnd("job", 3, Why.LEFT, C, is_drain=True), told[2]).kind is Kind.OPERATOR, (
        "another one was drained"
    )


def test_an_upscale_names_who_came() -> None:
    end = RoundEnd("job", 3, Why.UPSCALE, A)
    assert of(3, Arrival("job", 3, C), end, Arrival("job", 3, B), Arrival("job", 2, A)).came == (B, C)
    failed = RoundEnd("job", 3, Why.FAILED, A)
    assert of(3, failed, Arrival("job", 3, B)).came == ()


def test_a_loss_names_the_agents_of_which_links_told_that_they_are_dead() -> None:
    lost, deaths = RoundEnd("job", 3, Why.LOST, A, ("gpu-07", "gpu-08")), [Death("job", 3, C), Death("job", 2, B)]
    assert of(3, lost, *deaths).died == of(3, *deaths, deaths[0], lost).died == (C,)
    assert of(3, RoundEnd("job", 3, Why.FAILED, A), *deaths).died == ()


def test_a_loss_and_a_drain_name_who_came_in_the_place_of_the_node() -> None:
    lost = RoundEnd("job", 3, Why.LOST, A, ("gpu-07",))
    assert of(3, lost, Arrival("job", 3, B)) == Cause(Kind.LOSS, "job", 3, A, lost=("gpu-07",), came=(B,))
    drained = RoundEnd("job", 3, Why.LEFT, A, is_drain=True)
    assert of(3, drained, Arrival("job", 3, B)).came == (B,)


def test_the_word_of_the_last_register_counts() -> None:
    own, old = RoundEnd("job", 3, Why.UPSCALE, A), RoundEnd("job", 3, Why.FAILED, A, known_at=(1, 7))
    new = RoundEnd("job", 3, Why.LOST, B, ("c",), known_at=(1, 8))
    assert of(3, new, own, old) == of(3, old, new, own) == Cause(Kind.LOSS, "job", 3, B, lost=("c",))


def test_of_two_workers_of_one_node_the_same_one_is_named_in_any_order() -> None:
    end, culprits = RoundEnd("job", 3, Why.FAILED, B), [Culprit("job", 3, B, rank) for rank in (None, 4, 2)]
    assert of(3, end, *culprits).rank == of(3, end, *reversed(culprits)).rank == 2


def test_where_a_round_ended_by_a_hang_all_nodes_hung_since_their_last_progress() -> None:
    end, hang = RoundEnd("job", 3, Why.FAILED, B), Culprit("job", 3, B, 7, is_hang=True)
    its = Cause(Kind.HANG, "job", 3, B, 7)
    assert of(3, end, hang) == its
    tail = Piece(A, 5, 9, "training", Kind.NONE, "job", tail=3)
    assert found(tail, end, hang) == ("hanging", its)
    busy = Piece(A, 5, 9, "checkpoint", Kind.PROGRAM, "job", tail=3)
    assert (found(busy, end, hang), found(busy, end)) == (("hanging", its), ("checkpoint", Cause(Kind.PROGRAM)))
    for told in ((end,), (end, Culprit("job", 3, B, 7)), (hang,), (RoundEnd("job", 3, Why.LOST, B), hang)):
        assert found(tail, *told) == ("training", Cause(Kind.NONE))
    assert found(tail, RoundEnd("job", 3, Why.FAILED, None), hang) == ("training", Cause(Kind.NONE))
    book = booked((tail, Piece(B, 9, 11, "stopping", 3, "job"), end, hang))
    assert [(loss.cause, dict(loss.buckets)) for loss in losses(book)] == [(its, {"hanging": 4, "stopping": 2})]


def found(piece: Piece, *ends: RoundEnd | Culprit) -> tuple[str, Cause]:
    book = booked((piece, *ends))
    return bucket(book, share(piece)), cause(book, share(piece))


def test_books_of_nodes_add_up() -> None:
    pair = finished()
    a, b = (read(each.trace.header, each.trace.steps) for each in (pair.a, pair.b))
    both = booked((*a.all, *b.all))
    assert added(booked(a.all), booked(b.all)) == added(booked(b.all), booked(a.all)) == both
    assert added(both, Book()) == both
    time = sum(each.account.at - each.began for each in (a, b))
    assert totals(both) == (time, time, time)


def test_who_was_waited_for_is_known() -> None:
    book = booked(
        (
            Piece(A, 0, 5, "waiting", Kind.FIRST, "job", (B, C)),
            Piece(B, 0, 3, "waiting", Kind.FIRST, "job", (C,)),
            Piece(B, 3, 4, "waiting", Kind.FIRST, "other", (C,)),
        )
    )
    assert book.awaited == {("job", B): 5, ("job", C): 8, ("other", C): 1}
    assert set(book.shares) == {Share(A, "waiting", Kind.FIRST), Share(B, "waiting", Kind.FIRST)}


def test_the_dearest_event_comes_first_with_the_time_at_which_it_began_by_the_shared_clock() -> None:
    of_a = booked((Piece(A, 10, 12, "stopping", 0, "job"), Piece(A, 12, 17, "starting", 0, "job")), 100)
    of_b = booked((Piece(B, 5, 6, "stopping", 0, "job"), Piece(B, 0, 2, "waiting", Kind.FIRST)), 200)
    work = booked((Piece(B, 2, 900, "running", Kind.NONE), Piece(C, 2, 900, "spare", Kind.SPARE)))
    told = booked((RoundEnd("job", 0, Why.LOST, A),))
    found = losses(added(added(of_a, of_b), added(work, told)))
    assert [(loss.cause.kind, loss.began, loss.total, dict(loss.buckets)) for loss in found] == [
        (Kind.LOSS, 110, 8, {"stopping": 3, "starting": 5}),
        (Kind.FIRST, 200, 2, {"waiting": 2}),
    ]


def test_a_node_belongs_to_the_last_job_that_it_met() -> None:
    book = booked(
        (
            Piece(A, 0, 2, "waiting", Kind.FIRST),
            Meeting(A, "new", 2),
            Meeting(A, "old", 1),
            Piece(B, 0, 3, "waiting", Kind.FIRST),
            Meeting(B, "old", 1),
            Piece(C, 0, 4, "waiting", Kind.FIRST),
        )
    )
    assert jobs(book) == ("", "new", "old")
    of_one = Piece(A, 0, 2, "waiting", Kind.FIRST), Piece(C, 0, 4, "waiting", Kind.FIRST)
    one = booked((*of_one, Meeting(A, "old", 1)))
    assert (jobs(one), sum(of_job(one, "old").shares.values())) == (("old",), 6), "who met none belongs to the only one"
    assert jobs(booked(of_one)) == ("",)
    waited = booked((Piece(A, 0, 2, "waiting", Kind.FIRST, "new", (B, C)), Meeting(A, "new", 1), Meeting(B, "old", 1)))
    assert of_job(waited, "new").awaited == {("new", B): 2, ("new", C): 2}
    assert of_job(waited, "old").awaited == {}
    assert [of_job(book, job).shares for job in jobs(book)] == [
        {Share(node, "waiting", Kind.FIRST): spent} for node, spent in ((C, 4), (A, 2), (B, 3))
    ]


def test_each_entry_can_be_booked() -> None:
    assert set(get_args(Entry)) == {Piece, RoundEnd, Culprit, Arrival, Death, Meeting}
