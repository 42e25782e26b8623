"""The end of a job as people read it: stories from hand-made results."""

from __future__ import annotations

import math
import signal
from collections.abc import Mapping
from textwrap import dedent

import pytest
from attrs import evolve
from worlds import arrived, circles, register, running, with_one_aside

from elastic.adapters.launch_settings import Kind, LaunchSettings, Program
from elastic.adapters.report.launch_report import Report, Result
from elastic.adapters.report.news import SuspectedHang
from elastic.adapters.report.worker_ends import How, WorkerEnd
from elastic.adapters.terminal import printed
from elastic.adapters.workers.messages.error_files import exit_sentence
from elastic.cli.exit_codes import exit_code
from elastic.cli.render.early_losses import lost_again
from elastic.cli.render.ending import render_report
from elastic.cli.render.sentences import PLACES
from elastic.core import group, rendezvous
from elastic.core.goodput import JobTime
from elastic.core.group import Outcome, Stopped
from elastic.core.group.state import Alone, Drained, Refused, Unawaited
from elastic.core.node import CAME_LATE
from elastic.core.ranks import Ranks, WorkerRanks
from elastic.core.rendezvous import Ended, RendezvousState
from elastic.core.world import Ending, Fault, Node, Origin, Stacks, Verdict, Why

ME = Node("gpu-02", 1)
FAULT = Fault(
    ME,
    round=0,
    rank=5,
    local_rank=1,
    pid=8812,
    exit_code=1,
    after_s=12.41,
    world_size=8,
    host="gpu-02",
    when="2025-01-01 13:05:40",
    message="RuntimeError: an illegal memory access\nCUDA kernel errors might be …",
    where="train.py:88 in step",
    log="logs/job7_x1/attempt_0/1/stderr.log",
)
KILLED = evolve(FAULT, exit_code=-9, message="killed by SIGKILL", where="", log="")
OVER_BUDGET = Verdict(Ending.FAILED, 3, ME, Why.FAILED)


def registered(size: int, failures: int = 0, name: str = "gpu-02") -> RendezvousState:
    """Return the register of one node with so many workers."""
    state = running(name, restarts=3)
    ((node, seat),) = state.seats.items()
    sized = evolve(seat, profile=evolve(seat.profile, local_world_size=size))
    return evolve(state, seats={node: sized}, failures=failures)


ALONE = registered(8)
HAD = Ranks(0, 1, 1, "default", 1, (WorkerRanks(0, 0, 0),))
NONE = Ranks(0, 0, 0, "", 0, ())


def told(
    outcome: Outcome,
    *faults: Fault,
    paths: tuple[str, ...] = (),
    state: RendezvousState | None = ALONE,
    ends: tuple[WorkerEnd, ...] = (),
    ranks: Ranks = HAD,
    stacks: tuple[Stacks, ...] = (),
    hangs: tuple[SuspectedHang, ...] = (),
    alone: Alone | None = None,
    barriers: tuple[float, float] = (math.inf, math.inf),
) -> str:
    """Return the report of a job with 3 restarts, on a node that had workers."""
    settings = LaunchSettings(
        Program(Kind.SCRIPT, "train.py"),
        store="gpu-01:29400",
        rendezvous=rendezvous.Settings(rendezvous.Limits(1, 1, 3), barrier_timeout=barriers[0]),
        group=group.Settings(alone=alone, barrier_timeout=barriers[1]),
    )
    report = Report(
        settings,
        Result(ME, outcome, faults, state, ranks=ranks, ends=ends, stacks=stacks, hangs=hangs),
        exit_code(outcome),
        41.27,
    )
    return printed(*render_report(report, paths))


def text(expected: str) -> str:
    return dedent(expected).removeprefix("\n")


def test_a_success_is_one_line() -> None:
    succeeded = Verdict(Ending.SUCCEEDED, 1, ME, Why.DONE)
    assert told(succeeded, FAULT, state=registered(8, 1)) == "all 8 workers succeeded · 1 restart, 41.3 s\n"
    assert told(succeeded, state=registered(1)) == "1 worker succeeded · 0 restarts, 41.3 s\n"


