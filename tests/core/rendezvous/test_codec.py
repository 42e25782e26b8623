"""The codec of states: other bytes than those of a state are refused, and raise nothing but Refused."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve
from worlds import arrived, edited, node, profile, register, running

from elastic.core.rendezvous import Arrive, Close, Done, End, Leave, RendezvousState
from elastic.core.rendezvous.codec import BYTES_MAX, FORMAT, Refused, decode, encode
from elastic.core.world import Ending, Endpoint, Life, Profile, Verdict, Why

FULL = edited(
    edited(arrived(running("a b c", size="1:3", restarts=1), "d"), "b", End(0, Why.FAILED)),
    "a",
    Arrive(Profile(Endpoint("fe80::1", 65535), 8, "trainer", "gpu-01", (("rack", "r 7"), ("zone", "ü")))),
)
CLOSED = edited(FULL, "a", Close(Verdict(Ending.CANCELLED, 1, node("a"), Why.ASKED)))
GONE = edited(edited(running(), "a", Done(0)), "a", Leave())

Wire = dict[str, Any]


def wire(state: RendezvousState = CLOSED) -> Wire:
    made: Wire = json.loads(encode(state))
    return made


RESTORED = evolve(running(), life=Life("later", 3), version=9, base=((1, 2), (2, 7)))


@pytest.mark.parametrize(
    "state",
    [register("1"), FULL, CLOSED, GONE, RESTORED],
    ids=["blank", "open", "closed", "gone", "restored"],
)
def test_a_state_comes_back_as_it_was(state: RendezvousState) -> None:
    assert decode(encode(state)) == state


def test_where_a_restored_world_comes_from_stands_in_its_bytes() -> None:
    told = wire(RESTORED)
    assert (told["job"], told["life"], told["completed_in"]) == ("life", ["later", 3], ["life", 1])
    assert told["base"] == [[1, 2], [2, 7]]


def test_as_many_origins_as_count_are_read() -> None:
    most = evolve(RESTORED, base=tuple((2**53, version) for version in range(16)))
    assert decode(encode(most)) == most


def test_the_bytes_are_json_with_a_format_number_and_words_for_people() -> None:
    assert wire(arrived(register("1:2"), "a")) == {
        "format": FORMAT,
        "job": "life",
        "life": ["life", 1],
        "base": [[0, 0]],
        "version": 1,
        "limits": {"min_nodes": 1, "max_nodes": 2, "max_restarts": 0},
        "round": 0,
        "complete": False,
        "completed_in": None,
        "policy": "",
        "closed": None,
        "seats": [
            {
                "slot": "a",
                "incarnation": 1,
                "status": "in",
                "order": 0,
                "address": "a.example",
                "port": 29500,
                "local_world_size": 1,
                "role": "default",
                "host": "a",
                "labels": [],
                "program": "",
                "content": "",
            }
        ],
        "next_order": 1,
        "target": 0,
        "quorum_at": 1,
        "failures": 0,
        "ended": None,
        "stale_before": 0,
    }


VALID = encode(CLOSED)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"garbage",
        b"\x00\xff\xfe" * 99,
        b"null",
        b"[]",
        b"7",
        b"{}",
        b'{"format": 4}',
        pickle.dumps(CLOSED.token),
        VALID + b"}",
        VALID + VALID,
        VALID.replace(b"life", b"l\xffe", 1),
        b'{"format":4,"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b"[" * 1_000_000,
        b'{"a":' * 100_000,
    ],
    ids=lambda data: f"{data[:16]!r}"[2:-1] + f" ({len(data)})",
)
def test_bytes_that_are_no_state_are_refused(data: bytes) -> None:
    with pytest.raises(Refused, match="no register state: "):
        decode(data)


@pytest.mark.parametrize("length", range(0, len(VALID), 7))
def test_a_truncated_state_is_refused(length: int) -> None:
    with pytest.raises(Refused):
        decode(VALID[:length])


def test_more_bytes_than_a_register_may_hold_are_refused_unread() -> None:
    with pytest.raises(Refused, match=f"9437184 bytes, more than the {BYTES_MAX} that a register may hold"):
        decode(b" " * (9 * 2**20))


def test_as_many_bytes_as_a_register_may_hold_are_read() -> None:
    assert BYTES_MAX == 8 * 1024 * 1024
    state = arrived(register("2"), "a")
    assert decode(encode(state).ljust(BYTES_MAX)) == state


def test_a_register_of_many_seats_is_read_as_it_was_written() -> None:
    state = arrived(register("300"), " ".join(f"n{index}" for index in range(300)))
    assert decode(encode(state)) == state


def test_seats_that_stand_unchanged_in_the_next_version_are_not_built_again() -> None:
    before = decode(encode(running("a b")))
    after = decode(encode(edited(running("a b"), "b", Done(0))))
    a, b = node("a"), node("b")
    assert after.seats[a] is before.seats[a]
    assert after.seats[b] != before.seats[b]


def test_a_format_that_never_was_is_refused() -> None:
    with pytest.raises(Refused, match="format 0, this version reads format 4"):
        decode(encode(register("2")).replace(b'"format":4', b'"format":0'))


def test_a_register_of_the_first_format_is_refused_by_its_number() -> None:
    with pytest.raises(Refused, match="format 1, this version reads format 4"):
        decode(b'{"format": 1, "life": "life", "version": 3}')


def test_a_newer_format_is_refused_by_its_number_whatever_else_it_holds() -> None:
    with pytest.raises(Refused, match="format 5, this version reads format 4"):
        decode(b'{"format": 5, "seats": {"new": "shape"}}')


SEAT = ("seats", 0)

# A path in the wire form, and what stands there instead.
WRONG: dict[str, tuple[tuple[str | int, ...], object]] = {
    "format as text": (("format",), "3"),
    "format as truth": (("format",), True),
    "a job of nothing": (("job",), ""),
    "a job that is too long": (("job",), "x" * 257),
    "a job that is a number": (("job",), 7),
    "a job that cannot be printed": (("job",), "a\nb"),
    "a life without an epoch": (("life",), "life"),
    "an empty life": (("life",), ["", 1]),
    "a life that is too long": (("life",), ["x" * 257, 1]),
    "a life that cannot be printed": (("life",), ["a\nb", 1]),
    "a life before the first": (("life",), ["life", 0]),
    "an epoch that is a huge number": (("life",), ["life", 2**53 + 1]),
    "an epoch that is a fraction": (("life",), ["life", 1.5]),
    "a world completed in no life": (("completed_in",), []),
    "a world completed before the first life": (("completed_in",), ["life", 0]),
    "a base as a number": (("base",), 0),
    "a base of nothing": (("base",), [[]]),
    "a base below zero": (("base",), [[1, -1]]),
    "a base as text": (("base",), [["1", "2"]]),
    "a base that is a huge number": (("base",), [[1, 2**53 + 1]]),
    "a base of three": (("base",), [[1, 2, 3]]),
    "a base of more than count": (("base",), [[1, 1]] * 17),
    "version below zero": (("version",), -1),
    "version as text": (("version",), "1"),
    "version as a fraction": (("version",), 1.5),
    "version as a huge number": (("version",), 2**53 + 1),
    "version beyond 64 bits": (("version",), 2**70),
    "complete as a number": (("complete",), 1),
    "minimum of nobody": (("limits", "min_nodes"), 0),
    "minimum above the maximum": (("limits", "min_nodes"), 4),
    "maximum beyond all bounds": (("limits", "max_nodes"), 4097),
    "restarts below zero": (("limits", "max_restarts"), -1),
    "an unknown ending": (("closed", "ending"), "won"),
    "a verdict by nobody": (("closed", "by"), []),
    "a verdict by three": (("closed", "by"), ["a", 1, 2]),
    "a verdict by no name": (("closed", "by"), ["", 1]),
    "a verdict as a list": (("closed",), []),
    "an unknown reason": (("ended", "why"), "bored"),
    "a reason missing": (("ended",), {"round": 0}),
    "seats as an object": (("seats",), {}),
    "seats of nothing": (("seats",), [None]),
    "a slot of nothing": ((*SEAT, "slot"), ""),
    "a slot that is too long": ((*SEAT, "slot"), "s" * 257),
    "a slot that cannot be printed": ((*SEAT, "slot"), "\x1b[2J"),
    "an incarnation below zero": ((*SEAT, "incarnation"), -1),
    "an unknown status": ((*SEAT, "status"), "away"),
    "an order below zero": ((*SEAT, "order"), -1),
    "an address of nothing": ((*SEAT, "address"), ""),
    "port 0": ((*SEAT, "port"), 0),
    "a port beyond all ports": ((*SEAT, "port"), 65536),
    "no worker": ((*SEAT, "local_world_size"), 0),
    "too many workers": ((*SEAT, "local_world_size"), 65537),
    "a role of nothing": ((*SEAT, "role"), ""),
    "too many labels": ((*SEAT, "labels"), [[f"{i:02}", ""] for i in range(33)]),
    "labels that are not sorted": ((*SEAT, "labels"), [["b", ""], ["a", ""]]),
    "a label twice": ((*SEAT, "labels"), [["a", ""], ["a", "x"]]),
    "a label without a name": ((*SEAT, "labels"), [["", "x"]]),
    "a label that is too long": ((*SEAT, "labels"), [["a", "x" * 257]]),
    "labels as an object": ((*SEAT, "labels"), {"a": "b"}),
    "target below zero": (("target",), -1),
    "quorum below zero": (("quorum_at",), -1),
    "failures below zero": (("failures",), -1),
}


def put(made: Wire, path: tuple[str | int, ...], value: object) -> bytes:
    *way, last = path
    at: Any = made
    for step in way:
        at = at[step]
    at[last] = value
    return json.dumps(made).encode()


@pytest.mark.parametrize(("path", "value"), WRONG.values(), ids=WRONG)
def test_a_wrong_value_is_refused(path: tuple[str | int, ...], value: object) -> None:
    with pytest.raises(Refused):
        decode(put(wire(), path, value))


@pytest.mark.parametrize(
    "where",
    [lambda made: made, lambda made: made["limits"], lambda made: made["seats"][0], lambda made: made["closed"]],
    ids=["state", "limits", "seat", "verdict"],
)
def test_an_unknown_or_a_missing_field_is_refused(where: Callable[[Wire], Wire]) -> None:
    made = wire()
    where(made)["colour"] = "red"
    with pytest.raises(Refused, match="unknown field `colour`"):
        decode(json.dumps(made).encode())
    for name in where(wire()):
        made = wire()
        del where(made)[name]
        with pytest.raises(Refused):
            decode(json.dumps(made).encode())


def test_a_node_that_is_seated_twice_is_refused() -> None:
    made = wire()
    made["seats"].append(made["seats"][0])
    with pytest.raises(Refused, match="a node is seated twice"):
        decode(json.dumps(made).encode())


def test_the_seats_of_the_version_before_are_found_again_and_no_older_ones() -> None:
    """So a change of one seat costs one seat, and a process holds the seats of one version only."""
    first, next = decode(encode(running("a b"))), decode(encode(arrived(running("a b", size="2:3"), "c")))
    assert all(next.seats[who] is seat for who, seat in first.seats.items())
    decode(encode(register("1")))
    assert all(
        decode(encode(running("a b"))).seats[who] is not seat for who, seat in next.seats.items() if who in first.seats
    )


def test_more_seats_than_a_register_has_are_refused() -> None:
    made = wire()
    made["seats"] = [made["seats"][0] | {"slot": f"s{i}"} for i in range(4097)]
    with pytest.raises(Refused):
        decode(json.dumps(made).encode())


def test_the_refusal_names_the_place() -> None:
    with pytest.raises(Refused, match=r"Invalid enum value 'away' - at `\$\.seats\[0\]\.status`"):
        decode(put(wire(), (*SEAT, "status"), "away"))


def test_a_state_that_breaks_an_invariant_decodes_because_that_is_verifys_to_say() -> None:
    broken = evolve(running(), next_order=0)
    assert decode(encode(broken)) == broken


def test_everything_that_can_be_built_can_be_encoded_and_read_back() -> None:
    most = Profile(Endpoint("h" * 256, 1), 65_536, "ü" * 256, "h", (("k" * 256, "v" * 256),))
    state = edited(register("1", restarts=2**53 - 1), f"{'s' * 256}#{2**53}", Arrive(most))
    assert decode(encode(state)) == state
    assert profile("a") != most
