"""`elastic simulate --calls`: the table, every run again, and exit code 1 for a violation."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from elastic.adapters.simulations.campaign import Calls
from elastic.cli.main import run
from elastic.cli.render import call_runs
from elastic.cli.render.node_runs import ENOUGH
from elastic.core.sim.calls.call_sometimes import SOMETIMES
from elastic.core.sim.calls.walk import Walk, walked
from elastic.core.sim.tally import Broken, Showed, Tally

Simulate = Callable[..., tuple[int, str, str]]


@pytest.fixture
def simulate(capfd: pytest.CaptureFixture[str]) -> Simulate:
    def simulated(*arguments: str) -> tuple[int, str, str]:
        code: Any = run(["simulate", "--calls", *arguments])
        out, err = capfd.readouterr()
        return code, out, err

    return simulated


def test_the_closing_table(simulate: Simulate) -> None:
    code, out, _ = simulate("--runs=12", "--seed=0x5eed", "--jobs=1")
    lines = out.splitlines()
    assert code == 0
    assert re.fullmatch(r" 12 runs · [\d,]+ steps · [\d,]+ steps/s · \d+\.\d s", lines[0])
    assert re.match(r" faults      [A-Za-z ]+ \d+  ", lines[1])
    assert re.search(rf' seen        \d+ of {len(SOMETIMES)} "sometimes" \(rarest: [^)]+, \d runs?\)\n', out)
    assert " violations  none\n" in out
    assert lines[-1] == " seed        0x5eed · any run again: elastic simulate --calls --seed 0x5eed --only RUN"


def test_json_is_the_same_on_one_core_and_on_two(simulate: Simulate) -> None:
    one, two = (json.loads(simulate("--runs=20", "--seed=3", f"--jobs={jobs}", "--json")[1]) for jobs in (1, 2))
    for told in (one, two):
        del told["took_s"], told["steps_per_s"]
    assert one == two
    assert list(one["sometimes"]) == list(SOMETIMES)
    runs = [json.loads(simulate("--seed=3", f"--only={number}", "--json")[1]) for number in range(20)]
    assert sum(each["steps"] for each in runs) == one["steps"]


def test_runs_stop_after_the_steps_that_were_asked_for(simulate: Simulate) -> None:
    told = json.loads(simulate("--steps=500", "--seed=3", "--jobs=1", "--json")[1])
    assert 500 <= told["steps"] < 500 + 2_500


def test_a_run_is_told_step_by_step(simulate: Simulate) -> None:
    code, out, _ = simulate("--seed=3", "--only=1")
    lines = out.splitlines()
    assert code == 0
    assert all(re.fullmatch(r" *\d+  rank \d .+", each) for each in lines[:-2])
    assert lines[-1] == f" no violation · {len(lines) - 2} steps"


def test_an_option_for_nodes_is_a_mistake_with_calls(simulate: Simulate) -> None:
    for given in ("--nodes=3", "--faults=all", "--replay=x.story"):
        code, out, err = simulate(given)
        assert (code, out) == (2, "")
        assert err == f"elastic: {given.split('=')[0]}: is for nodes; leave it out, or --calls\n"
    assert simulate("--only=1")[2].startswith("elastic: --only: a run of which seed?")


def broken() -> Tally:
    tally = Tally(sometimes=SOMETIMES)
    tally.adds(Showed(7, 10, 0, 0, 0.0, {}, {"fault: dies": 2}, Broken("I5", "I5: hit")))
    return tally


def test_a_violation_is_counted_with_the_run_that_shows_it() -> None:
    assert " violations  I5 in 1 run (first: 7)" in call_runs.summary(Calls(1), broken(), 1.0)
    assert call_runs.data(Calls(1), broken(), 1.0)["violations"] == [{"run": 7, "number": "I5", "fact": "I5: hit"}]
    told = Walk(1, walked(0, steps_max=1).seen, ("I5", "I5: hit"), walked(0, steps_max=1).moves)
    assert call_runs.told(told)[-1] == " VIOLATION   I5: hit"
    assert call_runs.told_data(7, told)["violation"] == {"number": "I5", "fact": "I5: hit"}


def test_a_sometimes_that_many_runs_never_showed_is_a_warning() -> None:
    many, few = broken(), broken()
    many.runs = ENOUGH
    assert any(each.startswith(" WARNING") for each in call_runs.summary(Calls(1), many, 1.0))
    assert not any(each.startswith(" WARNING") for each in call_runs.summary(Calls(1), few, 1.0))