def test_a_success_counts_the_workers_of_all_nodes() -> None:
    succeeded = Verdict(Ending.SUCCEEDED, 0, ME, Why.DONE)
    assert told(succeeded, state=running("a b c")) == "all 3 workers succeeded · 0 restarts, 41.3 s\n"


def test_a_success_without_a_rank_says_which_and_how_it_ended() -> None:
    """Where workers restart alone the others go on without a rank whose restarts are spent."""
    succeeded = Verdict(Ending.SUCCEEDED, 0, ME, Why.DONE)
    lost = [evolve(KILLED, round=0, rank=rank, local_rank=rank) for rank in range(5)]
    state, alone = registered(8), Alone(1, frozenset({143}))
    assert told(succeeded, lost[3], state=state) == "all 8 workers succeeded · 0 restarts, 41.3 s\n"
    assert told(succeeded, lost[3], state=state, alone=alone) == "all 8 workers succeeded · 0 restarts, 41.3 s\n"
    told_to_leave = evolve(lost[4], exit_code=143)
    assert told(succeeded, lost[3], lost[3], told_to_leave, state=state, alone=alone) == (
        "6 of 8 workers succeeded; rank 3 did not (killed by SIGKILL); rank 4 did not (exit code 143) · 0 restarts, 41.3 s\n"
    )
    many = told(succeeded, *lost, state=state, alone=Alone(0))
    assert many.startswith("3 of 8 workers succeeded; rank 0 did not (killed by SIGKILL); rank 1 did not (")
    assert "; nor did 2 others · " in many
    later = evolve(registered(8, 1), round=1)
    assert told(succeeded, lost[3], state=later, alone=Alone(0)).startswith("all 8 workers succeeded · 1 restart")


def test_a_node_whose_exit_barrier_timed_out_names_what_set_the_time() -> None:
    """If the two numbers are equal, each of the three may have set it."""
    assert told(Unawaited(), state=None, barriers=(300.0, 300.0)).startswith(
        "this node's 1 worker succeeded; after 300 s (--exit-barrier-timeout or TORCH_ELASTIC_EXIT_BARRIER_TIMEOUT or "
        "barrier_timeout of --rdzv-conf) it waits no longer for the others · 0 restarts"
    )
    assert "after 7 s (--exit-barrier-timeout or TORCH_ELASTIC_EXIT_BARRIER_TIMEOUT) it waits no longer" in told(
        Unawaited(), state=None, barriers=(300.0, 7.0)
    )


def test_a_node_that_came_after_the_end_says_that_no_worker_ran() -> None:
    succeeded = Verdict(Ending.SUCCEEDED, 0, ME, Why.DONE)
    assert told(succeeded, state=registered(2), ranks=NONE) == (
        "all 2 workers succeeded · 0 restarts, 41.3 s · no worker ran here: job none was over, or had its nodes, when this "
        "one came (a new job has another --rdzv-id)\n"
    )
    failed = told(Verdict(Ending.FAILED, 0, ME, Why.FAILED), FAULT, ranks=NONE)
    assert failed.splitlines()[-1] == (
        "  hint          no worker ran here: job none was over, or had its nodes, when this one came (a new job has another "
        "--rdzv-id)"
    )


@pytest.mark.parametrize("state", [None, arrived(register("2"), "a")])
def test_a_success_without_a_register_is_one_short_line(state: RendezvousState | None) -> None:
    succeeded = Verdict(Ending.SUCCEEDED, 0, ME, Why.DONE)
    assert told(succeeded, state=state) == "the job succeeded · 0 restarts, 41.3 s\n"


