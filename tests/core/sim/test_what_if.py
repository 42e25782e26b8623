"""A recorded job that runs again in the simulator: what it wrote as its traces, told and run again, comes to the same."""

from __future__ import annotations

import math

import pytest
from attrs import evolve
from recorded import GROUP, PROGRAM, SAVES, SPANS, fails, job, starts
from replays import complaints

from elastic.core import replay, sim
from elastic.core.goodput import Kind
from elastic.core.rendezvous import Evict, FailureLimit, Heartbeats, Limits, Settings, Write
from elastic.core.replay.chronicle import Checkpoints, Chronicle, Incident, Outside, Program, Spans, Timing
from elastic.core.replay.comparison import replayed
from elastic.core.sim.programs import Pace, paced, saves_each_s
from elastic.core.sim.what_if import Stage
from elastic.core.trace.steps import Asked, Worked

KILL = Incident(20.0, Outside.KILL, "south")
BACK = Incident(26.0, Outside.START, "south")
SEEDS = 2


def again(chronicle: Chronicle, seed: int = 7) -> Chronicle:
    """What the traces tell of one run of this job, which are judged as those of real agents are."""
    traces = sim.record(chronicle, seed=seed)
    assert complaints([replayed(trace) for trace in traces]) == []
    return replay.told(traces)


JOBS = {
    "nothing": job(),
    "a worker fails": job(fails(20.0)),
    "a worker raises": job(fails(20.0, raises=True, span=0.5)),
    "a hang": job(fails(20.0, hung=True, quiet_s=4.0)),
    "a node is lost": job(KILL, BACK),
    "a node is lost, without links": job(KILL, BACK, links=False),
    "a spare": job(KILL, slots=("north", "south", "east")),
    "a drain": job(Incident(20.0, Outside.NOTICE, "south", 8.0), BACK, limits=Limits(1, 2, 3)),
    "a signal": job(Incident(20.0, Outside.SIGNAL, "south"), BACK),
    "a pause": job(Incident(20.0, Outside.PAUSE, "south", 2.0)),
    "a cut": job(Incident(20.0, Outside.CUT, "south", 3.0)),
    "a silence of the store": job(Incident(20.0, Outside.CUT, "north", 9.0), Incident(20.0, Outside.CUT, "south", 9.0)),
    "a worker raises beside others": evolve(
        job(fails(20.0, raises=True, span=0.2)), profile=evolve(job().profile, local_world_size=2)
    ),
    "the store is lost": job(Incident(20.0, Outside.EMPTY)),
    "a cancel": job(Incident(20.0, Outside.CANCEL)),
    "no end": job(fails(10.0), program=evolve(PROGRAM, last=None), until=30.0, is_over=False),
    "no steps": job(fails(10.0), program=Program(), spans=evolve(SPANS, run_s=30.0)),
    "progress without steps": job(program=Program(speaks=True), spans=evolve(SPANS, run_s=30.0)),
    "no steps, and goes on": job(
        fails(20.0), program=Program(), spans=evolve(SPANS, run_s=10.0, longest_s=20.0, total_s=30.0)
    ),
    "busy": job(fails(20.0), program=evolve(PROGRAM, busy=(("checkpoint", 0.1),), busy_before=0.2)),
    "checks": job(fails(20.0), spans=evolve(SPANS, checks=(0.5,)), group=evolve(GROUP, checks=True)),
}


@pytest.mark.parametrize("name", JOBS)
def test_what_a_simulated_job_wrote_told_and_run_again_comes_to_the_same(name: str) -> None:
    told = again(JOBS[name])
    forecast = sim.what_if(told, seeds=SEEDS)
    assert forecast.agreeing == SEEDS, (told.ends, [played.ends for played in forecast.played])
    assert forecast.off <= 0.1, [(row.bucket, row.recorded, row.mean) for row in forecast.rows]


def test_the_traces_tell_what_came_from_outside() -> None:
    told = again(job(fails(12.0, "north"), KILL, BACK))
    came = [(each.kind, each.slot, round(each.at)) for each in told.incidents]
    slots = dict(zip(("north", "south"), told.slots, strict=True))
    assert came == [
        (Outside.START, slots["north"], 0),
        (Outside.START, slots["south"], 0),
        (Outside.FAIL, slots["north"], 12),
        (Outside.KILL, slots["south"], 20),
        (Outside.START, slots["south"], 26),
    ]
    assert told.ends[:2] == (Kind.FAILURE, Kind.LOSS)


