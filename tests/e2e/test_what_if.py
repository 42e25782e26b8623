"""A real job, recorded and run again in the simulator."""

from __future__ import annotations

from jobs import kill
from launches import PROGRAMS, Launcher

from elastic.adapters.report.trace_file import lines
from elastic.core import sim
from elastic.core.goodput import Kind
from elastic.core.replay import Outside, told
from elastic.core.trace.lines import traces


def test_the_traces_of_a_real_job_tell_its_failure_and_the_simulator_finds_its_rounds(launch: Launcher) -> None:
    """How long things took is no matter of a test: the machine may stand still."""
    launched = launch("--nproc-per-node=2", "--max-restarts=1", PROGRAMS / "steps.py")
    kill(launched.hears(2)[1].pid)
    assert launched.ends().code == 0
    chronicle = told(trace for file in launch.traces.glob("*.ndjson") for trace in traces(lines(str(file))))
    assert [each.kind for each in chronicle.incidents] == [Outside.START, Outside.FAIL]
    assert chronicle.ends == (Kind.FAILURE, Kind.END)
    (spans,) = chronicle.spans.values()
    assert spans.lost == (2,) and len(spans.cold) == len(spans.warm) == 1
    assert (chronicle.program.first, chronicle.program.last) == (1, 6)
    forecast = sim.what_if(chronicle, follows=sim.Follows.PROGRAM, seeds=1)  # at its time it may come too late here
    assert forecast.agreeing == 1