def test_a_failure_names_the_first_cause_the_earlier_ones_and_the_files() -> None:
    faults = [evolve(FAULT, round=round) for round in range(3)]
    last = evolve(KILLED, round=3)
    echo = evolve(KILLED, round=3, rank=6, local_rank=2, exit_code=-6, message="killed by SIGABRT")
    assert told(OVER_BUDGET, *faults, last, echo, paths=("logs/report.json",)) == text(
        """
        FAILED: 4 failures, 3 restarts allowed (--max-restarts=3)
          first cause   gpu-02 rank 5, round 3, 13:05:40: killed by SIGKILL
                        local rank 1, pid 8812, after 12.4 s
          before that   rounds 0, 1, 2 rank 5 exit code 1: RuntimeError: an illegal memory access (train.py:88 in step)
          failed, too   gpu-02 rank 6 killed by SIGABRT
          others        6 workers of that round without a failure on record
          hint          rank 5 on gpu-02 failed in 4 rounds
          details       logs/report.json
        """
    )


def test_equal_failures_stand_together_and_the_cause_s_own_are_not_told_again() -> None:
    faults = [evolve(FAULT, round=round, rank=round % 5) for round in range(11)]
    cause = evolve(KILLED, round=12)
    alike = [evolve(cause, rank=rank, local_rank=rank) for rank in (6, 7)]
    elsewhere = [evolve(KILLED, round=12, rank=rank, host="gpu-01", node=Node("gpu-01", 1)) for rank in range(2)]
    others = [evolve(FAULT, round=12, rank=rank, message=f"OSError: {rank}", where="") for rank in range(2, 4)]
    shown = told(OVER_BUDGET, *faults, evolve(KILLED, round=11), cause, *alike, *elsewhere, *others)
    said = "exit code 1: RuntimeError: an illegal memory access (train.py:88 in step)"
    assert (
        f"  before that   rounds 4, 9 rank 4 {said} · rounds 0, 5, 10 rank 0 {said} · round 11 rank 5 the same way · "
        "6 rounds more\n"
    ) in shown
    assert (
        "  failed, too   gpu-02 ranks 6, 7 the same way · gpu-01 ranks 0, 1 the same way · gpu-02 rank 2 exit code 1: "
        "OSError: 2 · 1 more\n"
    ) in shown
    assert (
        told(OVER_BUDGET, evolve(KILLED, remark="out of memory"), cause).count("killed by SIGKILL: out of memory") == 1
    )


def ended_with(code: int, round: int) -> Fault:
    return evolve(KILLED, exit_code=code, round=round, message=exit_sentence(code))


@pytest.mark.parametrize(
    ("codes", "row"),
    [
        (
            (3, 4, 5, 6, 3, 7),
            "round 2 rank 5 exit code 5 · round 3 rank 5 exit code 6 · rounds 0, 4 rank 5 exit code 3 · 1",
        ),
        (
            (3, 4, 5, 6, 4, 7),
            "round 0 rank 5 exit code 3 · round 3 rank 5 exit code 6 · rounds 1, 4 rank 5 exit code 4 · 1",
        ),
        ((3, 4, 5, 7), "round 0 rank 5 exit code 3 · round 1 rank 5 exit code 4 · round 2 rank 5 exit code 5\n"),
    ],
)
def test_of_many_earlier_failures_the_first_and_the_latest_are_shown(codes: tuple[int, ...], row: str) -> None:
    shown = told(OVER_BUDGET, *(ended_with(code, round) for round, code in enumerate(codes)))
    assert f"  before that   {row}" in shown


@pytest.mark.parametrize(
    "other",
    [
        evolve(KILLED, origin=Origin.ENDING),
        evolve(KILLED, callstack="Traceback: in b"),
        evolve(KILLED, remark="out of memory"),
        evolve(KILLED, exit_code=-11),
    ],
)
def test_failures_that_differ_in_anything_did_not_fail_the_same_way(other: Fault) -> None:
    """Two functions may call a third one that raises; and after its exception a worker may be killed."""
    cause = evolve(KILLED, round=1)
    for shown in (told(OVER_BUDGET, other, cause), told(OVER_BUDGET, cause, evolve(other, round=1, rank=6))):
        assert "the same way" not in shown
    for shown in (told(OVER_BUDGET, KILLED, cause), told(OVER_BUDGET, cause, evolve(cause, rank=6))):
        assert "the same way" in shown