def mean(forecast: sim.Forecast, *buckets: str) -> float:
    """Seconds of all nodes."""
    return sum(forecast.mean(bucket)[0] for bucket in buckets) / 1e6


def supposed(chronicle: Chronicle, follows: sim.Follows = sim.Follows.TIME, **what: object) -> sim.Forecast:
    return sim.what_if(chronicle, sim.Supposition(**what), follows, seeds=SEEDS)  # type: ignore[arg-type]


LOST = replay.told(sim.record(job(KILL, Incident(40.0, Outside.START, "south"), links=False)))


def test_links_show_a_loss_sooner_than_silence_and_so_does_a_shorter_ttl() -> None:
    silence, links, short = (mean(supposed(LOST, **what), "waiting") for what in ({}, {"links": True}, {"ttl": 2.5}))
    assert links > short + 1.0 > silence + 2.0  # the others wait from then on


def test_a_spare_takes_the_place_of_a_lost_node() -> None:
    without, spare = supposed(LOST), supposed(LOST, spares=1)
    assert without.mean("waiting", Kind.LOSS)[0] > 10e6 > 1e6 > spare.mean("waiting", Kind.LOSS)[0]
    assert mean(spare, "spare") > 10.0 > mean(without, "spare")
    assert spare.played[0].lasted < without.played[0].lasted


def test_a_spare_waits_for_a_place_as_long_as_it_did() -> None:
    told = again(JOBS["a spare"])
    assert [each.slot for each in told.incidents if each.spare] == [told.slots[2]]
    (row,) = (row for row in sim.what_if(told, seeds=SEEDS).rows if row.bucket == "waiting")
    assert row.mean == pytest.approx(row.recorded, abs=0.02e6)


def test_a_look_that_comes_late_finds_a_lost_node_one_look_sooner() -> None:
    """A node is dead when a look is sent a TTL after its heartbeat was last seen to move, which an answer tells. Where every
    look is sent on time, the fifth is too soon by the time that the answer took."""
    assert [found_by(silent((0.0005,), lags)) for lags in ((), (0.001,))] == [6, 5]


def test_where_it_is_close_a_lost_node_is_found_by_the_look_that_found_it() -> None:
    close = silent((0.002, 0.003), (0.0008, 0.0012))  # five timers are late by as much as an answer takes
    recorded = {found_by(close, seed): replay.told(sim.record(close, seed=seed)) for seed in range(8)}
    assert set(recorded) == {5, 6}
    for look, told in recorded.items():
        assert {found_by(told, seed) for seed in range(8)} == {look}


@pytest.mark.parametrize("stood_s", [4.9, 30.0])
def test_what_stood_still_made_no_timer_late(stood_s: float) -> None:
    """Not when it was for less than a TTL, which nobody notices, nor when the agent noticed it, which is told as a pause."""
    both = (Incident(20.0, Outside.PAUSE, slot, stood_s) for slot in ("north", "south"))
    told = again(job(*both, until=120.0))
    assert max(told.timing.lags) < 0.01
    forecast = sim.what_if(told, seeds=10)
    assert forecast.agreeing == 10 and forecast.off < 0.02


def test_one_slow_answer_makes_no_timer_late() -> None:
    north, south = sim.record(silent((0.002, 0.003), (0.0012,)))  # found by the fifth look
    slow = next(
        step for step in north.steps if isinstance(step, Asked) and isinstance(step.fed, Heartbeats) and step.now > 5
    )
    steps = tuple(evolve(step, now=step.now + 0.4) if step is slow else step for step in north.steps)
    told = replay.told([evolve(north, steps=steps), south])
    assert max(told.timing.looks) > 0.2 and max(told.timing.lags) < 0.01


def silent(legs: tuple[float, ...], lags: tuple[float, ...]) -> Chronicle:
    """A node is lost, and no link tells."""
    return evolve(job(KILL, links=False), timing=Timing(legs, legs, lags=lags))


