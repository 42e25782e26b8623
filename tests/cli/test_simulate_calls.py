"""`elastic simulate --calls`: the table, every run again, and exit code 1 for a violation."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from elastic.adapters.simulations.campaign import Calls
from elastic.cli.main import run
from elastic.cli.render import call_runs
from elastic.cli.render.node_runs import ENOUGH
from elastic.core.properties.law import Strength
from elastic.core.sim.calls.call_sometimes import SOMETIMES
from elastic.core.sim.calls.call_strength import LAWS
from elastic.core.sim.calls.over_nodes import SOMETIMES as OVER_NODES
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
    code, out, _ = simulate("--runs=12", "--seed=0x5eed", "--jobs=1", "--verbose")
    lines = out.splitlines()
    assert code == 0
    assert re.fullmatch(r" 12 runs · [\d,]+ steps · [\d,]+ steps/s · \d+\.\d s", lines[0])
    assert lines[1] == " violations  none"
    assert lines[2] == " seed        0x5eed · any run again: elastic simulate --calls --seed 0x5eed --only RUN"
    assert re.match(r" faults      [A-Za-z ]+ \d+  ", lines[3])
    assert re.search(rf' seen        \d+ of {len(SOMETIMES)} "sometimes" \(rarest: [^)]+, \d runs?\)\n', out)
    assert re.search(r"\n armed       I1 \d+  I2 \d+  ", out)
    assert not re.search(r"\n armed ", simulate("--runs=12", "--seed=0x5eed", "--jobs=1")[1])


def test_json_is_the_same_on_one_core_and_on_two(simulate: Simulate) -> None:
    one, two = (json.loads(simulate("--runs=20", "--seed=3", f"--jobs={jobs}", "--json")[1]) for jobs in (1, 2))
    for told in (one, two):
        del told["took_s"], told["steps_per_s"]
    assert one == two
    assert list(one["sometimes"]) == list(SOMETIMES)
    assert list(one["laws"]) == list(LAWS)
    runs = [json.loads(simulate("--seed=3", f"--only={number}", "--json")[1]) for number in range(20)]
    assert sum(each["steps"] for each in runs) == one["steps"]


def test_runs_stop_after_the_steps_that_were_asked_for(simulate: Simulate) -> None:
    told = json.loads(simulate("--steps=500", "--seed=3", "--jobs=1", "--json")[1])
    assert 500 <= told["steps"] < 500 + 2_500


def test_a_run_is_told_step_by_step(simulate: Simulate) -> None:
    code, out, _ = simulate("--seed=3", "--only=1")
    lines = out.splitlines()
    assert code == 0
    assert all(re.fullmatch(r" *\d+  ( *[\d.]+ s  )?rank \d .+", each) for each in lines[:-2])
    assert lines[-1] == f" no violation · {len(lines) - 2} steps"


def test_an_option_for_nodes_is_a_mistake_with_calls(simulate: Simulate) -> None:
    for given in ("--min=3", "--faults=all", "--replay=x.story"):
        code, out, err = simulate(given)
        assert (code, out) == (2, "")
        assert err == f"elastic: {given.split('=')[0]}: is for nodes; leave it out, or --calls\n"
    assert simulate("--only=1")[2].startswith("elastic: --only: a run of which seed?")


def test_more_nodes_than_a_register_has_seats_for_their_ranks_are_a_mistake(simulate: Simulate) -> None:
    assert simulate("--nodes=2049", "--runs=1") == (2, "", "elastic: --nodes=2049: at most 2048 with --calls\n")


def test_ranks_can_live_in_the_workers_of_nodes(simulate: Simulate) -> None:
    code, out, _ = simulate("--nodes=3", "--runs=6", "--seed=7", "--jobs=1", "-v")
    assert code == 0
    assert re.search(rf' seen        \d+ of {len(OVER_NODES)} "sometimes"', out)
    assert re.search(r"  N1 \d+ ", out.replace("\n            ", ""))
    assert out.splitlines()[2].endswith("elastic simulate --calls --nodes 3 --seed 0x7 --only RUN")
    code, out, _ = simulate("--nodes=3", "--seed=7", "--only=3")
    assert code == 0
    assert re.search(r" s  a +rank \S+#1: \d driver asks\n", out)
    told = json.loads(simulate("--nodes=3", "--seed=7", "--only=3", "--json")[1])["told"]
    assert told == out.splitlines()[:-2]


def broken() -> Tally:
    tally = Tally(sometimes=SOMETIMES, laws=tuple(LAWS))
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


def test_a_law_that_many_runs_never_armed_is_a_warning() -> None:
    tally = Tally(runs=ENOUGH, sometimes=(), laws=tuple(LAWS), strength=Strength(Counter(dict.fromkeys(LAWS, 1))))
    assert not any(each.startswith(" WARNING") for each in call_runs.summary(Calls(1), tally, 1.0))
    del tally.strength.armed["I14"]
    table = "\n".join(call_runs.summary(Calls(1), tally, 1.0))
    assert f" NEVER ARMED I14 ({LAWS['I14'].when})\n" in table
    assert " WARNING     " in table


OWN = """\
def nobody_fails(before, move, after):
    if move.what == "fails here":
        yield "calm", f"rank {move.rank} fails in a world of {len(after.ranks)}"


def slip(before, move, after):
    return after.nothing
"""


@pytest.fixture
def laws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("laws.py").write_text(OWN)


@pytest.mark.usefixtures("laws")
def test_a_user_s_law_is_judged_beside_ours(simulate: Simulate) -> None:
    own = "--property=laws.py:nobody_fails"
    code, out, _ = simulate("--runs=40", "--seed=3", own, "--jobs=2")
    found = re.search(r" violations  calm in [\d,]+ runs? \(first: (\d+)\)", out)
    assert code == 1 and found, out
    assert out.splitlines()[2].endswith(f"any run again: elastic simulate --calls {own} --seed 0x3 --only RUN")
    code, out, _ = simulate("--seed=3", f"--only={found[1]}", own)
    assert code == 1
    assert re.match(r" VIOLATION   calm: rank \d fails in a world of \d$", out.splitlines()[-1])


@pytest.mark.usefixtures("laws")
def test_a_slip_in_a_user_s_law_is_told_in_one_line(simulate: Simulate) -> None:
    code, out, err = simulate("--runs=1", "--seed=3", "--property=laws.py:slip", "--jobs=1")
    assert (code, out) == (2, "")
    slip = "AttributeError: 'World' object has no attribute 'nothing' (line 7)"
    use = "it is called with a world, a move, and the world after it, and yields pairs of text: a name and a sentence"
    assert err == f"elastic: --property=laws.py:slip: {slip}; {use}\n"
