"""What traces tell of what came from outside, and the jobs that are refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from attrs import evolve
from recorded import fails, job
from traced import finished
from traced_calls import called_again

from elastic.core import sim
from elastic.core.group import Alone
from elastic.core.replay import Outside, told
from elastic.core.trace.steps import HangEnd, Header, Started, Step, Trace, Working
from elastic.core.work import Mark, Worked
from elastic.core.world import Party

WRITTEN = sim.record(job(fails(5.0), until=30.0))


def test_traces_of_no_agent_tell_nothing() -> None:
    with pytest.raises(ValueError, match="no trace of an agent"):
        told([called_again().a.trace])


def test_traces_of_several_jobs_are_refused() -> None:
    pair = finished()
    with pytest.raises(ValueError, match="traces of 2 jobs; name all those of one"):
        told([WRITTEN[1], pair.a.trace])


def test_all_traces_of_a_job_are_wanted() -> None:
    with pytest.raises(ValueError, match="no trace of b#1, which was in a round; name the traces of all nodes"):
        told(WRITTEN[:1])


def group(**what: Any) -> Callable[[Header], Header]:
    def changed(header: Header) -> Header:
        assert isinstance(header.machine, Working)
        return evolve(header, machine=Working(evolve(header.machine.settings, **what)))

    return changed


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        (group(alone=Alone(3)), "workers that restart alone are not run again"),
        (group(barrier_timeout=5.0), "an exit barrier that ends is not run again"),
        (group(grace=9.0), "has other settings than a#1"),
        (lambda head: evolve(head, profile=evolve(head.profile, local_world_size=2)), "nodes of several sizes"),
        (lambda head: evolve(head, profile=evolve(head.profile, party=Party("one", 2))), "or of parties"),
        (lambda head: evolve(head, rendezvous=evolve(head.rendezvous, leave_timeout=9.0)), "has other settings"),
    ],
)
def test_a_job_that_cannot_be_run_again_is_refused(changed: Callable[[Header], Header], complaint: str) -> None:
    first, second = WRITTEN
    with pytest.raises(ValueError, match=re.escape(complaint)):
        told([first, evolve(second, header=changed(second.header))])


def test_a_job_that_was_recorded_step_by_step_is_told() -> None:
    pair = finished()
    chronicle = told([pair.b.trace, pair.a.trace])
    assert chronicle.slots == ("a", "b") and chronicle.is_over
    assert [each.kind for each in chronicle.incidents].count(Outside.START) == 2


def test_what_is_told_of_workers_that_nobody_started_is_passed_over() -> None:
    """The lines before it are missing."""
    first, second = WRITTEN
    at = first.header.now
    early: Sequence[Step] = (
        Started(0, (1,), at),
        Worked(0, 0, 0, False, at, at, at, None, Mark(at), None, Mark(at)),
        HangEnd(0, 0, at),
    )
    assert told([evolve(first, steps=(*early, *first.steps)), second]).incidents == told(WRITTEN).incidents


def test_clocks_of_several_hosts_are_placed_by_the_time_of_day() -> None:
    first, second = WRITTEN
    elsewhere = shifted(second, 1_000.0)
    assert [round(each.at, 3) for each in told([first, elsewhere]).incidents] == [
        round(each.at, 3) for each in told(WRITTEN).incidents
    ]


def shifted(trace: Trace, by: float) -> Trace:
    """The same trace, by the clock of another boot."""
    header = evolve(trace.header, boot="another", now=trace.header.now + by)
    return Trace(header, tuple(later(step, by) for step in trace.steps), trace.lines)


def later(step: Any, by: float) -> Any:
    """The same step, by so many seconds; what lies in its event too."""
    changes: dict[str, Any] = {}
    for name in ("at", "now", "began_at", "ended_at", "sent_at", "died_at", "raised_at", "until", "beaten_at"):
        if isinstance(value := getattr(step, name, None), float):
            changes[name] = value + by
    for name in ("event", "first", "last", "passed"):
        value = getattr(step, name, None)
        if isinstance(value, Mark):
            changes[name] = Mark(value.at + by, value.busy_s)
        elif value is not None:
            changes[name] = later(value, by)
    return evolve(step, **changes) if changes else step
