"""Recorded jobs that run again in the simulator: what a run wrote is told, and comes to the same again."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from recorded import fails, job

from elastic.core import sim
from elastic.core.rendezvous import Limits
from elastic.core.replay import Chronicle, Incident, Outside, told

SLOTS = ("north", "south", "east")
APART_S = 15.0
"""Two incidents are so far apart that the job goes on in between."""


@st.composite
def jobs(draw: st.DrawFn) -> Chronicle:
    incidents = list[Incident]()
    for number in range(draw(st.integers(0, 3))):
        at = 8.0 + APART_S * number + draw(st.floats(0.0, 2.0))
        slot = draw(st.sampled_from(SLOTS[1:]))
        match draw(st.sampled_from(["fails", "raises", "lost", "signalled", "drained"])):
            case "fails":
                incidents.append(fails(at, slot))
            case "raises":
                incidents.append(fails(at, slot, raises=True, span=0.3))
            case "lost":
                incidents += (Incident(at, Outside.KILL, slot), Incident(at + 7.0, Outside.START, slot))
            case "signalled":
                incidents += (Incident(at, Outside.SIGNAL, slot), Incident(at + 7.0, Outside.START, slot))
            case _:
                incidents += (Incident(at, Outside.NOTICE, slot, 4.0), Incident(at + 9.0, Outside.START, slot))
    least = draw(st.integers(1, len(SLOTS)))
    return job(*incidents, slots=SLOTS, limits=Limits(least, len(SLOTS), 5), links=draw(st.booleans()), until=120.0)


@given(jobs(), st.integers(0, 1_000))
@settings(max_examples=15)
def test_what_a_job_wrote_told_and_run_again_ends_its_rounds_alike_and_takes_as_long(
    given: Chronicle, seed: int
) -> None:
    chronicle = told(sim.record(given, seed=seed))
    forecast = sim.what_if(chronicle, seeds=2, seed=seed)
    assert forecast.agreeing == 2, [chronicle.ends, *(played.ends for played in forecast.played)]
    recorded = sum(chronicle.recorded.values())
    for played in forecast.played:
        assert abs(sum(played.spent.values()) - recorded) <= 0.05 * recorded
