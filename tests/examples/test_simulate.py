"""The examples of the simulator run, and say what they promise."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest
from attrs import evolve
from click.testing import CliRunner
from recorded import job, written

from elastic.core import sim
from elastic.core.goodput import Kind
from elastic.core.rendezvous import Limits
from elastic.core.replay import Incident, Outside, told

EXAMPLES = Path(__file__).parents[2] / "examples/simulate"


def loaded(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"simulate_{name}", EXAMPLES / f"{name}.py")
    assert spec
    assert spec.loader
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def churn() -> ModuleType:
    return loaded("churn")


@pytest.fixture(scope="module")
def downtime() -> ModuleType:
    return loaded("downtime")


def test_a_policy_that_keeps_the_order_is_found_to_keep_it(
    churn: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    assert churn.main(runs=15) == 0
    assert capsys.readouterr().out == "15 runs: the nodes that stayed kept their order\n"


def test_one_that_does_not_is_taken_apart_in_a_few_operations(
    churn: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    assert churn.main(runs=50, holds=churn.oldest_rack_stays_in_order) == 1
    broken, *story = capsys.readouterr().out.splitlines()
    assert broken.startswith("order: in round 1 ")
    assert len(sim.parsed(story).operations) < 10


def rows(out: str) -> dict[str, list[str]]:
    return {line[:20].strip(): line[20:].split() for line in out.splitlines()[1:]}


def test_a_lost_node_without_a_spare_costs_as_long_as_it_is_away(downtime: ModuleType) -> None:
    result = CliRunner().invoke(downtime.main, ["--nodes=3", "--times=2", "--back=40", "--mtbf=72"])
    assert result.exit_code == 0
    told = rows(result.output)
    assert told["a node is lost"][:3] == ["1.00", "40.0", "s"]
    assert float(told["a worker fails"][1]) < 1.0
    assert told["together"][-2] == "up"


def test_with_a_spare_it_costs_until_the_loss_is_noticed(downtime: ModuleType) -> None:
    setting = sim.Setting(nodes=3, limits=Limits(2, 2, 9), seed=1)
    lost = next(each for each in downtime.INCIDENTS if each.kind is sim.Kind.CRASH)
    down_s, breaks = downtime.measured(setting, lost, 3, 40.0)
    assert setting.interval * (setting.attempts - 1) < down_s * 3 / 2 < 40.0
    assert breaks <= 1.0


def test_a_job_that_never_starts_is_said_to_be_one(downtime: ModuleType) -> None:
    result = CliRunner().invoke(downtime.main, ["--nodes=2", "--min=1", "--max=3", "--last-call=100"])
    assert result.exit_code == 1
    assert "this job never starts" in result.output


@pytest.mark.parametrize(
    ("given", "named"),
    [("--missed=1", "keep_alive_max_attempt"), ("--back=-1", "--back"), ("--back=inf", "--back"), ("--min=0", "--min")],
)
def test_settings_that_cannot_be_are_refused(downtime: ModuleType, given: str, named: str) -> None:
    result = CliRunner().invoke(downtime.main, [given])
    assert result.exit_code == 2
    assert named in result.output


@pytest.mark.parametrize(("given", "code", "says"), [([], 0, "20 runs and no violation"), (["--careless"], 1, "S7: ")])
def test_a_simulator_of_one_s_own_is_held_to_our_laws(
    given: list[str], code: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert loaded("judge_your_own").main(given) == code
    assert says in capsys.readouterr().out


def test_the_bare_core_comes_back_after_a_failure_with_a_dictionary_for_a_store() -> None:
    program = [sys.executable, str(EXAMPLES / "drive_it_yourself.py")]
    told = subprocess.run(program, capture_output=True, text=True, check=True).stdout.splitlines()
    assert sorted(line[8:] for line in told[:3]) == [f"{who} join  → round 0 of a b c" for who in "abc"]
    assert told[3].endswith("a worker of b fails")
    assert sorted(line[8:] for line in told[-3:]) == [f"{who} join  → round 1 of a b c" for who in "abc"]


def test_what_a_spare_would_have_bought_is_computed_from_traces(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    example = loaded("what_if")
    lost, back = Incident(10.0, Outside.KILL, "south"), Incident(30.0, Outside.START, "south")
    files = [str(written(tmp_path, trace)) for trace in sim.record(job(lost, back))]
    monkeypatch.setattr(sim, "what_if", partial(sim.what_if, seeds=1))
    assert example.main(files) == 0
    first, *others = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"as it was: .*% training, and the runs are off by [0-2]\.\d%", first)
    assert [line.partition(":")[0] for line in others] == [
        f"with a spare, failures by {each}" for each in ("time", "node", "program")
    ]
    shares = [float(line.partition(": ")[2].partition("%")[0]) for line in (first, others[0])]
    assert shares[1] > 50.0
    unlike = evolve(told(sim.record(job())), recorded={("training", Kind.NONE): 1})
    monkeypatch.setattr("elastic.core.replay.told", lambda traces: unlike)
    assert example.main(files) == 1