def found_by(chronicle: Chronicle, seed: int = 0) -> int:
    """Return by which look the lost node was found, after the one that showed its last heartbeat."""
    north, *_ = sim.record(chronicle, seed=seed)
    asked = [step for step in north.steps if isinstance(step, Asked)]
    evicts = next(step for step in asked if isinstance(step.ask, Write) and isinstance(step.ask.edit, Evict))
    counters = [each.fed.counters for each in asked if isinstance(each.fed, Heartbeats) and each.now <= evicts.now]
    return counters.count(counters[-1]) - 1


@pytest.mark.parametrize("late_s", [-0.02, 0.02])
def test_a_save_that_was_whole_in_the_last_moment_counts_as_it_was_recorded(late_s: float) -> None:
    """The failure comes again so much later or sooner than the save that it came before or after."""
    steady = evolve(SPANS, execs=(0.01,), warm=(1.0,), stops=(0.01,))
    saves = sim.Supposition(checkpoint_every=5.0)
    work = next(
        step for step in sim.record(job(program=SAVES, spans=steady), saves)[0].steps if isinstance(step, Worked)
    )
    assert work.first
    at = work.first.at + 3 * 5.0 - 0.25
    told = replay.told(sim.record(job(fails(at + late_s), program=SAVES, spans=steady), saves))
    assert told.program.resumes
    moved = evolve(
        told, incidents=tuple(evolve(each, at=at - late_s) if each.at > 1.0 else each for each in told.incidents)
    )
    recorded = told.recorded.get(("recomputed", Kind.FAILURE), 0)
    assert sim.what_if(moved, seeds=SEEDS).mean("recomputed")[0] == pytest.approx(recorded, abs=2e6)
    if late_s > 0:  # of what is supposed the recording says nothing
        other = sim.what_if(moved, sim.Supposition(max_restarts=9), seeds=SEEDS)
        assert abs(other.mean("recomputed")[0] - recorded) > 5e6


def test_with_fewer_nodes_at_least_a_job_goes_on_without_the_lost_one() -> None:
    alone = supposed(LOST, nodes=Limits(1, 2), last_call=0.5)
    assert [kind for kind in alone.played[0].ends if kind is not Kind.LOSS] == [Kind.UPSCALE, Kind.END]


def test_without_restarts_a_failure_is_the_end() -> None:
    failed = again(job(fails(20.0)))
    over = supposed(failed, max_restarts=0)
    assert over.played[0].ends == (Kind.FAILURE,) and over.played[0].lasted < 30.0


def test_a_job_whose_workers_never_succeeded_is_supposed_for_as_long_as_it_was_recorded() -> None:
    """How much there was left to do is not known."""
    failed = again(job(fails(20.0), limits=Limits(2, 2, 0)))
    assert not failed.has_succeeded and supposed(failed).agreeing == SEEDS
    (played, *_) = supposed(failed, max_restarts=3).played
    assert not played.is_over and played.lasted <= failed.until


def test_a_first_start_and_later_ones_take_the_time_of_their_own() -> None:
    spans = evolve(SPANS, execs=(6.0,), reexecs=(0.01,))
    failed = again(job(fails(30.0), spans=spans))
    forecast = supposed(failed)
    first, later = (forecast.mean("starting", kind)[0] for kind in (Kind.FIRST, Kind.FAILURE))
    assert first == pytest.approx(16e6, abs=5e5) and later == pytest.approx(2.2e6, abs=5e5)


def test_standbys_shorten_every_start_but_the_first() -> None:
    failed = again(job(fails(20.0)))
    forecast = supposed(failed, standby_s=0.1)
    first, later = (forecast.mean("starting", kind)[0] / 1e6 for kind in (Kind.FIRST, Kind.FAILURE))
    assert first > 4.0 and later == pytest.approx(0.2, abs=0.05)


def test_standbys_that_were_recorded_come_again_in_their_share() -> None:
    failed = again(job(fails(10.0), fails(20.0), fails(30.0), spans=evolve(SPANS, warm=(), standby=(0.1,))))
    spans = failed.spans.values()
    assert all(each.standby and not each.warm for each in spans)
    (row,) = (row for row in sim.what_if(failed, seeds=SEEDS).rows if row.bucket == "starting")
    assert row.off <= 0.02
    both = evolve(SPANS, warm=(1.0, 1.0), standby=(0.1,))
    mixed = again(job(*(fails(10.0 * number) for number in range(1, 4)), spans=both))
    assert any(each.standby for each in mixed.spans.values()) and any(each.warm for each in mixed.spans.values())


