"""A job as `elastic status --json` tells it: the places at which its workers were stopped last."""

from __future__ import annotations

from datetime import datetime

from attrs import evolve
from narration import FAULT
from worlds import arrived, circles, edited, node, profile, register, running, with_one_aside

from elastic.adapters.clock import iso
from elastic.adapters.store.notes import EarlyEnds
from elastic.cli.render.early_losses import lost_again
from elastic.cli.render.history import DOES
from elastic.cli.render.job import FAILURES_SHOWN, WORDS, Gone, Job, Watched, data, lines
from elastic.cli.render.page import LOOKS
from elastic.cli.render.text import time_of_day
from elastic.core.goodput import NodeRecord, Spent
from elastic.core.rendezvous import Arrive, Done, Evict, Limits, Status
from elastic.core.world import Stacks, Unfit, Why


def test_equal_stacks_of_the_last_stopped_round_are_one_place() -> None:
    stacks = (
        Stacks(node("a"), 2, ((0, "x"), (1, "y"))),
        Stacks(node("b"), 2, ((2, "x"),)),
        Stacks(node("c"), 1, ((3, "x"),)),
    )
    told = data(Job("job", "store", running("a b"), stacks=stacks), running("a b"))
    assert told["stacks"] == [{"round": 2, "place": "x", "ranks": [0, 2]}, {"round": 2, "place": "y", "ranks": [1]}]
    assert data(Job("job", "store", running()), running())["stacks"] == []


def test_nodes_that_stay_out_are_named_with_their_reasons() -> None:
    unfit = tuple(
        Unfit(node(f"n{each}"), f"gpu-0{each}", "2026-01-01 12:00:00", f"GPU {each} is lost\nsee dmesg")
        for each in range(7)
    )
    job = Job("job", "store", running("a b"), unfit=unfit)
    told = lines(job, running("a b"))
    assert told[-6:-4] == ["7 nodes out of the job:", "  n2  12:00:00  GPU 2 is lost"]
    assert data(job, running("a b"))["unfit"][0] == {
        "node": "n0#1",
        "name": "n0",
        "host": "gpu-00",
        "when": "2026-01-01 12:00:00",
        "reason": "GPU 0 is lost\nsee dmesg",
    }
    assert data(Job("job", "store", running()), running())["unfit"] == []


def test_ranks_that_ended_with_0_while_others_run_on_are_named_over_all_nodes() -> None:
    state = edited(running("a b c"), "b", Done(0))
    a, b, c = map(node, "abc")
    when, later = "2026-01-01T13:05:40.000+00:00", "2026-01-01T13:05:41.000+00:00"
    ended = {a: EarlyEnds(0, ((0, when),)), b: EarlyEnds(0, ((1, later),)), c: EarlyEnds(1, ((2, when),))}
    job = Job("job", "store", state, ended=ended)
    assert lines(job, state)[-1] == f"ranks 0, 1 ended with exit code 0, {time_of_day(later)}, and rank 2 runs on"
    told = {each["name"]: each["ended"] for each in data(job, state)["nodes"]}
    assert told == {"a": [{"rank": 0, "when": when}], "b": [{"rank": 1, "when": later}], "c": []}
    silent = Job("job", "store", state, ended={c: ended[c]})
    assert "ended with" not in "".join(lines(silent, state))


def test_a_program_is_told_the_labels_of_each_node() -> None:
    state = edited(register("1", 1), "a", Arrive(evolve(profile("a"), labels=(("node_rank", "0.0"), ("rack", "r7")))))
    assert data(Job("job", "store", state), state)["nodes"][0]["labels"] == {"node_rank": "0.0", "rack": "r7"}