def test_a_failure_that_repeats_itself_gives_a_hint() -> None:
    faults = [evolve(KILLED, round=round, world_size=2) for round in range(5)]
    assert told(OVER_BUDGET, *faults) == text(
        """
        FAILED: 4 failures, 3 restarts allowed (--max-restarts=3)
          first cause   gpu-02 rank 5, round 4, 13:05:40: killed by SIGKILL
                        local rank 1, pid 8812, after 12.4 s
          others        1 worker of that round without a failure on record
          hint          rank 5 failed the same way in 5 rounds: a restart does not help
        """
    )


CLOSED = "RuntimeError: [/third_party/gloo/gloo/transport/tcp/pair.cc:547] Connection closed by peer [127.0.0.1]:33861"
ECHO = evolve(KILLED, exit_code=1, message=CLOSED, origin=Origin.RAISE)


def test_where_the_cause_is_open_the_report_says_between_which_ranks_and_gives_no_hint() -> None:
    other = evolve(ECHO, rank=3, local_rank=2, host="gpu-01", node=Node("gpu-01", 1))
    assert told(OVER_BUDGET, evolve(ECHO, round=1), evolve(ECHO, round=2), other, evolve(other, round=2)) == text(
        """
        FAILED: 4 failures, 3 restarts allowed (--max-restarts=3)
          first cause   rank 5 or rank 3: each says only that a peer is gone or silent
                        gpu-02 rank 5, round 2, 13:05:40: exit code 1: RuntimeError: [/third_party/gloo/gloo/transport/tcp/pair.cc:547] Connection closed by peer [127.0.0.1]:33861
                        local rank 1, pid 8812, after 12.4 s
          before that   round 0 rank 3 the same way · round 1 rank 5 the same way
          failed, too   gpu-01 rank 3 the same way
          others        6 workers of that round without a failure on record
        """  # noqa: E501
    )
    alone = "first cause   rank 5, or a rank that reported nothing: it says only that a peer is gone or silent\n"
    assert alone in told(OVER_BUDGET, ECHO)


def test_the_rank_that_raised_is_the_cause_and_another_had_raised_too() -> None:
    raised = evolve(ECHO, rank=2, exit_code=None, message="ValueError: the loss is nan", at_s=2.0)
    late = evolve(raised, rank=1, message="ValueError: late", at_s=3.0, exit_code=0)
    shown = told(OVER_BUDGET, ECHO, late, raised)
    assert "first cause   gpu-02 rank 2, round 0, 13:05:40: uncaught exception: ValueError: the loss is nan\n" in shown
    assert (
        f"failed, too   gpu-02 rank 5 exit code 1: {CLOSED} · gpu-02 rank 1 had raised, too: ValueError: late\n"
        in shown
    )


@pytest.mark.parametrize(
    ("code", "said"), [(7, "ended by itself, exit code 7"), (-6, "killed by SIGABRT while it ended")]
)
def test_a_worker_that_began_to_end_by_itself_is_said_to_have(code: int, said: str) -> None:
    ended = evolve(KILLED, exit_code=code, message=exit_sentence(code), origin=Origin.ENDING)
    assert f"first cause   gpu-02 rank 5, round 0, 13:05:40: {said}\n" in told(OVER_BUDGET, ended)


def test_failures_of_different_ranks_give_no_hint() -> None:
    assert told(OVER_BUDGET, KILLED, evolve(KILLED, round=1, rank=2, world_size=1)) == text(
        """
        FAILED: 4 failures, 3 restarts allowed (--max-restarts=3)
          first cause   gpu-02 rank 2, round 1, 13:05:40: killed by SIGKILL
                        local rank 1, pid 8812, after 12.4 s
          before that   round 0 rank 5 the same way
        """
    )


def test_the_log_of_the_first_cause_is_named() -> None:
    assert "\n                log: logs/job7_x1/attempt_0/1/stderr.log (gpu-02)\n" in told(OVER_BUDGET, FAULT)


