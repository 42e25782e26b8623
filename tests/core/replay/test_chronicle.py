"""What traces tell of what came from outside, and the jobs that are refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from attrs import evolve
from recorded import PROGRAM, SAVES, SPANS, fails, job
from traced import finished
from traced_calls import called_again

from elastic.core import sim
from elastic.core.goodput import Kind
from elastic.core.group import Alone
from elastic.core.rendezvous import Limits, Settings
from elastic.core.replay import Chronicle, Incident, Outside, told
from elastic.core.replay.chronicle import REAPED_S, Program, Timing
from elastic.core.sim.what_if import AS_RECORDED
from elastic.core.trace.steps import HangEnd, Header, Started, Step, Trace, Working, step_at
from elastic.core.work import Mark, Worked, busy_s
from elastic.core.world import Endpoint, Party, Profile

WRITTEN = sim.record(job(fails(5.0), until=30.0))


def test_traces_of_no_agent_tell_nothing() -> None:
    with pytest.raises(ValueError, match="no trace of an agent"):
        told([called_again().a.trace])


def test_traces_of_several_jobs_are_refused() -> None:
    pair = finished()
    with pytest.raises(ValueError, match="traces of 2 jobs; name all those of one"):
        told([WRITTEN[1], pair.a.trace])


def test_all_traces_of_a_job_are_wanted() -> None:
    with pytest.raises(ValueError, match="no trace of b#1, which was in this job; name the traces of all nodes"):
        told(WRITTEN[:1])


def test_a_spare_without_a_trace_is_wanted_too() -> None:
    first, *others = sim.record(job(slots=("north", "south", "east")))
    assert told([first, *others]).recorded["spare", Kind.SPARE] > 0
    with pytest.raises(ValueError, match=r"no trace of .*, which was in this job"):
        told([trace for trace in (first, *others) if trace is not spare((first, *others))])


def spare(traces: Sequence[Trace]) -> Trace:
    """The trace of the agent that started no workers."""
    (found,) = (trace for trace in traces if not any(isinstance(step, Started) for step in trace.steps))
    return found


def test_a_job_without_a_round_tells_nothing_yet() -> None:
    with pytest.raises(ValueError, match="no node has been in a round yet"):
        told([evolve(trace, steps=(), lines=()) for trace in WRITTEN])


RESTARTED = sim.record(job(fails(5.0), fails(40.0), until=80.0))
SHORT = sim.record(job(until=80.0))


@pytest.mark.parametrize("traces", [RESTARTED, SHORT], ids=["others go on with it", "it succeeds with them"])
def test_a_trace_that_ends_before_its_agent_is_no_loss_of_the_node(traces: Sequence[Trace]) -> None:
    """The disk was full, or the file was copied early."""
    first, second = traces
    half = tuple(step for step in second.steps if step_at(step) < second.header.now + 12.0)
    with pytest.raises(ValueError, match=f"the trace of {second.header.node} ends before the node does"):
        told([first, evolve(second, steps=half, lines=tuple(range(2, 2 + len(half))))])


def test_a_node_that_is_killed_when_its_workers_had_succeeded_was_killed() -> None:
    slow = {"north": SPANS, "south": evolve(SPANS, step_s=0.05)}
    chronicle = told(sim.record(job(Incident(30.0, Outside.KILL, "south"), spans=slow, until=80.0)))
    assert Outside.KILL in [each.kind for each in chronicle.incidents]


def test_a_node_that_is_killed_shortly_before_the_end_of_its_job_was_killed() -> None:
    """A link told so; its silence was too short to tell."""
    settings = Settings(Limits(1, 2, 3), last_call_timeout=1.0, keep_alive_interval=5.0)
    chronicle = told(sim.record(job(Incident(50.0, Outside.KILL, "south"), settings=settings)))
    assert chronicle.is_over and [each.kind for each in chronicle.incidents][-1] is Outside.KILL


def test_a_silence_of_the_store_that_an_agent_does_not_outlive_is_told() -> None:
    cut, kill = Incident(20.0, Outside.CUT, "south", 30.0), Incident(28.0, Outside.KILL, "south")
    chronicle = told(sim.record(job(cut, kill, Incident(40.0, Outside.START, "south"))))
    (silence,) = (each for each in chronicle.incidents if each.kind is Outside.CUT)
    assert silence.slot == chronicle.slots[1] and 2.0 < silence.span < 8.5


def test_the_share_of_busy_time_is_that_of_the_time_in_which_workers_did_anything() -> None:
    busy = evolve(PROGRAM, busy=(("checkpoint", 0.1),))
    hung = told(sim.record(job(fails(30.0, hung=True, quiet_s=20.0), program=busy)))
    ((_, share),) = hung.program.busy
    assert share == pytest.approx(0.1, rel=0.05)


def test_a_span_after_the_last_progress_of_workers_that_hang_is_no_share_of_their_time() -> None:
    """The account counts all of that as hanging."""
    hung = sim.record(job(fails(30.0, hung=True, quiet_s=20.0), program=evolve(PROGRAM, busy=(("evaluation", 0.1),))))

    def goes_on(step: Step) -> Step:
        if not isinstance(step, Worked) or step.last is None or step.ended_at - step.last.at < 10.0:
            return step
        return evolve(step, spans=(("evaluation", busy_s(step) + 5.0),))

    later = [evolve(trace, steps=tuple(map(goes_on, trace.steps))) for trace in hung]
    assert dict(told(later).program.busy) == pytest.approx(dict(told(hung).program.busy), rel=0.01)


def test_workers_hang_from_the_last_save_that_they_tell_of() -> None:
    hung = sim.record(job(fails(30.0, hung=True, quiet_s=17.0), program=SAVES), sim.Supposition(checkpoint_every=5.0))

    def saves(step: Step) -> Step:
        if not isinstance(step, Worked) or step.saved is None or step.round > 0:
            return step
        return evolve(step, saved=step.saved._replace(at=14.0))

    (one, *_), (other, *_) = (
        [each for each in told(traces).incidents if each.kind is Outside.HANG]
        for traces in (hung, [evolve(trace, steps=tuple(map(saves, trace.steps))) for trace in hung])
    )
    assert (round(one.at), round(other.at)) == (13, 14)


def test_links_tell_how_long_the_workers_of_a_killed_agent_outlive_it() -> None:
    for lived_s in (0.0, 0.4):
        (kill,) = (each for each in told(sim.record(job(*lost(lived_s)))).incidents if each.kind is Outside.KILL)
        assert kill.span == pytest.approx(lived_s, abs=0.01) and kill.at == pytest.approx(20.0, abs=0.01)
    (kill,) = (each for each in told(sim.record(job(*lost(0.0), links=False))).incidents if each.kind is Outside.KILL)
    assert kill.span == REAPED_S
    told_of_none = told(sim.record(job(*lost(100.0))))  # no link told that they died: silence did
    (kill,) = (each for each in told_of_none.incidents if each.kind is Outside.KILL)
    assert kill.at + kill.span == pytest.approx(told_of_none.until)
    (waited, _), recorded = (
        sim.what_if(told_of_none, seeds=2).mean("waiting", Kind.LOSS),
        told_of_none.recorded["waiting", Kind.LOSS],
    )
    assert waited == pytest.approx(recorded, rel=0.1)


def lost(lived_s: float) -> tuple[Incident, ...]:
    """South is killed, and comes back."""
    return Incident(20.0, Outside.KILL, "south", lived_s), Incident(26.0, Outside.START, "south")


def test_what_agents_do_takes_the_time_that_it_took() -> None:
    timing = Timing(legs=(0.01,), looks=(0.002,), errands=(0.05,), lags=(0.003,), start_s=0.04)
    seen = told(sim.record(evolve(job(fails(20.0)), timing=timing))).timing
    assert set(map(rounded, seen.looks)) == {0.002} and set(map(rounded, seen.errands)) == {0.05}
    assert set(map(rounded, seen.lags)) <= {0.003, 0.0}  # a wait for a time that has passed ends at once
    assert rounded(sum(seen.legs) / len(seen.legs)) == pytest.approx(0.01, abs=0.003)
    assert seen.start_s == pytest.approx(0.04, abs=0.005)
    assert told(sim.record(job(fails(20.0)))).timing.start_s == pytest.approx(0.0, abs=0.005)


def rounded(seconds: float) -> float:
    return round(seconds, 3)


def test_a_restart_that_begins_after_the_last_save_does_so_again() -> None:
    """Else it does as many steps again as a recorded one, and all nodes begin with the same."""
    kill = (fails(20.0), fails(37.0, "north"))
    saving = told(sim.record(job(*kill, program=SAVES), sim.Supposition(checkpoint_every=4.0)))
    assert saving.program.resumes and saving.program.lost and len(saving.program.lost) == 2
    assert [round for round, _ in saving.program.begins] == [0, 1, 2]
    assert sim.what_if(saving, seeds=3).mean("recomputed")[1] < 1e6
    anew = told(sim.record(job(*kill, program=evolve(SAVES, lost=(40, 30)))))
    assert not anew.program.resumes and sorted(anew.program.lost or ()) == [30, 40]
    alone = told(sim.record(job(*kill)))  # four steps here, five there
    assert not alone.program.resumes
    assert told(WRITTEN).program.lost is None or not told(WRITTEN).program.resumes


def idle(work: Worked) -> Worked:
    """Return the same worker, which was never busy."""
    first, passed, last = (mark and Mark(mark.at) for mark in (work.first, work.passed, work.last))
    return evolve(work, spans=(), first=first, passed=passed, last=last)


def by_two_workers(program: Program, setting: sim.Supposition = AS_RECORDED) -> tuple[Chronicle, Chronicle]:
    """Return what the traces of a job with two workers a node tell; and what they would tell if one was never busy."""
    two = evolve(job(fails(30.0), program=program), profile=Profile(Endpoint("north", 1), 2, link_port=1))
    written = sim.record(two, setting)
    others = [
        [idle(step) if isinstance(step, Worked) and step.rank % 2 else step for step in trace.steps]
        for trace in written
    ]
    return told(written), told(
        [evolve(trace, steps=tuple(steps)) for trace, steps in zip(written, others, strict=True)]
    )


def test_a_node_is_as_busy_as_the_busiest_of_its_workers() -> None:
    """Its account has it like this, because the others wait for that one. So the job is as busy when it runs again."""
    both, lone = by_two_workers(evolve(PROGRAM, busy=(("evaluation", 0.2),), busy_before=0.1))
    assert lone.recorded == pytest.approx(both.recorded, rel=0.01)
    assert dict(lone.program.busy) == pytest.approx(dict(both.program.busy))
    assert lone.program.busy_before == pytest.approx(both.program.busy_before)
    recorded = sum(micros for (bucket, _), micros in lone.recorded.items() if bucket == "evaluation")
    assert sim.what_if(lone, seeds=1).mean("evaluation")[0] == pytest.approx(recorded, rel=0.05)


def test_a_save_takes_what_it_takes_the_busiest_of_the_workers_of_a_node() -> None:
    both, lone = by_two_workers(SAVES, sim.Supposition(checkpoint_every=10.0))
    assert lone.program.checkpoints == both.program.checkpoints


def test_first_starts_and_later_ones_are_told_apart() -> None:
    for spans in told(RESTARTED).spans.values():
        assert len(spans.execs) == 1 and len(spans.reexecs) == 2


def test_a_first_start_from_a_standby_is_a_first_start() -> None:
    """It waited for the job, too, and no start of those that are supposed is one."""
    written = sim.record(job(fails(30.0)), sim.Supposition(standby_s=0.2))
    stood_by = [
        evolve(
            trace, steps=tuple(evolve(step, standby=True) if isinstance(step, Worked) else step for step in trace.steps)
        )
        for trace in written
    ]
    for spans in told(stood_by).spans.values():
        assert spans.cold == pytest.approx(SPANS.cold) and spans.standby == pytest.approx((0.2,)) and not spans.warm


def group(**what: Any) -> Callable[[Header], Header]:
    def changed(header: Header) -> Header:
        assert isinstance(header.machine, Working)
        return evolve(header, machine=Working(evolve(header.machine.settings, **what)))

    return changed


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        (group(alone=Alone(3)), "its workers restart alone (--restart-scope=rank), and no trace tells"),
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
