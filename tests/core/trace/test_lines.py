"""The lines of a trace: they are read as they were written, and any other line is refused with its number."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import repeat
from typing import Any

import pytest
from traced import Agent, Shared, finished, lines, restored, started
from worlds import arrived, node, register, running

from elastic.core.rendezvous import (
    Heartbeats,
    Idle,
    Look,
    Missed,
    NoState,
    Passed,
    Pause,
    Pushed,
    RendezvousState,
    Restore,
    Shown,
    Silent,
    Unknown,
    Woke,
    Write,
)
from elastic.core.rendezvous import restored as restore
from elastic.core.trace.lines import CUT, LINE_MAX, Corrupt, encoded, streams, traces
from elastic.core.trace.steps import Asked, Started, Worked, step_at
from elastic.core.world import Life

AGENT = finished().a


def saw(state: RendezvousState | None) -> Asked:
    return Asked(Shown(state), 1.0, Idle())


def test_a_trace_comes_back_as_it_was() -> None:
    assert list(traces(AGENT.lines)) == [AGENT.trace]


def test_a_trace_across_a_loss_comes_back_as_it_was() -> None:
    pair = restored()
    pair.a.sleeps()
    pair.run()
    for agent in (pair.a, pair.b):
        assert list(traces(agent.lines)) == [agent.trace]


def test_a_restore_refers_to_a_state_just_seen_and_spells_out_any_other() -> None:
    held, forming = running(), arrived(register("2"), "c")
    deed = Restore(held, "again")
    write = Asked(Passed(), 1.0, Write(made := restore(deed, forming), forming.token, deed))
    seen, asked, again = lines(saw(held), write, saw(made))
    assert json.loads(asked)["ask"]["edit"]["held"] == {"same": held.version}
    assert json.loads(again)["fed"]["state"] == {"same": made.version}
    whole, asked = lines(saw(forming), write)
    assert json.loads(asked)["ask"]["edit"]["held"]["format"] == 10
    for told in ([seen, lines(write)[0]], [whole, asked]):
        (trace,) = traces([AGENT.lines[0], *told])
        assert trace.steps[-1] == write


def test_steps_that_tell_of_a_store_in_trouble_come_back_too() -> None:
    steps = (
        Asked(Unknown(), 1.0, Look()),
        Asked(Silent("nobody listens"), 2.0, Pause(2.05)),
        Asked(Missed(NoState("nonsense")), 2.0, None),
        Asked(Woke(), 2.5, None),
        Asked(Heartbeats({node("a"): None}, Life("l", 3)), 4.0, Idle()),
        Asked(Heartbeats({}, None), 4.0, Idle()),
        Asked(Pushed(None, 5.0, here=False), 6.0, Look()),
        Asked(NoState("nonsense"), 6.0, Pause(7.0)),
    )
    (trace,) = traces(lines(AGENT.header, *steps))
    assert trace.steps == steps


def test_a_state_is_written_once_and_then_referred_to() -> None:
    state = running()
    first, second, third = lines(saw(state), saw(state), saw(None))
    assert json.loads(first)["fed"]["state"]["version"] == state.version
    assert json.loads(second)["fed"]["state"] == {"same": state.version}
    assert b"state" not in third


def test_another_agent_s_trace_may_follow_in_the_same_file() -> None:
    other = Agent("c", Shared())
    assert list(traces([*AGENT.lines, *other.lines])) == [AGENT.trace, evolved(other, len(AGENT.lines))]


def evolved(agent: Agent, after: int) -> Any:
    from attrs import evolve

    return evolve(agent.trace, lines=tuple(line + after for line in agent.trace.lines))


@pytest.mark.parametrize("end", [b"", CUT], ids=["open", "marked by the next agent"])
def test_a_last_line_that_was_cut_off_is_left_out_and_told(end: bytes) -> None:
    *whole, last = AGENT.lines
    (trace,) = traces([*whole, last[:20] + end])
    assert trace.cut
    assert trace.steps == AGENT.trace.steps[:-1]


def test_after_a_line_that_was_cut_off_the_next_agent_s_trace_is_whole() -> None:
    other = started().b
    first, second = traces([*AGENT.lines[:-1], b'{"is":' + CUT, *other.lines])
    assert (first.cut, second.cut) == (True, False)
    assert second.steps == other.trace.steps


def test_traces_can_be_read_step_by_step_and_one_that_is_not_taken_is_passed_over() -> None:
    first, second = started().a, started().b
    those = [*first.lines[:-1], b'{"is":' + CUT, *second.lines]
    found = [(header, tuple(steps)) for header, steps in streams(those)]
    assert found == [(each.header, each.steps) for each in traces(those)]
    assert [header for header, _ in streams(those)] == [first.trace.header, second.trace.header]
    for missing, why in (([], "line 1: no header"), (first.lines[1:], "line 1: a step before any header")):
        with pytest.raises(Corrupt, match=why):
            list(streams(missing))


def changed(**fields: Any) -> Callable[[bytes], bytes]:
    return lambda line: json.dumps({**json.loads(line), **fields}).encode() + b"\n"


def worked(began_at: float) -> bytes:
    return encoded(Worked(0, 0, 0, False, began_at, 200.0, 200.0), None)[0]


@pytest.mark.parametrize(
    ("number", "change", "why"),
    [
        (1, lambda line: b"", "line 1: a step before any header"),
        (1, changed(format=1), "line 1: 'elastic trace' of format 1; this version reads 'elastic trace' of format 11"),
        (
            1,
            changed(format=4),
            "line 1: 'elastic trace' of format 4 (that is read by elastic 0.1.0); this version reads",
        ),
        (
            1,
            changed(format=8),
            "line 1: 'elastic trace' of format 8 (that is read by elastic 0.3.0); this version reads",
        ),
        (1, changed(name="other"), "line 1: 'other' of format 11"),
        (1, changed(node=3), "line 1: a node is wanted, not 3"),
        (3, lambda line: b"\xff\n", "line 3: JSON is malformed"),
        (3, lambda line: b"[]\n", "line 3: Expected `object`"),
        (3, lambda line: b"[" * 9_999 + b"\n", "line 3: "),
        (3, lambda line: b'{"is":"dance"}\n', "line 3: 'dance' is not known"),
        (
            3,
            lambda line: b'{"is":"asked","now":0,"fed":{"is":"shown","state":{"same":1}}}\n',
            "line 3: refers to version 1",
        ),
        (1, changed(wall="inf"), "line 1: a time that no clock shows"),
        (4, changed(now="inf"), "line 4: a time that no clock shows"),
        (1, changed(now=1e308), "line 1: a time that no clock shows"),
        (1, changed(wall=-1e12), "line 1: a time that no clock shows"),
        (4, changed(now=1e18), "line 4: a time that no clock shows"),
        (4, lambda line: worked(-1e308), "line 4: a time that no clock shows"),
        (4, lambda line: b'{"is":"\xff"}\n', "line 4: text that is not UTF-8"),
        (4, changed(surprise=1), "line 4: asked: 'surprise' is not known"),
        (4, lambda line: b" " * LINE_MAX + b"\n", f"line 4: more than the {LINE_MAX} bytes"),
        (6, changed(fed={"is": "shown", "state": {"format": 10}}), "line 6: no register state"),
        (6, changed(fed={"is": "shown", "state": {"format": 1}}), "line 6: format 1, this version reads format 10"),
    ],
)
def test_a_line_that_no_agent_has_written_is_named(number: int, change: Callable[[bytes], bytes], why: str) -> None:
    told = [change(line) if at == number else line for at, line in enumerate(AGENT.lines, 1)]
    with pytest.raises(Corrupt) as corrupt:
        list(traces(line for line in told if line))
    assert str(corrupt.value).startswith(why)


def test_a_line_that_has_no_end_is_not_read_for_ever() -> None:
    with pytest.raises(Corrupt, match=f"line 1: more than the {LINE_MAX} bytes"):
        list(traces(repeat(b" " * (LINE_MAX + 1))))


@pytest.mark.parametrize("nothing", [[], [b"garbage without an end"]])
def test_where_no_trace_is_that_is_said(nothing: list[bytes]) -> None:
    with pytest.raises(Corrupt, match="no header: it is empty, or no trace"):
        list(traces(nothing))


def test_every_step_tells_the_time() -> None:
    assert step_at(Started(0, (), 3.0)) == step_at(Asked(Passed(), 3.0, Idle())) == 3.0