def test_the_worker_s_traceback_is_shown_rather_than_the_end_of_its_log() -> None:
    logged = evolve(KILLED, tail=tuple(f"line {number}" for number in range(20)))
    assert told(OVER_BUDGET, logged).count("                │ line ") == 10
    assert "                │ line 19\n" in told(OVER_BUDGET, logged)
    traced = evolve(logged, callstack='Traceback:\n  File "x.py"\x1b[2J\nKeyError')
    shown = [line.strip() for line in told(OVER_BUDGET, traced).splitlines() if "│" in line]
    assert shown == ["│ Traceback:", r'│   File "x.py"\x1b[2J', "│ KeyError"]


def test_a_failure_shows_the_host_s_remark_on_the_death() -> None:
    fault = evolve(KILLED, remark="out of memory (cgroup limit 64 GiB, oom_kill +1)")
    assert "13:05:40: killed by SIGKILL: out of memory (cgroup limit 64 GiB, oom_kill +1)\n" in told(OVER_BUDGET, fault)


ENDS = (
    WorkerEnd(0, 0, 0, 1, 0, How.SUCCEEDED),
    WorkerEnd(0, 1, 1, 2, -9, How.FAILED),
    *(WorkerEnd(0, rank, rank, 3, -15, How.STOPPED) for rank in range(2, 12)),
)


def test_the_other_workers_are_listed_by_rank_where_all_ran_here() -> None:
    cause = evolve(KILLED, rank=1, world_size=12)
    told_here = "\n  others        ranks 2, 3, 4, 5, 6, 7, 8, 9 and 2 more were running · rank 0 ended with 0\n"
    assert told_here in told(OVER_BUDGET, cause, ends=ENDS)
    elsewhere = "\n  others        12 workers of that round without a failure on record\n"
    assert elsewhere in told(OVER_BUDGET, evolve(cause, world_size=13), ends=ENDS)


def test_a_worker_that_was_started_again_alone_and_failed_again_is_one_that_failed() -> None:
    """The round may also have had more workers than the cause's world: nodes have come, and nothing was stopped."""
    again = [KILLED, KILLED, evolve(KILLED, rank=6), KILLED]
    assert "\n  others        6 workers of that round without a failure on record" in told(OVER_BUDGET, *again)
    assert "\n  others " not in told(OVER_BUDGET, *(evolve(each, world_size=1) for each in again))


def test_a_program_that_cannot_be_started_is_named_with_its_node() -> None:
    fault = evolve(FAULT, pid=0, exit_code=127, message="train.sh: not executable: chmod +x train.sh", where="", log="")
    assert told(Verdict(Ending.FAILED, 0, ME, Why.CANNOT_START), fault) == text(
        """
        FAILED: cannot start the program (no restart used)
          first cause   gpu-02: train.sh: not executable: chmod +x train.sh
        """
    )


def test_a_cancelled_job_says_who_ended_it() -> None:
    assert told(Verdict(Ending.CANCELLED, 2, ME, Why.ASKED)) == "CANCELLED: asked, by gpu-02#1\n"


def test_a_job_that_an_operator_cancelled_says_so_and_who_it_was() -> None:
    verdict = Verdict(Ending.CANCELLED, 2, Node("ann@login-1", 1), Why.OPERATOR)
    assert told(verdict) == "CANCELLED by an operator (ann@login-1) in round 2\n"
    assert told(verdict, KILLED) == text(
        """
        CANCELLED by an operator (ann@login-1) in round 2
          before that   round 0 rank 5 killed by SIGKILL
        """
    )


def test_a_stopped_launcher_names_the_signal() -> None:
    assert told(Stopped(signal.SIGTERM), state=registered(8, 2)) == "stopped by SIGTERM · 2 restarts, 41.3 s\n"


def test_a_drained_node_says_that_the_job_goes_on_only_if_another_node_is_there() -> None:
    left, cost = "drained by the signal SIGUSR1: this node left", "0 restarts, 41.3 s\n"
    drained = Drained("the signal SIGUSR1")
    assert told(drained, state=running("gpu-01 gpu-02")) == f"{left}, the job goes on without it · {cost}"
    assert told(drained, state=running("gpu-02")) == f"{left}, and no other node is known · {cost}"
    assert told(drained, state=None) == f"{left}, and no other node is known · {cost}"


