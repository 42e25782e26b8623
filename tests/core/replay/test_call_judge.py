"""The laws of calls over merged traces: traces of real ranks break none, and a broken law is found."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from attrs import evolve
from traced_calls import ONE_ACTIVE, Ranks, called_again, number, ranks

from elastic.core.inprocess.words import (
    AbortEnded,
    Finish,
    GateRead,
    How,
    Over,
    Ready,
    Returned,
    Run,
    Span,
    SpanEnded,
    Terminated,
)
from elastic.core.replay.call_judge import BreaksOff, CallJudge, Fact, Injected, Stands, Took
from elastic.core.replay.comparison import replayed
from elastic.core.replay.evidence import call_facts
from elastic.core.replay.history import histories
from elastic.core.violation import Violation
from elastic.core.world import Node

A, B = Node("0", 1), Node("1", 1)
AGAIN, DONE = called_again(), called_again().finish()
FACTS = call_facts(DONE.history)


def law(facts: Iterable[Fact]) -> str | None:
    """Return the first law that these facts break."""
    judge = CallJudge()
    try:
        for fact in facts:
            judge.saw(fact)
    except Violation as broken:
        return broken.number
    return None


def is_step(of: Node | None = None, hears: type | None = None, orders: Span | None = None) -> Callable[[Fact], bool]:
    def claim(fact: Fact) -> bool:
        return (
            isinstance(fact, Took)
            and of in (None, fact.node)
            and (hears is None or isinstance(fact.event, hears))
            and (orders is None or any(isinstance(each, Run) and each.span is orders for each in fact.commands))
        )

    return claim


def ends(fact: Fact) -> bool:
    return isinstance(fact, Took) and any(isinstance(command, Finish) for command in fact.commands)


def closes(fact: Fact) -> bool:
    return isinstance(fact, Stands) and fact.after.closed is not None


def place(claim: Callable[[Fact], bool], facts: list[Fact] = FACTS) -> int:
    """Return the index of the first such fact."""
    return next(index for index, fact in enumerate(facts) if claim(fact))


def hearing(facts: list[Fact], kind: type, **changes: Any) -> list[Fact]:
    """Return the facts with these changes in every event of this kind."""

    def other(fact: Fact) -> Fact:
        if isinstance(fact, Took) and isinstance(fact.event, kind):
            event: Any = fact.event
            return evolve(fact, event=evolve(event, **changes))
        return fact

    return [other(fact) for fact in facts]


@pytest.mark.parametrize(
    "made",
    [AGAIN, DONE, ranks(), ranks().finish(), ranks(terms=ONE_ACTIVE), ranks(terms=ONE_ACTIVE).finish()],
    ids=["again", "again, done", "running", "done", "with a reserve", "with a reserve, done"],
)
def test_the_traces_of_real_ranks_break_no_law(made: Ranks) -> None:
    assert number(made.history) is None
    for rank in (made.a, made.b):
        (alone,) = histories([replayed(rank.trace)])
        assert number(alone) is None


def test_a_trace_that_breaks_off_breaks_no_law() -> None:
    for cut in range(1, len(DONE.a.steps)):
        short = evolve(DONE.a.trace, steps=tuple(DONE.a.steps[:cut]), lines=tuple(range(2, cut + 2)))
        (history,) = (each for each in histories([replayed(short), replayed(DONE.b.trace)]) if len(each.states) > 3)
        assert number(history) is None


def test_i1_the_function_is_called_once_per_round() -> None:
    called = FACTS[place(is_step(A, orders=Span.FUNCTION))]
    assert isinstance(called, Took)
    assert law([called, called]) == "I1"


def test_i2_the_main_thread_is_told_to_run_when_it_waits() -> None:
    ordered = FACTS[place(is_step(A, orders=Span.INITIALIZE))]
    assert law([ordered, ordered]) == "I2"


def test_i3_no_abort_runs_when_user_code_starts() -> None:
    assert law(fact for fact in FACTS if not is_step(A, hears=AbortEnded)(fact)) == "I3"


def left_behind(also: list[Fact]) -> list[Fact]:
    """Rank 0 calls its function in round 0, and its trace ends there."""
    called = place(is_step(A, orders=Span.FUNCTION))
    rest = [fact for fact in FACTS[called + 1 :] if not is_step(A)(fact)]
    return [*FACTS[: called + 1], *also, *rest]


def test_i4_no_function_is_called_while_a_member_is_in_an_older_round() -> None:
    assert law(left_behind([])) == "I4"
    assert law(left_behind([BreaksOff(A)])) is None


def test_i5_user_code_is_hit_when_its_round_is_over() -> None:
    made = ranks()
    made.a.ends(How.INJECTED)
    assert number(made.history) is None, "it has not looked since"
    made.a.ends(span=Span.FINALIZE).ends(span=Span.CHECK)
    made.run()
    assert number(made.history) == "I5"


def test_a_hit_that_the_monitor_process_knows_to_be_due_breaks_no_law() -> None:
    made = ranks()
    made.b.ends(How.FAILED)
    made.b.runs()
    made.a.ends(How.INJECTED)
    made.run()
    facts = call_facts(made.history)
    assert any(isinstance(fact, Injected) for fact in facts)
    assert number(made.history) is None


def test_i6_no_abort_starts_within_a_section() -> None:
    assert law(hearing(FACTS, GateRead, depth=1)) == "I6"


def test_i7_a_call_returns_when_the_register_says_so() -> None:
    early = [fact for fact in FACTS if not closes(fact)]
    assert law(early) == "I7"
    other = [evolve(fact, commands=(Finish(Returned(0)),)) if ends(fact) else fact for fact in FACTS]  # type: ignore[arg-type]
    assert law(other) == "I7"


def test_i8_each_active_rank_holds_a_result_when_the_job_succeeds() -> None:
    closing = place(closes)
    returned = max(at for at, fact in enumerate(FACTS[:closing]) if is_step(A, hears=SpanEnded)(fact))
    moved = [*FACTS[:returned], FACTS[closing], *FACTS[returned:closing], *FACTS[closing + 1 :]]
    assert law(moved) == "I8"
    assert law(hearing(FACTS, Ready, active=False)) == "I8"


def test_i9_a_rank_that_was_done_returns_its_value() -> None:
    other = [evolve(fact, commands=(Finish(Returned(None)),)) if ends(fact) else fact for fact in FACTS]  # type: ignore[arg-type]
    assert law(other) == "I9"


def test_i10_a_reserve_ends_no_round() -> None:
    made = ranks(terms=ONE_ACTIVE)
    made.a.ends(How.FAILED)
    made.run()
    facts = call_facts(made.history)
    assert law(facts) is None

    def by_the_reserve(fact: Fact) -> Fact:
        if isinstance(fact, Stands) and fact.after.ended:
            return evolve(fact, after=evolve(fact.after, ended=evolve(fact.after.ended, by=B)))
        return fact

    assert law(map(by_the_reserve, facts)) == "I10"


def test_i13_a_rank_that_left_is_never_seated_again() -> None:
    made = ranks()
    made.a.hears(Terminated()).ends(How.INJECTED)
    made.run()
    made.b.ends(How.INJECTED)
    made.run()
    assert made.a.call.left
    assert number(made.history) is None
    facts = call_facts(made.history)
    assert law(facts) is None
    stands = [fact.after for fact in facts if isinstance(fact, Stands)]
    seated = next(state for state in stands if A in state.seats)
    assert A not in stands[-1].seats
    assert law([*facts, Stands(stands[-1], seated)]) == "I13"
    assert law([*facts, Stands(None, seated)]) is None, "what was restored may be older than its leave"


def test_a_step_that_the_call_s_own_rules_forbid_is_found() -> None:
    called = FACTS[place(is_step(A, orders=Span.FUNCTION))]
    assert isinstance(called, Took)
    assert law([evolve(called, commands=())]) == "C6"


def test_in_a_round_that_is_over_nothing_is_missed() -> None:
    """An event that came too late is a step like any other."""
    made = ranks()
    made.b.hears(Over(7))
    assert number(made.history) is None