@pytest.mark.parametrize(
    ("follows", "program", "spans"),
    [
        (sim.Follows.TIME, PROGRAM, SPANS),
        (sim.Follows.NODE, PROGRAM, SPANS),
        (sim.Follows.PROGRAM, PROGRAM, SPANS),
        (sim.Follows.PROGRAM, Program(), evolve(SPANS, run_s=30.0)),
    ],
)
def test_a_failure_belongs_to_its_time_its_node_or_its_program(
    follows: sim.Follows, program: Program, spans: Spans
) -> None:
    failed = again(job(fails(20.0), fails(30.0, "north"), program=program, spans=spans))
    assert sim.what_if(failed, follows=follows, seeds=SEEDS).agreeing == SEEDS


def test_what_a_failure_belongs_to_decides_if_it_comes_at_all() -> None:
    """With a spare from the beginning, and the node lost for good, the node's later failure does not come again."""
    lost = replay.told(sim.record(job(KILL, BACK, fails(40.0))))
    gone = evolve(lost, incidents=tuple(each for each in lost.incidents if not 21.0 < each.at < 39.0))
    assert len(gone.incidents) == len(lost.incidents) - 1
    assert Kind.FAILURE not in supposed(gone, sim.Follows.NODE, spares=1).played[0].ends


def test_a_failure_that_finds_no_workers_does_nothing() -> None:
    spared = job(
        fails(20.0),
        fails(20.1),
        fails(0.05),
        Incident(60.0, Outside.KILL, "south"),
        Incident(70.0, Outside.NOTICE, "south", 5.0),
    )
    played = sim.what_if(spared, seeds=1).played[0]
    assert played.ends == (Kind.FAILURE, Kind.END)
    assert sim.what_if(job(fails(60.0)), seeds=1).played[0].ends == (Kind.END,)


def test_workers_with_notice_that_are_ready_leave_then() -> None:
    drained = job(
        Incident(20.0, Outside.NOTICE, "south", 20.0), BACK, limits=Limits(1, 2, 3), spans=evolve(SPANS, readies=(2.0,))
    )
    told = again(drained)
    assert [round(span, 1) for each in told.spans.values() for span in each.readies] == [2.0]
    assert sim.what_if(told, seeds=SEEDS).off <= 0.1


def test_a_job_that_had_not_ended_lasts_as_long_as_its_traces() -> None:
    running = again(job(program=evolve(PROGRAM, last=None), until=30.0, is_over=False))
    (played,) = sim.what_if(running, seeds=1).played
    assert not played.is_over and played.lasted == pytest.approx(30.0, abs=1.0)


def test_a_program_that_never_succeeded_never_does() -> None:
    mute = job(program=Program(), until=30.0, is_over=False)
    assert not sim.what_if(mute, seeds=1).played[0].is_over


def test_the_settings_of_the_nodes_are_those_of_the_recorded_ones() -> None:
    settings = Settings(
        Limits(1, 2, 3, agreed="by all", give_up_after=4, counts_failures=True),
        leased=True,
        barrier_timeout=7.0,
        max_node_failures=FailureLimit(3, 60.0),
        replace_timeout=2.0,
        first_target=2,
    )
    group = evolve(GROUP, fence=3.0, checks=True)
    given = job(settings=settings, group=group)
    stage = Stage(given, sim.Supposition(), sim.Follows.TIME, 0)
    stage.runs()
    (process, *_) = stage.world.by_node.values()
    assert process.held.who.settings == settings
    assert process.group.settings == group
    assert stage.world.setting.limits == process.held.who.settings.limits