def test_nodes_that_share_a_host_are_told_apart_by_their_slots() -> None:
    one, other = "10.0.0.1/0123abcd", "10.0.0.1/1123abcd"
    state = running(f"{one} {other}")
    seats = {node: evolve(seat, profile=evolve(seat.profile, host="gpu-02")) for node, seat in state.seats.items()}
    shared = evolve(state, seats=seats)
    fault = evolve(FAULT, node=Node(other, 1))
    assert f"first cause   {other} rank 5, round 0" in told(OVER_BUDGET, fault, state=shared)
    assert "first cause   gpu-02 rank 5, round 0" in told(OVER_BUDGET, fault)


WAITING = "round 0: waiting for 1 of 2 nodes · here: gpu-02 · not yet seen: 1"
LIMITS = "the job runs with --nnodes=2:2 --max-restarts=1, this agent was given --nnodes=3:3 --max-restarts=1"
OTHER = "a#1 runs train.py, this node was given eval.py"
RIVAL = "a#1 runs train.py with other arguments, and its job may have one node"
LOCAL = "a#1 on gpu-01 has the address localhost, this node on gpu-02 has 10.0.0.7"
REFUSED = {
    Why.CLOSED: (
        CAME_LATE,
        f"nothing ran here: {CAME_LATE}; store gpu-01:29400 remembers job none, a new job has another --rdzv-id",
    ),
    Why.PROGRAM: (
        OTHER,
        (
            f"refused: {OTHER}; another job has this --rdzv-id (none): choose another one, or allow it with "
            "--rdzv-conf=same_program=false"
        ),
    ),
    Why.ARGUMENTS: (
        RIVAL,
        (
            f"refused: {RIVAL}; give each job an --rdzv-id of its own, or have this node for a spare by "
            "--rdzv-conf=same_program=false"
        ),
    ),
    Why.LOOPBACK: (
        LOCAL,
        (
            f"refused: {LOCAL}; a loopback address leads each host to itself: there, write an address of that host in "
            "--rdzv-endpoint, or --local-addr=ADDRESS"
        ),
    ),
    Why.TIMEOUT: (
        WAITING,
        f"gave up: no round began within 600 s (--rdzv-conf=join_timeout=...) · {WAITING}",
    ),
    Why.LIMITS: (
        LIMITS,
        f"refused: {LIMITS}; all nodes of a job must be given the same",
    ),
    Why.SUPERSEDED: (
        "a later start of gpu-02 has taken its seat",
        "ended: a later start of gpu-02 has taken its seat",
    ),
    Why.UNCONFIRMED: (
        "",
        "gave up: store gpu-01:29400 did not answer for 600 s (join_timeout)",
    ),
    Why.UNFIT: (
        "GPU 3 is lost",
        "this node stays out of job none: GPU 3 is lost",
    ),
    Why.ILLEGAL: (
        "V3: two seats",
        "ended: illegal state · store gpu-01:29400: V3: two seats",
    ),
}


@pytest.mark.parametrize("why", REFUSED, ids=lambda why: why.value)
def test_a_refused_launcher_says_why_and_what_to_do(why: Why) -> None:
    words, line = REFUSED[why]
    assert told(Refused(why, words, 0.0)) == f"{line}\n"


@pytest.mark.parametrize("why", Why)
def test_every_refusal_is_one_line(why: Why) -> None:
    line = told(Refused(why, "", 0.0), state=None)
    assert line.count("\n") == 1
    assert not line.rstrip("\n").endswith((" ", ":", "·", ";")) and ": ;" not in line


def test_restarts_that_cost_the_job_none_are_counted_too() -> None:
    made = Report(
        LaunchSettings(Program(Kind.SCRIPT, "t.py")), Result(ME, OVER_BUDGET, (), ALONE, alone=8), 1, 41.27, 35
    )
    beside = "8 workers of this node started again alone"
    (line, *_) = render_report(made, ())
    assert (
        line
        == f"FAILED: 1 failure, no restart allowed (--max-restarts=0) · {beside} · 35 restarts of wrapped functions"
    )
    made = evolve(made, result=evolve(made.result, outcome=Stopped(15)))
    assert render_report(made, ()) == [
        f"stopped by SIGTERM · 0 restarts, {beside}, 35 restarts of wrapped functions, 41.3 s"
    ]


