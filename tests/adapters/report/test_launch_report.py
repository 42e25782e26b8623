"""The report as a value and as JSON."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve, frozen
from worlds import arrived, circles, node, register, running, with_one_aside

from elastic.adapters.launch_settings import Kind, LaunchSettings, Program
from elastic.adapters.report.launch_report import Report, Result, as_json, write_report
from elastic.adapters.report.news import News, Observers, SuspectedHang
from elastic.adapters.report.worker_ends import How, WorkerEnd
from elastic.core import rendezvous
from elastic.core.group import Alone, Outcome, Stopped
from elastic.core.group.state import Drained, Refused, Unawaited
from elastic.core.hangs import HangSettings
from elastic.core.rendezvous import RendezvousState, Status
from elastic.core.rendezvous.state import Ended
from elastic.core.world import Ending, Fault, Node, Stacks, Verdict, Why

ME = Node("n", 1)
FAULT = Fault(
    ME,
    round=0,
    rank=5,
    local_rank=1,
    pid=8812,
    exit_code=-9,
    after_s=12.41,
    world_size=8,
    host="gpu-02",
    when="now",
    message="boom",
)
ALONE = running("n")
FAILED = Verdict(Ending.FAILED, 3, ME, Why.FAILED)
SUCCEEDED = Verdict(Ending.SUCCEEDED, 3, ME, Why.DONE)


def report(
    outcome: Outcome = FAILED, *faults: Fault, failures: int = 0, state: RendezvousState | None = ALONE
) -> Report:
    settings = LaunchSettings(
        Program(Kind.SCRIPT, "x"), run_id="job7", rendezvous=rendezvous.Settings(rendezvous.Limits(1, 1, 3))
    )
    known = evolve(state, failures=failures) if state else None
    return Report(settings, Result(ME, outcome, faults, known), 1, 41.2666)


def test_the_cause_is_the_first_failure_of_the_last_round_in_which_one_failed() -> None:
    first, echo = evolve(FAULT, round=2, rank=1), evolve(FAULT, round=2, rank=0)
    earlier = evolve(FAULT, round=0), evolve(FAULT, round=0, rank=2), evolve(FAULT, round=1, rank=3)
    told = report(FAILED, *earlier, first, echo)
    assert told.cause == first
    assert told.earlier == (earlier[0], earlier[2])


def test_of_several_nodes_failures_the_cause_is_that_of_the_node_whose_write_ended_the_round() -> None:
    other = Node("m", 1)
    echo, cause = evolve(FAULT, round=3, rank=9, node=other), evolve(FAULT, round=3)
    told = report(FAILED, echo, cause, evolve(cause, rank=6))
    assert (told.cause, told.echoes) == (cause, (echo, evolve(cause, rank=6)))
    assert report(evolve(FAILED, by=other), echo, cause).cause == echo
    broken = evolve(ALONE, ended=Ended(3, Why.FAILED, ME))
    assert report(evolve(FAILED, round=4), echo, cause, state=broken).cause == cause
    assert report(evolve(FAILED, round=4), echo, cause).cause == echo


def test_a_rank_that_has_heard_of_the_end_from_another_is_the_cause_only_if_no_other_is_on_record() -> None:
    heard, cause = evolve(FAULT, round=3, exit_code=79), evolve(FAULT, round=3, rank=9, node=Node("m", 1), exit_code=71)
    assert report(FAILED, heard, cause).cause == cause
    assert report(FAILED, heard, evolve(heard, rank=6)).cause == heard
    restarted = evolve(heard, rank=6, exit_code=-9)
    gave_up = evolve(heard, exit_code=71)
    scoped = report(FAILED, restarted, gave_up)
    assert scoped.cause == restarted
    alone = evolve(scoped.settings, group=evolve(scoped.settings.group, alone=Alone(3)))
    assert evolve(scoped, settings=alone).cause == gave_up, "what was mended alone is no cause"
    assert report(FAILED, heard, evolve(cause, exit_code=1)).cause == heard, "a plain program may exit with 79"


def test_where_too_few_ranks_are_left_the_cause_is_the_failure_of_the_missing_one() -> None:
    """The rank that has waited for it and ended the job is on record too, and so are those that heard of that."""
    missing, late = evolve(FAULT, round=3, exit_code=-9), evolve(FAULT, round=3, rank=6, exit_code=-11)
    gave_up = evolve(FAULT, round=3, rank=9, exit_code=80, node=Node("m", 1))
    heard = evolve(gave_up, rank=8, exit_code=79)
    told = report(FAILED, missing, gave_up, heard, late)
    told = evolve(told, settings=evolve(told.settings, group=evolve(told.settings.group, alone=Alone(0))))
    assert told.cause == missing

    def cause_of(*faults: Fault, restarts: int = 0) -> Fault | None:
        alone = evolve(told.settings, group=evolve(told.settings.group, alone=Alone(restarts)))
        return evolve(told, settings=alone, result=evolve(told.result, faults=faults)).cause

    assert cause_of(gave_up, heard) == gave_up, "nothing else is known: a node was lost, perhaps"
    assert cause_of(missing, gave_up, restarts=1) == gave_up, "it was started again"
    own = evolve(gave_up, exit_code=71)
    assert cause_of(missing, gave_up, own) == own


def test_where_workers_restart_alone_the_cause_is_the_first_failure_after_which_one_stayed_missing() -> None:
    mended, missing = evolve(FAULT, round=3, exit_code=-9), evolve(FAULT, round=3, rank=6, exit_code=-9)
    other = evolve(mended, node=Node("m", 1), rank=9)
    told = report(FAILED, mended, other, missing, evolve(missing, rank=7))
    assert told.cause == mended
    alone = evolve(told.settings, group=evolve(told.settings.group, alone=Alone(1, frozenset({143}))))
    assert evolve(told, settings=alone).cause == missing
    for_good = report(FAILED, mended, evolve(missing, exit_code=143))
    assert evolve(
        for_good, settings=evolve(alone, group=evolve(alone.group, alone=Alone(9, frozenset({143}))))
    ).cause == (evolve(missing, exit_code=143))
    later = evolve(missing, round=4)
    assert evolve(report(FAILED, mended, missing, later), settings=alone).earlier == (missing,)
    few = evolve(report(FAILED, mended), settings=alone)
    assert few.cause == mended, "what ended the round is not on record here"


@pytest.mark.parametrize("failures", [0, 1])
def test_workers_of_before_the_last_restart_of_all_are_not_missing(failures: int) -> None:
    earlier, last = (evolve(FAULT, round=round, local_rank=round, exit_code=-9) for round in (2, 3))
    told = report(SUCCEEDED, earlier, last, failures=failures, state=evolve(ALONE, round=3))
    assert told.missing == ()
    alone = evolve(told.settings, group=evolve(told.settings.group, alone=Alone(0)))
    assert evolve(told, settings=alone).missing == ((last,) if failures else (earlier, last))


def test_a_failure_on_the_way_into_the_world_that_it_ended_is_its_first_cause() -> None:
    """Its record has the number of the round that was over, since no other was known yet."""
    mended = evolve(FAULT, round=2, rank=1, exit_code=-9)
    on_the_way, beside = evolve(FAULT, round=2, exit_code=71), evolve(FAULT, round=2, rank=4, exit_code=79)
    heard = evolve(FAULT, round=3, rank=9, node=Node("m", 1), exit_code=79)
    stacks = tuple(Stacks(ME, round, ((0, f"in round {round}"),)) for round in (2, 3))
    told = report(FAILED, mended, on_the_way, beside, heard)
    group = evolve(told.settings.group, alone=Alone(9, frozenset({71, 79})))
    told = evolve(told, settings=evolve(told.settings, group=group), result=evolve(told.result, stacks=stacks))
    assert (told.cause, told.echoes, told.earlier) == (on_the_way, (beside, heard), (mended,))
    assert list(told.stacks) == ["in round 3"]
    lost = evolve(told, result=evolve(told.result, outcome=evolve(FAILED, by=Node("m", 1))))
    assert lost.cause == heard, "the node that ended the round has failed in it"
    only = evolve(told, result=evolve(told.result, faults=(mended, heard)))
    assert (only.cause, only.earlier) == (heard, (mended,)), "what was mended ended nothing"


def test_the_json_says_what_the_cause_was_and_how_this_node_s_workers_ended() -> None:
    echo = evolve(FAULT, round=3, rank=9, node=Node("m", 1))
    ends = WorkerEnd(3, 5, 1, 8812, -9, How.FAILED), WorkerEnd(3, 4, 0, 8811, -15, How.STOPPED)
    told = report(FAILED, echo, evolve(FAULT, round=3, callstack="Traceback …", remark="from outside"))
    made = as_json(evolve(told, result=evolve(told.result, ends=ends)))
    assert made["cause"] == 1
    assert [made["failures"][1][key] for key in ("callstack", "remark", "error_file")] == [
        "Traceback …",
        "from outside",
        "",
    ]
    assert made["here"]["workers"][1] == {
        "round": 3,
        "rank": 4,
        "local_rank": 0,
        "pid": 8811,
        "exit_code": -15,
        "state": "stopped by elastic",
    }


@pytest.mark.parametrize(
    "outcome",
    [
        Verdict(Ending.CANCELLED, 4, Node("ann@login-1", 1), Why.OPERATOR),
        SUCCEEDED,
        Stopped(15),
        Refused(Why.SUPERSEDED, "", 0.0),
        Drained("the file /drain"),
        Unawaited(),
    ],
)
def test_a_job_that_has_not_failed_has_no_cause_and_what_was_mended_is_from_before(outcome: Outcome) -> None:
    first, second = FAULT, evolve(FAULT, round=3, rank=1)
    told = report(outcome, first, evolve(FAULT, rank=2), second)
    assert (told.cause, told.echoes, told.others, as_json(told)["cause"]) == (None, (), 0, None)
    assert told.earlier == (first, second)


def test_without_failures_there_is_no_cause() -> None:
    assert (report(SUCCEEDED).cause, report(SUCCEEDED).earlier) == (None, ())


def test_a_job_over_its_budget_has_spent_all_of_it_and_another_what_the_register_says() -> None:
    assert report(FAILED, FAULT, failures=3).restarts == 3
    assert report(SUCCEEDED, FAULT, failures=1).restarts == 1
    assert report(evolve(FAILED, why=Why.CANNOT_START), FAULT).restarts == 0
    assert report(Refused(Why.UNCONFIRMED, "", 0.0), state=None).restarts == 0


def test_a_restart_that_a_failure_has_spent_counts_when_the_next_round_is_complete() -> None:
    """A signal may end the job before that, also one that allows no restart."""
    failed = evolve(running("a b"), round=1, complete=False, ended=Ended(0, Why.FAILED, ME))
    assert report(Stopped(15), FAULT, failures=2, state=failed).restarts == 1
    assert report(Stopped(15), FAULT, failures=2, state=evolve(failed, ended=Ended(0, Why.LOST, ME))).restarts == 2
    assert report(Stopped(15), FAULT, failures=2, state=evolve(failed, complete=True)).restarts == 2


def test_the_workers_of_the_last_world_are_counted_over_its_nodes_also_those_that_have_gone() -> None:
    state = running("a b c")
    seats = {each: evolve(seat, profile=evolve(seat.profile, local_world_size=4)) for each, seat in state.seats.items()}
    seats[node("b")] = evolve(seats[node("b")], status=Status.GONE)
    assert report(SUCCEEDED, state=evolve(state, seats=seats)).world_size == 12


@pytest.mark.parametrize("state", [None, arrived(register("2"), "a")])
def test_where_no_world_is_known_no_worker_is_counted(state: RendezvousState | None) -> None:
    assert report(SUCCEEDED, state=state).world_size == 0


def test_the_others_are_the_workers_of_the_last_failed_round_that_did_not_fail() -> None:
    earlier, first, echo = FAULT, evolve(FAULT, round=1), evolve(FAULT, round=1, rank=6)
    assert report(FAILED, earlier, first, echo).others == 6
    assert report(FAILED, evolve(FAULT, world_size=1)).others == 0
    assert report(SUCCEEDED).others == 0


NONE_BESIDE: Any = {"workers_started_again": 0, "restarts_of_wrapped_functions": 0, "workers": []}


def test_the_json_has_every_failure(tmp_path: Path) -> None:
    made = as_json(report(FAILED, FAULT, evolve(FAULT, round=1, exit_code=3, tail=("a", "b"))))
    assert (made["format"], made["run_id"]) == (1, "job7")
    assert made["here"] == {"node": "n#1", "exit_code": 1, "duration_s": 41.267, **NONE_BESIDE}
    assert (made["restarts"], made["max_restarts"]) == (3, 3)
    killed, failed = made["failures"]
    assert (killed["exit"], killed["exit_code"], killed["message"]) == ("killed by SIGKILL", -9, "boom")
    assert (failed["exit"], failed["round"], failed["tail"]) == ("exit code 3", 1, ["a", "b"])


def test_the_json_has_the_hangs_where_somebody_has_looked_for_them() -> None:
    hang = SuspectedHang(2, 61.25, (Stacks(ME, 2, ((0, "recv"), (1, "sleep"))),), 1, (Node("m", 1),), {1: "checkpoint"})
    told = report(Stopped(15))
    told = evolve(
        told, settings=evolve(told.settings, hang=HangSettings(60.0)), result=evolve(told.result, hangs=(hang,))
    )
    assert as_json(told)["here"]["hangs"] == [
        {
            "round": 2,
            "silent_s": 61.25,
            "stacks": [{"place": "recv", "ranks": [0]}, {"place": "sleep", "ranks": [1]}],
            "odd": 1,
            "missing": ["m#1"],
            "overdue": [{"rank": 1, "busy": "checkpoint"}],
        }
    ]


def test_the_json_has_where_the_time_of_this_node_went() -> None:
    told = report(SUCCEEDED)
    goodput = {("running", "none"): 12_000_000, ("starting", "failure"): 500_001}
    told = evolve(told, result=evolve(told.result, goodput=goodput))
    assert as_json(told)["here"]["goodput"] == {
        "micros": 12_500_001,
        "shares": [
            {"bucket": "running", "cause": "none", "micros": 12_000_000},
            {"bucket": "starting", "cause": "failure", "micros": 500_001},
        ],
    }


@pytest.mark.parametrize("verdict", [FAILED, SUCCEEDED, evolve(FAILED, why=Why.CANNOT_START)])
def test_the_json_is_the_same_on_every_node_but_for_what_is_here(verdict: Verdict) -> None:
    """Each has seen another version of the register, and its part took another time."""
    mine = report(verdict, FAULT, failures=1)
    later = evolve(mine.result.state, version=99) if mine.result.state else None
    other = evolve(mine, result=evolve(mine.result, node=node("m"), state=later), duration_s=7.0)
    one, two = as_json(mine), as_json(other)
    assert one.pop("here") == {"node": "n#1", "exit_code": 1, "duration_s": 41.267, **NONE_BESIDE}
    assert two.pop("here") == {"node": "m#1", "exit_code": 1, "duration_s": 7.0, **NONE_BESIDE}
    assert one == two


ENDINGS: list[tuple[Outcome, dict[str, Any]]] = [
    (FAILED, {"state": "failed", "why": "failed", "round": 3, "by": "n#1"}),
    (SUCCEEDED, {"state": "succeeded", "why": "done", "round": 3, "by": "n#1"}),
    (Refused(Why.TIMEOUT, "late", 0.0), {"state": "refused", "why": "timeout", "text": "late"}),
    (Stopped(15), {"state": "stopped", "signal": 15}),
]


@pytest.mark.parametrize(("outcome", "ending"), ENDINGS)
def test_the_json_says_how_it_ended(outcome: Outcome, ending: dict[str, Any]) -> None:
    assert as_json(report(outcome))["ending"] == ending


def test_a_report_replaces_an_older_one_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    file.write_text("older")
    write_report(str(file), report(FAILED, FAULT))
    assert json.loads(file.read_text()) == as_json(report(FAILED, FAULT))
    assert list(tmp_path.iterdir()) == [file]


def test_a_report_that_cannot_be_put_in_place_leaves_nothing(tmp_path: Path) -> None:
    in_the_way = tmp_path / "report.json"
    in_the_way.mkdir()
    with pytest.raises(OSError, match="directory"):
        write_report(str(in_the_way), report())
    assert list(tmp_path.iterdir()) == [in_the_way]


def test_a_report_is_not_written_through_a_link_that_stands_beside_it(tmp_path: Path) -> None:
    victim, path = tmp_path / "victim", tmp_path / "report.json"
    victim.write_text("precious")
    (tmp_path / f"report.json.{os.getpid()}").symlink_to(victim)
    write_report(str(path), report(SUCCEEDED))
    assert victim.read_text() == "precious"
    assert json.loads(path.read_text())["format"] == 1


def test_a_report_goes_into_a_pipe_and_does_not_take_its_place(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_report(str(pipe), report(SUCCEEDED))
    assert pipe.is_fifo()
    with open(reader, encoding="utf-8") as told:
        assert json.load(told)["format"] == 1
    assert list(tmp_path.iterdir()) == [pipe]


def test_a_pipe_that_nobody_reads_keeps_nobody_waiting_for_a_report(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="No such device"):
        write_report(str(tmp_path / "pipe"), report(SUCCEEDED))


def test_a_report_that_is_named_by_a_link_replaces_what_the_link_names(tmp_path: Path) -> None:
    file, link = tmp_path / "of_monday.json", tmp_path / "report.json"
    link.symlink_to(file)
    write_report(str(link), report(SUCCEEDED))
    assert json.loads(file.read_text())["format"] == 1
    assert link.is_symlink()


def test_a_report_is_appended_to_the_file_that_is_this_process_output(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    own = tmp_path / "stdout"
    own.symlink_to("/proc/self/fd/1")
    os.write(1, b"of the workers\n")
    write_report(str(own), report(SUCCEEDED))
    before, _, told = capfd.readouterr().out.partition("\n")
    assert (before, json.loads(told)["format"]) == ("of the workers", 1)


def test_the_json_has_what_each_round_ended_by_of_a_job_that_went_in_circles() -> None:
    state = circles(2, give_up=2)
    made = as_json(report(state.closed or FAILED, FAULT, state=state))
    assert (made["ending"]["why"], made["cause"]) == ("no progress", None)
    assert made["fruitless"] == [{"round": round, "why": "lost", "by": "b", "lost": ["b"]} for round in range(2)]
    assert as_json(report(FAILED, FAULT, state=circles(1)))["fruitless"] == []
    assert as_json(report(state.closed or FAILED, state=None))["fruitless"] == []


def test_the_json_names_the_nodes_that_are_set_aside() -> None:
    told = as_json(report(state=with_one_aside()))["set_aside"]
    assert told == [{"node": "b#1", "name": "b", "host": "b", "failures": 2, "cooldown_s": 600.0}]
    assert as_json(report())["set_aside"] == as_json(report(state=None))["set_aside"] == []


@frozen
class Patient:
    """An observer that wants to be called at this time."""

    until: float | None

    def saw(self, news: News) -> None:
        pass

    def passed(self, now: float) -> None:
        pass


def test_the_observer_that_wants_to_be_called_first_is() -> None:
    assert Observers(Patient(5.0), Patient(None), Patient(3.0)).until == 3.0
    assert Observers(Patient(None)).until is None
