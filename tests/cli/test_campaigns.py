"""The progress of many runs is shown now and then, and never ends a run."""

from __future__ import annotations

import io

from elastic.cli.campaigns import RunProgress
from elastic.cli.render.last_line import PLAIN_EVERY_S
from elastic.core.sim.tally import Broken, Tally

SOME = Tally(runs=1_200, steps=480_000)


def test_a_log_shows_progress_every_ten_seconds() -> None:
    out = io.StringIO()
    progress = RunProgress(out, 5_000, 0.0)
    for second in range(25):
        progress.shows(Tally(runs=100 * second, steps=20_000 * second), float(second))
    assert PLAIN_EVERY_S == 10.0
    assert out.getvalue().splitlines() == [
        "elastic  1,000 of 5,000 runs · 200,000 steps · 20,000 steps/s · no violation",
        "elastic  2,000 of 5,000 runs · 400,000 steps · 20,000 steps/s · no violation",
    ]


def test_progress_of_endless_runs_has_no_total_and_counts_violations() -> None:
    out, broken = io.StringIO(), Tally(runs=1, steps=10, broken={"V10": [(0, Broken("V10", "V10: so it was"))]})
    RunProgress(out, None, 0.0).shows(broken, 10.0)
    assert out.getvalue() == "elastic  1 run · 10 steps · 1 steps/s · 1 violation\n"


def test_progress_without_a_reader_ends_no_run() -> None:
    out = io.StringIO()
    progress = RunProgress(out, 10, 0.0)
    out.close()
    progress.shows(SOME, 10.0)
    progress.shows(SOME, 20.0)
    progress.clear()