def test_escape_codes_of_a_worker_are_spelled_out() -> None:
    fault = evolve(FAULT, message="\n\x1b[2Jgone", where="", log="")
    assert r": exit code 1: \x1b[2Jgone" in told(OVER_BUDGET, fault)


STEP = "in all_reduce (train.py:120 in step)"


def row(*stacks: Stacks) -> str:
    lines = told(OVER_BUDGET, FAULT, stacks=stacks).splitlines()
    return next((line.split(maxsplit=1)[1] for line in lines if line.startswith("  stacks")), "")


def test_equal_stacks_of_all_nodes_are_one_group_and_the_odd_rank_is_named_after_it() -> None:
    one = Stacks(ME, 0, tuple((rank, STEP) for rank in range(32)))
    two = Stacks(
        Node("b", 1), 0, tuple((rank, "at data.py:44 in get" if rank == 40 else STEP) for rank in range(32, 63))
    )
    assert row(one, two) == f"62 ranks {STEP} · rank 40 at data.py:44 in get"
    assert row(two, one) == row(one, two)


def test_few_ranks_are_named_and_of_many_places_the_last_are_counted() -> None:
    assert row(Stacks(ME, 0, ((2, STEP), (0, STEP), (1, "asleep")))) == f"ranks 0, 2 {STEP} · rank 1 asleep"
    many = Stacks(ME, 0, tuple((rank, f"at x.py:{rank} in f") for rank in range(9)))
    assert row(many).endswith("· rank 5 at x.py:5 in f · 3 more elsewhere")


def test_stacks_of_another_round_are_none_of_this_failure() -> None:
    assert row(Stacks(ME, 1, ((0, STEP),))) == row() == row(Stacks(ME, 0)) == ""


def test_a_hang_that_was_suspected_last_has_a_row() -> None:
    stacks = Stacks(ME, 0, ((0, STEP), (1, STEP), (2, "asleep")))
    hang = SuspectedHang(0, 61.25, (stacks,), 2, (Node("b", 1),), {1: "checkpoint"})
    lines = told(OVER_BUDGET, FAULT, hangs=(evolve(hang, silent_s=1.0), hang)).splitlines()
    (row,) = (line.split(maxsplit=1)[1] for line in lines if line.startswith("  hang "))
    assert row == (
        f"round 0: no rank of this node made progress for 61.2 s · ranks 0, 1 {STEP} · rank 2 asleep · the odd "
        f"one is rank 2 on {ME.slot} · rank 1 is busy beyond its limit (checkpoint) · no hang is known on b"
    )


def test_a_job_that_went_in_circles_says_what_each_round_ended_by_and_who_was_lost_again_and_again() -> None:
    state = circles(3)
    assert state.closed
    assert told(state.closed, FAULT, state=state, paths=("logs/report.json",)) == text(
        f"""
        FAILED: no progress in 3 rounds in a row: do not start it again as it is
          round 0       b was lost
          round 1       b was lost
          round 2       b was lost
          lost          {lost_again("b", 3)}
          details       logs/report.json
        """
    )


def test_each_end_of_a_round_without_progress_has_its_words_and_of_many_the_last_ones_are_shown() -> None:
    a, b = Node("a", 1), Node("b", 1)
    ends = (Ended(1, Why.LOST, a), Ended(2, Why.UPSCALE, a), Ended(3, Why.FENCED, b), Ended(4, Why.FAILED, b))
    many = (*(Ended(round, Why.LOST, a, ("b",)) for round in range(-20, 0)), *ends)
    verdict = Verdict(Ending.FAILED, 4, b, Why.FRUITLESS)
    told_of = told(verdict, evolve(FAULT, round=4), state=evolve(circles(2, give_up=99), fruitless=many)).splitlines()
    assert told_of[1] == "  before that   4 rounds"
    assert told_of[18:23] == [
        "  round 1       a node was lost",
        "  round 2       a node came back that had been lost",
        "  round 3       b had lost the store, and stopped its workers",
        "  round 4       a worker failed on b",
        f"  lost          {lost_again('b', 20)}",
    ]
    assert told_of[23].startswith("  first cause   ")