def test_what_cannot_be_supposed_is_refused() -> None:
    with pytest.raises(ValueError, match="max_nodes: 3"):
        supposed(LOST, nodes=Limits(3, 2))
    with pytest.raises(ValueError, match=r"a TTL of 0\.001 s: a heartbeat each 0\.0002 s"):
        supposed(LOST, ttl=0.001)
    with pytest.raises(ValueError, match="a round of 3 nodes, where there are 2"):
        supposed(LOST, nodes=Limits(3, 3))
    racks = evolve(LOST.rendezvous, limits=Limits(2, 2, node_unit=2, segment="rack"))
    for nodes in (None, Limits(1, 2)):
        with pytest.raises(ValueError, match=r"--nnodes=2:2 --segment=rack:2: simulated nodes do not have the labels"):
            supposed(evolve(LOST, rendezvous=racks), nodes=nodes)


def test_causes_that_the_runs_do_not_find_are_told() -> None:
    kinds = {Kind.LOSS: Kind.HANG}
    other = {(bucket, kinds.get(kind, kind)): micros for (bucket, kind), micros in LOST.recorded.items()}
    assert {kind for kind, _, _ in sim.what_if(evolve(LOST, recorded=other), seeds=1).strays} == {Kind.LOSS, Kind.HANG}
    assert sim.what_if(LOST, seeds=1).strays == ()


def test_a_bucket_that_was_not_recorded_is_off_by_more_than_all() -> None:
    nothing = sim.what_if(evolve(LOST, recorded={}), seeds=1)
    assert {row.off for row in nothing.rows} == {math.inf}
    assert nothing.off == 0.0  # of no time nothing has a share
    nobody = evolve(LOST, recorded={("unknown", Kind.UNKNOWN): 0})
    assert sim.what_if(nobody, seeds=1).rows[-1].off == 0.0


def test_a_node_that_waits_for_its_store_has_come_all_the_same() -> None:
    late = evolve(job(), incidents=(*starts("north"), Incident(0.1, Outside.START, "south", 4.0)))
    told = again(late)
    assert told.recorded["waiting", Kind.FIRST] == pytest.approx(8e6, abs=3e5)
    assert sim.what_if(told, seeds=SEEDS).off <= 0.02


# --- saves


def saving(*incidents: Incident, every_s: float = 10.0, **more: object) -> Chronicle:
    """What the traces tell of a job that saved this often."""
    given = job(*incidents, program=SAVES, **more)  # type: ignore[arg-type]
    traces = sim.record(given, sim.Supposition(checkpoint_every=every_s), seed=7)
    assert complaints([replayed(trace) for trace in traces]) == []
    return replay.told(traces)


def again_steps(chronicle: Chronicle, every_s: float) -> list[int]:
    """How many steps each restart does again, in one run with saves this often."""
    traces = sim.record(chronicle, sim.Supposition(checkpoint_every=every_s))
    works = [step for trace in traces for step in trace.steps if isinstance(step, Worked)]
    return [work.before + 1 - (work.first_step or 0) for work in works if work.before is not None]


def test_the_traces_of_a_job_that_saves_tell_how_often_and_what_that_takes() -> None:
    known = saving(fails(30.0)).program.checkpoints
    assert known and known.every_s == pytest.approx(10.0)
    assert known.stop_s == pytest.approx(0.5, rel=0.1) and known.busy_s == pytest.approx(0.5, rel=0.1)
    assert again(job(fails(30.0))).program.checkpoints is None


@pytest.mark.parametrize("incidents", [(), (fails(18.0),), (KILL, BACK), (fails(18.0), fails(37.0, "north"))])
def test_a_job_that_saves_comes_to_what_was_recorded_where_it_saves_as_it_did(incidents: tuple[Incident, ...]) -> None:
    told = saving(*incidents)
    setting = sim.calibration(told, sim.Supposition(checkpoint_every=3.0))
    assert told.program.checkpoints and setting.checkpoint_every == told.program.checkpoints.every_s
    forecast = sim.what_if(told, setting, seeds=SEEDS)
    assert forecast.agreeing == SEEDS and forecast.off <= 0.1
    assert sim.calibration(told, sim.Supposition(spares=1)) == sim.Supposition()


def test_a_restart_does_again_what_was_done_since_the_last_save() -> None:
    """Steps of 0.2375 s beside saves of 0.5 s; the first progress is some 2 s after the start."""
    told = saving(fails(30.0))
    often, seldom, never = (again_steps(told, every_s) for every_s in (2.0, 20.0, 1_000.0))
    assert {len(each) for each in (often, seldom, never)} == {2}  # both nodes restart
    assert max(often) <= 2.0 / 0.2375 < min(seldom) <= 20.0 / 0.2375 < min(never)
    assert min(never) == pytest.approx((30.0 - 2.3) / 0.2375, abs=8)


