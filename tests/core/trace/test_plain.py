"""The core's values as JSON: a value comes back as it was, and data of another shape is refused."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Literal

import pytest
from groups import EVENTS, world
from worlds import node, nodes, profile, running

from elastic.core.group.state import Command, Event, MarkDone, Record
from elastic.core.group.state import Settings as GroupSettings
from elastic.core.rendezvous import (
    Arrive,
    Decision,
    Done,
    Errand,
    Evict,
    Fail,
    Gather,
    Limits,
    Observe,
    Proposal,
    Propose,
    Raise,
    RendezvousState,
    Request,
    Return,
    Settings,
    Settled,
    Together,
    Token,
    Wait,
    close,
    join,
    linger,
)
from elastic.core.trace.plain import made, plain, word
from elastic.core.world import Ending, Endpoint, Life, Node, Profile, Verdict, Why

LABELLED = Profile(Endpoint("h", 1), 8, "trainer", "gpu-01", (("rack", "7"), ("zone", "ü")))


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (node("a#7"), Node),
        (Node("a#b", 2), Node),
        (world(), Event | None | type(world())),
        (Wait(None, math.inf), Decision),
        (Wait(Token(Life("l"), 3), 4.5), Decision),
        (Observe((node("a"), node("b"))), Decision),
        (Return(Settled()), Decision),
        (Return(Verdict(Ending.FAILED, 1, node("a"), Why.FAILED)), Decision),
        (Raise(Fail(Why.TIMEOUT), "text"), Decision),
        (Evict(nodes("a b")), Evict),
        (Request(join, profile=LABELLED), Request | Errand),
        (Request(close, Why.CANNOT_START, Ending.FAILED), Request | Errand),
        (Request(linger), Request | Errand),
        (Life("l", 7), Life | None),
        (Wait(Token(Life("l", 2), 3), 4.5), Decision),
        (Errand(None), Request | Errand),
        (Settings(Limits(2, 4, 1)), Settings),
        (GroupSettings(fence=3.0), GroupSettings),
        (Propose(Proposal(Token(Life("l"), 3), Arrive(LABELLED))), Decision),
        (Gather((node("a"), node("b#2"))), Decision),
        (Together({node("a"): Proposal(Token(Life("l"), 3), Done(2))}), Together),
        ((MarkDone(), Record(0, -9, 1.5)), tuple[Command, ...]),
        ({node("a"): 5, node("b"): None}, Mapping[Node, int | None]),
        (True, bool),
        ("running", Literal["running", "held"]),
    ],
)
def test_a_value_comes_back_as_it_was(value: object, kind: Any) -> None:
    assert made(json.loads(json.dumps(plain(value, kind))), kind) == value


@pytest.mark.parametrize("event", EVENTS.values(), ids=EVENTS)
def test_every_event_comes_back_as_it_was(event: Event) -> None:
    assert made(json.loads(json.dumps(plain(event, Event))), Event) == event


def test_it_reads_well() -> None:
    assert plain(Request(join, profile=profile("a")), Request | Errand) == {
        "is": "request",
        "handler": "join",
        "why": "asked",
        "ending": "cancelled",
        "profile": {
            "endpoint": {"address": "a.example", "port": 29500},
            "local_world_size": 1,
            "role": "default",
            "host": "a",
            "labels": [],
            "program": "",
            "content": "",
            "arguments": "",
            "link_port": 0,
        },
    }
    assert plain({node("a"): None}, Mapping[Node, int | None]) == {"a#1": None}
    assert word(MarkDone) == "mark done"


def test_the_register_is_for_the_line_to_put_in_its_place() -> None:
    state = running()
    assert plain(state, RendezvousState) is state
    assert made(state, RendezvousState) is state


def test_text_that_is_no_text_is_made_one() -> None:
    assert plain(Raise(Fail(Why.ILLEGAL), "\udc80"), Raise)["text"] == "?"


@pytest.mark.parametrize(
    ("data", "kind", "why"),
    [
        ("a", Node, "a node is slot#incarnation, not 'a'"),
        ("#1", Node, "slot: 1 to 256 printable characters"),
        (7, Node, "a node is wanted, not 7"),
        (7, str, "text is wanted, not 7"),
        (True, int, "a whole number is wanted, not True"),
        ("1", float, "a number is wanted, not '1'"),
        (True, float, "a number is wanted, not True"),
        (10**400, float, "a number is wanted, not one of 401 digits"),
        ("hatched", Why, "'hatched' is not known (why)"),
        ([], Why, "[] is not known (why)"),
        ({"is": "flight"}, Command, "'flight' is not known (one of join, end,"),
        ({}, Command, "None is not known"),
        ([], Command, "an object is wanted, not []"),
        ({"is": "end"}, Command, "end: 'why' is missing"),
        ({"is": "join", "at": 1}, Command, "join: 'at' is not known"),
        ({"handler": "fly", "why": "asked", "ending": "limit"}, Request, "'fly' is not known (operation)"),
        ({}, tuple[Command, ...], "a list is wanted, not {}"),
        ([["a"]], tuple[tuple[str, str], ...], "a list of 2, not of 1"),
        ([], Mapping[Node, int | None], "an object is wanted, not []"),
        ("jumping", Literal["running"], "'jumping' is not known"),
        ({"format": 1}, RendezvousState, "format 1, this version reads format 10"),
        ({**plain(Limits(), Limits), "min_nodes": 0}, Limits, "min_nodes: at least 1, not 0"),
    ],
)
def test_a_value_of_another_shape_is_refused(data: object, kind: Any, why: str) -> None:
    with pytest.raises(ValueError) as refused:
        made(data, kind)
    assert why in str(refused.value)