def test_a_program_is_told_every_limit_of_the_job() -> None:
    state = evolve(running("a b"), limits=Limits(2, 4, 3, "alike", 5, True, 2, "rack"))
    told = data(Job("job", "store", state), state)
    assert (told["nodes_min"], told["nodes_max"], told["node_unit"], told["segment"]) == (2, 4, 2, "rack")
    assert (told["max_restarts"], told["give_up_after"], told["counts_failures"]) == (3, 5, True)
    assert "agreed" not in told and data(Job("job", "store", running()), running())["segment"] is None


def test_rounds_without_progress_are_told_while_they_count() -> None:
    state = circles(3, give_up=10)
    assert " · no progress in 3 rounds, the job ends after 10 · " in lines(Job("job", "store", state), state)[0]
    told = data(Job("job", "store", state), state)["fruitless"]
    assert told == [{"round": round, "why": "lost", "by": "b", "lost": ["b"]} for round in range(3)]


def test_a_job_that_gave_up_says_what_each_of_its_rounds_ended_by() -> None:
    state = circles(3)
    assert lines(Job("job", "store", state), state)[-5:] == [
        "no progress in 3 rounds in a row:",
        "  round 0       b was lost",
        "  round 1       b was lost",
        "  round 2       b was lost",
        f"  lost          {lost_again('b', 3)}",
    ]
    assert state.closed
    cancelled = evolve(state, closed=evolve(state.closed, why=Why.OPERATOR))
    assert not any("in a row" in line for line in lines(Job("job", "store", cancelled), cancelled)[1:])


def test_a_node_that_is_set_aside_is_named_with_the_reason_and_the_time() -> None:
    state = with_one_aside()
    told = lines(Job("job", "store", state), state)
    assert told[0].startswith("job job at store · round 1: 2 nodes running · set aside: b · ")
    assert next(line.split()[:3] for line in told if line.startswith("b ")) == ["b", "set", "aside"]
    assert told[-1] == "b is set aside after 2 failures, for 10:00"
    faults = (evolve(FAULT, node=node("b"), when="2026-01-01 13:05:40"), evolve(FAULT, node=node("a"), when="x y"))
    known = Job("job", "store", state, faults=faults)
    assert "b is set aside after 2 failures, for 10:00 since 13:05:40, until 13:15:40" in lines(known, state)
    nodes = {each["host"]: each for each in data(known, state)["nodes"]}
    assert (nodes["b"]["state"], nodes["b"]["failing"]) == ("set aside", {"failures": 2, "cooldown_s": 600.0})
    assert (nodes["a"]["state"], nodes["a"]["failing"]) == ("running", None)


def test_of_many_nodes_that_are_set_aside_some_are_named() -> None:
    state = with_one_aside()
    seat = state.seats[node("b")]
    more = {node(f"n{each}"): evolve(seat, order=10 + each) for each in range(FAILURES_SHOWN)}
    many = evolve(state, seats={**state.seats, **more}, next_order=99)
    assert lines(Job("job", "store", many), many)[-1] == "and 1 node more"


def test_every_status_of_a_seat_has_its_word_its_look_and_its_lane() -> None:
    assert {*WORDS, Status.IN} == {*LOOKS} == {*DOES} == {*Status}


def test_who_has_looked_once_is_told_whom_the_register_names_as_lost() -> None:
    lost = edited(running("a b", size="1:2"), "a", Evict(frozenset({node("b")})))
    job = Job("job", "store", lost)
    assert [line for line in lines(job, lost) if line.startswith("b ")] == ["b     lost"]
    told = data(job, lost)
    assert told["gone"] == [{"node": None, "name": "b", "how": "lost", "when": None}]
    assert (told["nodes"][0]["since"], told["nodes"][0]["heartbeat_age_s"], told["silent_since"]) == (None, None, None)
    assert datetime.fromisoformat(told["at"]).tzinfo
    back = arrived(lost, "b#2")
    assert data(Job("job", "store", back), back)["gone"] == []