def test_saves_that_come_often_cost_their_own_time_and_seldom_ones_the_steps_of_a_restart() -> None:
    told = saving(fails(30.0))
    saves = {every_s: supposed(told, checkpoint_every=every_s) for every_s in (1.0, 5.0, 1_000.0)}
    busy = {every_s: mean(each, "checkpoint") for every_s, each in saves.items()}
    lost = {every_s: mean(each, "recomputed") for every_s, each in saves.items()}
    assert busy[1.0] > 4 * busy[5.0] > busy[1_000.0] == 0.0
    assert lost[1.0] < lost[5.0] < lost[1_000.0]
    assert saves[5.0].played[0].lasted < min(saves[1.0].played[0].lasted, saves[1_000.0].played[0].lasted)


def test_saves_beside_the_training_cost_nothing() -> None:
    beside = evolve(SAVES, checkpoints=Checkpoints(10.0, 0.0, 0.0))
    (played,) = sim.what_if(job(program=beside), sim.Supposition(checkpoint_every=10.0), seeds=1).played
    assert {bucket for bucket, _ in played.spent}.isdisjoint({"checkpoint"}) and played.is_over


def test_a_node_that_comes_for_a_lost_one_begins_where_the_others_do() -> None:
    told = saving(KILL, BACK)
    traces = sim.record(told, sim.Supposition(checkpoint_every=4.0))
    works = [step for trace in traces for step in trace.steps if isinstance(step, Worked)]
    assert len({work.first_step for work in works if work.round == 1}) == 1


def test_a_drain_whose_workers_say_that_they_are_ready_loses_no_step() -> None:
    """They have saved then, and so have the others. The end of the next round, an upscale, comes without notice."""
    drain = (Incident(20.0, Outside.NOTICE, "south", 20.0), BACK)
    told = saving(*drain, limits=Limits(1, 2, 3), spans=evolve(SPANS, readies=(2.0,)))
    drained, upscaled = again_steps(told, 1_000.0)
    assert drained <= 4 < 10 < upscaled


def test_a_save_takes_time_and_is_whole_when_that_is_over() -> None:
    pace = Pace(1.0, steps_a_save=8, save_s=2.0)  # the first step is done at 0, the eighth at 7
    assert [pace.steps(span) for span in (0.0, 6.9, 7.0, 8.9, 9.0, 10.0, 19.0)] == [0, 6, 7, 7, 7, 8, 15]
    assert [pace.saves(span) for span in (8.9, 9.0, 24.0)] == [0, 1, 2]
    assert [pace.lasts(steps) for steps in (0, 7, 8, 15, 16)] == [0.0, 7.0, 10.0, 17.0, 20.0]
    assert [pace.saving(span) for span in (7.0, 8.0, 9.0, 18.0)] == [0.0, 1.0, 2.0, 3.0]
    assert [pace.saved(saves) for saves in (1, 2)] == [(9.0, 7), (19.0, 15)]
    assert (Pace(0.5).steps(3.0), Pace(0.5).lasts(6), Pace(0.0).steps(9.0), Pace(0.5).saving(9.0)) == (6, 3.0, 0, 0.0)
    assert paced(1.0, 10.0, 2.0) == paced(1.0, 10.3, 2.0, seen=True) == pace and paced(0.0, 9.0, 2.0) == Pace(0.0)


def test_a_program_saves_at_the_end_of_the_step_in_which_the_interval_has_passed() -> None:
    """It never saves sooner; and a mean of measured steps is no more exact than to a share of one."""
    assert [paced(10.0, every_s, 1.0).every_s for every_s in (6.0, 11.1, 14.0, 21.0, 26.0)] == [11, 11, 21, 21, 31]
    slow, save = evolve(SPANS, step_s=10.0), Checkpoints(21.0, 1.0, 1.0)
    slowly = job(fails(200.0), program=evolve(SAVES, last=39, checkpoints=save), spans=slow, until=600.0)
    told = replay.told(sim.record(slowly, sim.Supposition(checkpoint_every=21.0)))
    assert told.program.checkpoints and told.program.checkpoints.every_s == pytest.approx(21.0)
    saves = {every_s: mean(supposed(told, checkpoint_every=every_s), "checkpoint") for every_s in (6.0, 14.0, 26.0)}
    assert saves[6.0] > 1.9 * saves[14.0] > 1.9 * 1.4 * saves[26.0]
    known = told.program.checkpoints
    assert saves_each_s(told, known, 14.0) == saves_each_s(told, known, known.every_s) == pytest.approx(21.0, abs=0.01)


