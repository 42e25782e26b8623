"""`elastic what-if`: its lines, its data and its exit codes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from attrs import evolve
from recorded import PROGRAM, SAVES, SPANS, fails, job, written

from elastic.cli.exit_codes import FAILED, SUCCEEDED
from elastic.cli.main import run
from elastic.cli.mistakes import USAGE
from elastic.cli.render.what_if import doubts, rendered
from elastic.core import sim
from elastic.core.goodput import Kind
from elastic.core.rendezvous import Limits
from elastic.core.replay import Checkpoints, Chronicle, Incident, Outside, Program, told
from elastic.core.violation import Violation

WhatIf = Callable[..., tuple[int, str]]
TRACES = sim.record(job(fails(8.0), program=evolve(PROGRAM, last=79)))


@pytest.fixture
def what_if(capfd: pytest.CaptureFixture[str]) -> WhatIf:
    def command(*arguments: object) -> tuple[int, str]:
        code = run(["what-if", *map(str, arguments)])
        out, err = capfd.readouterr()
        return code, out + err

    return command


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    return [written(tmp_path, trace) for trace in TRACES]


def knows(monkeypatch: pytest.MonkeyPatch, chronicle: Chronicle) -> None:
    """Let the traces tell this, whatever they hold."""
    monkeypatch.setattr(
        "elastic.cli.what_if.told_of", lambda streams: [list(steps) for _, steps in streams] and chronicle
    )


def test_a_recorded_job_stands_beside_the_same_job_run_again(what_if: WhatIf, files: Sequence[Path]) -> None:
    code, text = what_if(*files, "--seeds=2")
    assert code == SUCCEEDED
    first, _, head, *rows = text.splitlines()
    assert first.endswith(" of 2 nodes, 2 runs of it")
    assert head.split() == ["bucket", "cause", "recorded", "replayed"]
    assert ["starting", "failure"] in [row.split()[:2] for row in rows]
    assert "  rounds     ended by failure, end of the job; so in 2 of 2 runs" in rows
    assert any(row.startswith("  known      each bucket of 1 % or more is as recorded, within 0.") for row in rows)
    assert rows[-1].startswith("  assumed    each of 1 failure of a worker comes again at its time")


def test_a_job_is_named_as_its_user_named_it(what_if: WhatIf, tmp_path: Path) -> None:
    files = [written(tmp_path, evolve(each, header=evolve(each.header, run_id="train42"))) for each in TRACES]
    code, text = what_if(*files, "--seeds=1")
    assert (code, text.splitlines()[0]) == (SUCCEEDED, "elastic  job train42 of 2 nodes, 1 run of it")
    data = json.loads(what_if(*files, "--seeds=1", "--json")[1])
    assert data["run_id"] == "train42" != data["job"]


def test_what_is_supposed_stands_beside_both(what_if: WhatIf, files: Sequence[Path]) -> None:
    code, text = what_if(*files, "--seeds=2", "--max-restarts=0", "--follows=program")
    assert code == SUCCEEDED
    assert text.splitlines()[2].split() == ["bucket", "cause", "recorded", "replayed", "supposed"]
    assert "  supposed   the job ends in 2 of 2 runs; a run lasts " in text
    assert "comes again at the same step, or as long after a start" in text


def test_another_interval_between_checkpoints_stands_beside_the_recorded_one(what_if: WhatIf, tmp_path: Path) -> None:
    traces = sim.record(job(fails(28.0), program=SAVES), sim.Supposition(checkpoint_every=10.0))
    saved = [written(tmp_path, trace) for trace in traces]
    code, text = what_if(*saved, "--seeds=1", "--checkpoint-every=2")
    assert code == SUCCEEDED, text
    assert (
        "  assumed    each restart begins after the last save; one came each 10 s, and stopped the training for "
        in text
    )
    assert "a save comes at the end of a step" not in text
    _, text = what_if(*saved, "--seeds=1", "--checkpoint-every=2.1")
    assert "a save comes at the end of a step: where one each 2.1 s is supposed, one came each 2.25 s" in text, text
    _, data = what_if(*saved, "--seeds=1", "--checkpoint-every=2", "--json")
    (again,) = (each for each in json.loads(data)["shares"] if each["bucket"] == "recomputed")
    assert again["supposed_micros"] < again["replayed_micros"] / 2
    assert again["replayed_micros"] == pytest.approx(again["recorded_micros"], rel=0.1)


def test_how_far_the_runs_have_come_is_shown(
    what_if: WhatIf, files: Sequence[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("elastic.cli.render.last_line.PLAIN_EVERY_S", 0.0)
    _, text = what_if(*files, "--seeds=2", "--max-restarts=0")
    shown = [line for line in text.splitlines() if "of 2 runs" in line or "MiB read" in line]
    assert "elastic  1 of 2 runs, as it was" in shown and "elastic  2 of 2 runs, supposed" in shown
    assert "elastic  100.0 % of 0 MiB read" in shown


def test_a_line_that_no_agent_wrote_is_named_with_its_file(what_if: WhatIf, files: Sequence[Path]) -> None:
    files[1].write_bytes(files[1].read_bytes() + b"{}\n")
    code, text = what_if(*files)
    assert code == USAGE and f"{files[1]}: line " in text and "is it a trace?" in text


def test_the_same_can_be_had_as_data(what_if: WhatIf, files: Sequence[Path]) -> None:
    code, text = what_if(*files, "--seeds=2", "--json")
    data = json.loads(text)
    assert code == SUCCEEDED and data["format"] == 1 and data["agreeing"] == data["runs"] == 2
    assert data["ends"] == ["failure", "end of the job"] and data["off"] < 0.1
    assert len(data["assumed"]) == 1 and data["doubtful"] == []
    recorded = sum(each["recorded_micros"] for each in data["shares"])
    replayed = sum(each["replayed_micros"] for each in data["shares"])
    assert replayed == pytest.approx(recorded, rel=0.02) and "supposed_micros" not in data["shares"][0]
    _, text = what_if(*files, "--seeds=1", "--json", "--spares=1")
    assert sum(each["supposed_micros"] for each in json.loads(text)["shares"]) > recorded


def test_nothing_is_supposed_of_a_job_that_the_simulator_does_not_know(
    what_if: WhatIf, files: Sequence[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    chronicle = told(TRACES)
    unlike = evolve(chronicle, recorded={key: 2 * micros for key, micros in chronicle.recorded.items()})
    forecast = sim.what_if(unlike, seeds=1)
    assert forecast.off > 0.1
    assert any("not well enough to suppose anything; " in line for line in rendered(forecast, None))
    knows(monkeypatch, unlike)
    code, text = what_if(*files, "--seeds=1", "--spares=1")
    assert code == FAILED and "supposed  " not in text


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ("{0}", "no trace of b#1, which was in this job; name the traces of all nodes"),
        ("{0} {1} {1}", "name one of them"),
        ("{0} {1} --nnodes=3", "cannot be supposed: a round of 3 nodes, where there are 2; suppose more spares, too"),
        ("{0} {1} --seeds=1001", "--seeds=1001: at most 1000 runs"),
        ("{0} {1} --spares=1001", "--spares=1001: at most 1000 spares"),
        ("{0} {1} --ttl=0.001", "a TTL of 0.001 s: a heartbeat each 0.0002 s; 0.01 s to an hour may pass"),
        (
            "{0} {1} --checkpoint-every=5",
            "cannot be supposed: no worker told of a save after its first progress; in the",
        ),
        ("{0} {1} --checkpoint-every=0", "--checkpoint-every=0: write a number of seconds above 0"),
        ("{0} {1} --follows=me", "--follows=me: write one of time, node, program"),
        ("/dev/null", "no header: it is empty, or no trace"),
    ],
)
def test_a_mistake_is_one_line(what_if: WhatIf, files: Sequence[Path], arguments: str, complaint: str) -> None:
    code, text = what_if(*arguments.format(*files).split())
    *progress, mistake = text.splitlines()
    assert (
        code == USAGE and complaint in mistake and all("of 20 runs" in line or "MiB read" in line for line in progress)
    )


def test_a_run_that_breaks_a_law_tells_nothing(
    what_if: WhatIf, files: Sequence[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*arguments: object, **more: object) -> None:
        raise Violation("R2", "two worlds of one round")

    monkeypatch.setattr("elastic.cli.what_if.forecast", broken)
    code, text = what_if(*files)
    assert code == USAGE and text.count("\n") == 1
    assert "a simulated run broke a law, so nothing is told: R2: two worlds of one round" in text


def test_a_bucket_that_was_not_recorded_makes_no_number_that_json_lacks(
    what_if: WhatIf, files: Sequence[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    chronicle = told(TRACES)
    strange = evolve(chronicle, recorded={("spare", Kind.SPARE): sum(chronicle.recorded.values())})
    knows(monkeypatch, strange)
    code, text = what_if(*files, "--seeds=1", "--json")
    assert code == FAILED and json.loads(text)["off"] is None and "Infinity" not in text


def test_other_rounds_and_causes_than_the_recorded_ones_are_doubts() -> None:
    """Each bucket has its time, and has it for another reason."""
    chronicle = told(TRACES)
    other = Counter[tuple[str, Kind]]()
    for (bucket, kind), micros in chronicle.recorded.items():
        other[bucket, Kind.LOSS if kind is Kind.FAILURE else kind] += micros
    forecast = sim.what_if(evolve(chronicle, recorded=other, ends=(Kind.LOSS, Kind.END)), seeds=1)
    assert forecast.off <= 0.1
    first, *causes = [line for line in doubts(forecast, None, sim.Follows.TIME) if line.startswith("  doubtful   ")]
    assert first == "  doubtful   the rounds of most runs do not end as those that were recorded"
    assert [line.split()[2] for line in causes] == ["failure:", "loss:"]
    assert not any("doubtful" in line for line in doubts(sim.what_if(chronicle, seeds=1), None, sim.Follows.TIME))


def test_traces_with_missing_parts_are_refused(what_if: WhatIf, files: Sequence[Path]) -> None:
    files[0].with_name(f"{files[0].name}.3").write_bytes(files[0].read_bytes())
    code, text = what_if(*files)
    assert code == USAGE and f"{files[0]}.2 is gone: what came from outside then is not known" in text


def test_the_doubts_are_printed() -> None:
    def said(chronicle: object) -> str:
        forecast = sim.what_if(chronicle, seeds=1)  # type: ignore[arg-type]
        return "\n".join(doubts(forecast, forecast, sim.Follows.NODE))

    mute = job(program=Program(), spans=evolve(SPANS, run_s=9.0))
    assert "the program tells no steps (elastic.progress): after a restart it begins anew" in said(mute)
    goes_on = job(program=Program(), spans=evolve(SPANS, run_s=9.0, longest_s=12.0, total_s=21.0))
    assert "after a restart it goes on where it stopped" in said(goes_on)
    running = job(fails(5.0), spans=evolve(SPANS, lost=()), until=10.0, is_over=False)
    assert "no restart told its steps: after one the program would do all of them again" in said(running)
    assert "the job had not ended: its runs last as long as its traces do" in said(running)
    assert "when its node's workers have run for as long" in said(running)
    failed = told(sim.record(job(fails(5.0), limits=Limits(2, 2, 0))))
    assert "no worker succeeded: how much was left to do is not known" in said(failed)
    saves = evolve(SAVES, checkpoints=Checkpoints(10.0, 0.0, 0.0))
    beside = sim.what_if(job(program=saves), sim.Supposition(checkpoint_every=10.0), seeds=1)
    assert "and cost nothing: no worker that told of one was busy" in "\n".join(
        doubts(beside, beside, sim.Follows.TIME)
    )
    lost = told(sim.record(job(Incident(10.0, Outside.KILL, "south"), Incident(15.0, Outside.START, "south"))))
    assert "until the loss of a node is noticed, the workers of the others train on" in said(lost)