def test_who_looks_on_is_told_since_when_and_how_old_each_heartbeat_is() -> None:
    state = running("a b")
    profile_of_c = profile("c")
    seen = Watched(
        1_767_225_600.0,
        {node("a"): 10.0},
        {node("a"): 0.25, node("b"): 7.0},
        {node("b")},
        (Gone("c#1", "c", profile_of_c, "lost: its agent died", 20.0),),
        30.5,
    )
    job = Job("job", "store", state)
    since, gone, silent = (iso(1_767_225_600.0 + at) for at in (10.0, 20.0, 30.5))
    rows = [" ".join(line.split()) for line in lines(job, state, seen)][2:]
    assert rows == [
        "node state ranks address since heartbeat",
        f"a running 0 a.example {time_of_day(since)} 0.2 s ago",
        "b running 1 b.example over 7.0 s ago",
        f"c lost: its agent died, {time_of_day(gone)}",
    ]
    told = data(job, state, seen)
    assert [(each["since"], each["heartbeat_age_s"]) for each in told["nodes"]] == [(since, 0.25), (None, 7.0)]
    assert told["gone"] == [{"node": "c#1", "name": "c", "how": "lost: its agent died", "when": gone}]
    assert told["silent_since"] == silent


HOUR = 3_600_000_000
SPENT = Spent(
    {("recomputed", "failure"): HOUR // 20, ("starting", "failure"): HOUR // 40, ("starting", "loss"): HOUR // 100},
    HOUR,
    True,
)


def test_where_the_time_of_all_nodes_went_is_told_with_what_it_was_lost_to() -> None:
    state = running("a b")
    times = {
        node("a"): NodeRecord(node("a"), SPENT, {("training", "none"): 4 * HOUR}, 2),
        node("b"): NodeRecord(node("b")),
    }
    job = Job("job", "store", state, times=times)
    assert lines(job, state)[-2:] == [
        "node time: 98.3 % training · 1.0 % recomputed · 0.7 % starting · lost in all: 5 min 6 s of 4 agents",
        "lost to failure 4 min 30 s (3 min 0 s recomputed, 1 min 30 s starting) · loss of nodes 36 s (36 s starting)",
    ]
    told = data(job, state)
    assert told["goodput"]["nodes"] == 4
    assert told["goodput"]["micros"] == sum(each["micros"] for each in told["goodput"]["shares"])
    assert [each["goodput"]["micros"] for each in told["nodes"]] == [sum(SPENT.whole.values()), 0]
    assert data(Job("job", "store", state), state)["goodput"] is None


def test_a_node_of_a_world_trains_on_since_its_record() -> None:
    record = NodeRecord(node("a"), evolve(SPENT, run=0), at=1)
    job = Job("job", "store", running("a b"), times={node("a"): record})
    assert job.time and job.time.shares["training", "none"] == HOUR
    waits = evolve(job, state=evolve(running("a b"), complete=False)).time
    assert waits and ("training", "none") not in waits.shares


def test_records_that_tell_of_no_time_are_not_shown() -> None:
    """What another record has of a node's time is taken off one of its shares, and a record may be forged."""
    state = running("a b")
    less = NodeRecord(node("a"), Spent({("running", "none"): -3}))
    job = Job("job", "store", state, times={node("a"): less, node("b"): NodeRecord(node("b"))})
    assert job.time is None and data(job, state)["goodput"] is None
    assert lines(job, state) == lines(evolve(job, times={}), state)
    mixed = evolve(job, times={node("a"): evolve(less, own=Spent({("running", "none"): -3, ("waiting", "loss"): 2}))})
    goodputs = [each["goodput"] for each in data(mixed, state)["nodes"]]
    assert goodputs[0] == {"micros": 2, "shares": [{"bucket": "waiting", "cause": "loss", "micros": 2}]}


def test_a_node_whose_workers_have_ended_trains_no_more() -> None:
    record = NodeRecord(node("a"), evolve(SPENT, run=0), at=1, ended=True)
    job = Job("job", "store", running("a b"), times={node("a"): record})
    assert job.time and ("training", "none") not in job.time.shares