def test_the_report_names_the_nodes_that_are_set_aside_of_many_the_last_ones() -> None:
    state = with_one_aside()
    text = told(OVER_BUDGET, FAULT, state=state)
    assert "  set aside     b (set aside after 2 failures, for 10:00)" in text
    assert "set aside" not in told(OVER_BUDGET, FAULT) and "set aside" not in told(OVER_BUDGET, FAULT, state=None)
    seat = state.seats[Node("b", 1)]
    more = {Node(f"n{each}", 1): evolve(seat, order=10 + each) for each in range(PLACES)}
    many = told(OVER_BUDGET, FAULT, state=evolve(state, seats={**state.seats, **more}, next_order=99))
    assert "1 node before" in many


def with_time(outcome: Outcome, goodput: Mapping[tuple[str, str], int] | None) -> list[str]:
    result = Result(ME, outcome, (), ALONE, ranks=HAD, goodput=goodput)
    settings = LaunchSettings(Program(Kind.SCRIPT, "train.py"))
    return render_report(Report(settings, result, exit_code(outcome), 41.27), ())


RAN = {
    ("training", "none"): 3_600_000_000,
    ("starting", "first start"): 10_000_000,
    ("stopping", "operator"): 5_000_000,
}
AGAIN = {("recomputed", "failure"): 60_000_000, ("starting", "failure"): 5_000_000, ("checkpoint", "program"): 1}


@pytest.mark.parametrize("outcome", [Verdict(Ending.SUCCEEDED, 1, ME, Why.DONE), Stopped(15), OVER_BUDGET])
def test_after_an_interruption_the_last_line_says_where_the_time_of_this_node_went(outcome: Outcome) -> None:
    """The share of a bucket is that of all of its causes. What is less than a thousandth or so is left out."""
    assert with_time(outcome, {**RAN, **AGAIN})[-1] == (
        "  this node     97.8 % training · 1.6 % recomputed · 0.4 % starting · 0.1 % stopping of 1 h 1 min"
    )


def test_where_the_time_of_all_nodes_went_stands_below_that_of_this_one() -> None:
    of_all = JobTime({key: 3 * micros for key, micros in {**RAN, **AGAIN}.items()}, 3)
    settings = LaunchSettings(Program(Kind.SCRIPT, "train.py"))
    for outcome in (Verdict(Ending.SUCCEEDED, 1, ME, Why.DONE), OVER_BUDGET):
        result = Result(ME, outcome, (), ALONE, ranks=HAD, goodput={**RAN, **AGAIN}, job_time=of_all)
        report = Report(settings, result, exit_code(outcome), 41.27)
        shares = "97.8 % training · 1.6 % recomputed · 0.4 % starting · 0.1 % stopping"
        failure = "failure 3 min 15 s (3 min 0 s recomputed, 15 s starting)"
        assert render_report(report, ())[-3:] == [
            f"  this node     {shares} of 1 h 1 min",
            f"  all nodes     {shares} · lost in all: 4 min 0 s of 3 agents",
            f"                lost to {failure} · first start 30 s (30 s starting) · operator 15 s (15 s stopping)",
        ]


@pytest.mark.parametrize(
    "goodput",
    [None, RAN, {**RAN, ("stopping", "failure"): 5_000_000}, {("running", "none"): 3_000_000, ("starting", "loss"): 1}],
    ids=["a short job", "nothing interrupted it", "the failure that ended the job", "a short job with a restart"],
)
def test_where_nothing_or_little_was_lost_the_report_is_as_short_as_before(
    goodput: Mapping[tuple[str, str], int] | None,
) -> None:
    succeeded = Verdict(Ending.SUCCEEDED, 1, ME, Why.DONE)
    assert with_time(succeeded, goodput) == with_time(succeeded, None)