@pytest.mark.parametrize(
    ("program", "every_s", "complaint"),
    [
        (PROGRAM, 5.0, "no worker told of a save after its first progress; in the program call elastic.progress"),
        (SAVES, 0.5, r"a save each 0\.5 s: one takes 0\.5 s \(recorded: one each 10 s\)"),
        (evolve(SAVES, checkpoints=Checkpoints(2.0, 2.0, 2.0)), 5.0, "a save each 5 s: one takes 2 s"),
        *[
            (
                evolve(SAVES, checkpoints=Checkpoints(10.0, 0.0, 0.0)),
                every_s,
                rf"a save each {text} s .*; 0\.001 s or more",
            )
            for every_s, text in ((0.0, "0"), (-1.0, "-1"), (5e-324, "4.94e-324"), (math.nan, "nan"))
        ],
        (
            evolve(SAVES, checkpoints=Checkpoints(5e-324, 0.0, 0.0)),
            5.0,
            r"a save each 5 s \(recorded: one each 4\.94e-324 s\); 0\.001 s or more may pass",
        ),
    ],
)
def test_an_interval_is_refused_of_which_nothing_is_known(program: Program, every_s: float, complaint: str) -> None:
    supposition = sim.Supposition(checkpoint_every=every_s)
    for refuses in (sim.calibration, sim.what_if):
        with pytest.raises(ValueError, match=complaint):
            refuses(job(program=program), supposition)


def test_seeds_differ_and_each_gives_the_same_again() -> None:
    failed = again(job(*(fails(10.0 * number) for number in range(1, 4))))
    one, other = (sim.what_if(failed, seeds=3, seed=seed) for seed in (0, 0))
    assert one.played == other.played
    assert len({tuple(sorted(each.spent.values())) for each in one.played}) > 1


def test_agents_that_are_killed_on_their_way_leave_the_others_a_job() -> None:
    """One before it has workers, one before their processes are there."""
    early, slow = Incident(0.1005, Outside.KILL, "south"), Incident(3.0, Outside.KILL, "north")
    back = (Incident(10.0, Outside.START, "south"), Incident(12.0, Outside.START, "north"))
    (played,) = sim.what_if(job(early, *back), seeds=1).played
    assert played.is_over
    (played,) = sim.what_if(job(slow, *back[1:], spans=evolve(SPANS, execs=(5.0,))), seeds=1).played
    assert played.is_over and played.ends == (Kind.LOSS, Kind.END)


def test_workers_of_a_recorded_job_take_no_part_in_what_such_workers_never_do() -> None:
    stage = Stage(job(), sim.Supposition(), sim.Follows.TIME, 0)
    stage.runs()
    programs, (process, *_) = stage.programs, stage.world.by_node.values()
    programs.released(process)
    programs.throws_out(process)
    programs.started_again(process, 0)
    assert programs.has_entered(process, 0)


def test_workers_that_do_not_stop_are_killed_after_their_grace() -> None:
    stubborn = again(job(fails(20.0), spans=evolve(SPANS, stops=(60.0,)), group=evolve(GROUP, grace=1.0)))
    assert [round(span) for each in stubborn.spans.values() for span in each.stops] == [1]


def test_a_pause_that_an_agent_notices_is_told() -> None:
    told = again(job(Incident(20.0, Outside.PAUSE, "south", 7.0)))
    (pause,) = (each for each in told.incidents if each.kind is Outside.PAUSE)
    assert 19.0 < pause.at <= 20.0 and pause.at + pause.span == pytest.approx(27.0, abs=0.1)
    assert Kind.LOSS in sim.what_if(told, seeds=1).played[0].ends
