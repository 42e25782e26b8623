"""The codec of states: other bytes than those of a state are refused, and raise nothing but Refused."""

from __future__ import annotations

import json
import pickle
import tracemalloc
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve
from worlds import arrived, edited, node, nodes, profile, register, running

from elastic.core.rendezvous import Arrive, Close, Done, Drain, End, Evict, Leave, Limits, RendezvousState
from elastic.core.rendezvous.codec import BYTES_MAX, FORMAT, PLAIN_MAX, Refused, decode, encode, encode_plain
from elastic.core.rendezvous.state import FRUITLESS_MAX, LOST_MAX, Failing
from elastic.core.world import Ending, Endpoint, Life, Notice, Party, Profile, Verdict, Why

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


def test_the_names_of_lost_nodes_come_back_and_a_register_without_them_is_read() -> None:
    state = edited(running(), "a", Evict(nodes("b")))
    told = wire(state)
    assert told["ended"]["lost"] == ["b"]
    assert (found := decode(encode(state)).ended) and found.lost == ("b",)
    del told["ended"]["lost"]
    assert (found := decode(json.dumps(told).encode()).ended) and found.lost == ()


def test_the_fruitless_rounds_come_back_with_what_each_ended_by() -> None:
    state = edited(
        evolve(running(), limits=Limits(2, 2, give_up_after=2, counts_failures=True)), "a", Evict(nodes("b"))
    )
    assert wire(state)["fruitless"] == [{"round": 0, "why": "lost", "by": ["a", 1], "lost": ["b"]}]
    back = decode(encode(state))
    assert back == state and back.losses == {"b": 1} and back.limits.counts_failures


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
        "limits": {
            "min_nodes": 1,
            "max_nodes": 2,
            "max_restarts": 0,
            "agreed": "",
            "give_up_after": 0,
            "counts_failures": False,
            "node_unit": 1,
        },
        "round": 0,
        "generation": 0,
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
                "arguments": "",
                "link_port": 0,
            }
        ],
        "next_order": 1,
        "target": 0,
        "quorum_at": 1,
        "failures": 0,
        "ended": None,
        "progressed": False,
        "fruitless": [],
        "lost_starts": [],
        "stale_before": 0,
    }


def test_a_party_is_written_where_there_is_one() -> None:
    state = edited(register("1:2"), "a", Arrive(evolve(profile("a"), party=Party("n#1", 8))))
    assert wire(state)["seats"][0]["party"] == ["n#1", 8]
    assert decode(encode(state)) == state


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
        b'{"format": 10}',
        pickle.dumps(CLOSED.token),
        VALID + b"}",
        VALID + VALID,
        VALID.replace(b"life", b"l\xffe", 1),
        b'{"format":10,"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
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
    assert decode(zlib.compress(encode(state).ljust(BYTES_MAX))) == state


# --- compressed


def with_seats(*profiles: tuple[str, Profile]) -> RendezvousState:
    state = register(f"{len(profiles)}")
    for name, each in profiles:
        state = edited(state, name, Arrive(each))
    return state


def fleet(count: int, labels: tuple[tuple[str, str], ...] = ()) -> RendezvousState:
    """Return a register of nodes that are named as `elastic launch` does it: by their address and eight digits."""
    names = [f"ip-10-0-{each >> 8}-{each & 255}.example" for each in range(count)]
    return with_seats(
        *(
            (
                f"{name}/{each * 2_654_435_761 % 2**32:08x}",
                Profile(Endpoint(name, 30_000 + each), 8, "default", name, labels),
            )
            for each, name in enumerate(names)
        )
    )


MANY = fleet(100)
LARGE = encode(MANY)


def test_a_register_of_many_seats_is_compressed_and_read_as_it_was_written() -> None:
    assert len(LARGE) < len(encode_plain(MANY)) / 8
    assert decode(LARGE) == decode(encode_plain(MANY)) == MANY


def test_a_register_is_compressed_above_a_length_and_by_its_length_alone() -> None:
    one = with_seats(("a", Profile(Endpoint("a", 1), labels=tuple((f"{each:03}", "x" * 200) for each in range(20)))))
    assert len(encode_plain(one)) > PLAIN_MAX > len(encode(one))
    assert decode(encode(one)) == one
    small = next(each for each in map(fleet, range(20, 0, -1)) if len(encode_plain(each)) <= PLAIN_MAX)
    assert encode(small) == encode_plain(small)


def test_four_kilobytes_are_not_compressed_and_one_byte_more_is() -> None:
    short = with_seats(("a", Profile(Endpoint("a", 1), labels=tuple((f"{each:03}", "x" * 236) for each in range(14)))))
    longest = evolve(short, policy="x" * (4 * 1024 - len(encode_plain(short))))
    assert encode(longest) == encode_plain(longest)
    assert decode(encode(longest)) == longest and len(encode_plain(longest)) == PLAIN_MAX
    assert len(encode(evolve(longest, policy=f"x{longest.policy}"))) < PLAIN_MAX / 4


NAMES = {
    "another name than the address": ("n1", "host"),
    "the address": ("a.example", "a.example"),
    "what begins with the address": ("a.example/0f", "a.example/0f"),
    "what begins as a mark does": ("+x", "=x"),
    "a mark alone": ("=", "+"),
    "as long as a name may be": ("s" * 256, "h" * 256),
}


@pytest.mark.parametrize(("slot", "host"), NAMES.values(), ids=NAMES)
def test_a_name_that_repeats_the_address_comes_back_from_a_compressed_register(slot: str, host: str) -> None:
    state = with_seats((slot, Profile(Endpoint("a.example", 1), host=host, labels=(("k", "v"),))))
    state = evolve(MANY, seats={**MANY.seats, **state.seats})
    assert decode(encode(state)) == state


def test_a_host_that_is_the_address_takes_no_place_in_a_compressed_register() -> None:
    node, seat = next(iter(MANY.seats.items()))
    told = evolve(seat.profile, host="".join(seat.profile.endpoint.address))
    state = evolve(MANY, seats={**MANY.seats, node: evolve(seat, profile=told)})
    assert json.loads(zlib.decompress(encode(state)))["seats"]["host"] == [""] * 100


def test_who_serves_the_store_is_written_where_there_is_one() -> None:
    state = with_seats(("b", evolve(profile("b"), serves_store=True)))
    assert wire(state)["seats"][-1]["serves_store"] is True
    assert decode(encode(state)) == state
    many = evolve(MANY, seats={**MANY.seats, **state.seats})
    packed = json.loads(zlib.decompress(encode(many)))["seats"]
    assert packed["serving"] == [list(many.seats).index(node("b"))]
    assert decode(encode(many)) == many
    assert "serving" not in json.loads(zlib.decompress(encode(MANY)))["seats"], "as an older version wrote it"


@pytest.mark.parametrize(
    ("deadline_s", "failing"), [(60.0, Failing(2, 30.0)), (0.5, Failing(1, 0.5)), (0.0, Failing(1, 0.0))]
)
def test_a_party_a_notice_and_failures_come_back(deadline_s: float, failing: Failing) -> None:
    state = with_seats(("a", evolve(profile("a"), party=Party("n#1", 8))))
    notice = Notice(deadline_s, "an operator")
    seats = {node: evolve(seat, notice=notice, failing=failing) for node, seat in state.seats.items()}
    for each in (evolve(state, seats=seats), evolve(MANY, seats={**MANY.seats, **seats})):
        assert decode(encode(each)) == each


def test_four_thousand_seats_take_a_hundred_kilobytes() -> None:
    one = next(iter(MANY.seats.values()))
    names = [f"ip-10-0-{each >> 8}-{each & 255}.example" for each in range(4_096)]
    seats = {
        node(f"{name}/{each * 2_654_435_761 % 2**32:08x}#{1_790_000_000_000 + each * 7_919 % 20_000}"): evolve(
            one,
            order=each,
            profile=evolve(
                one.profile,
                endpoint=Endpoint(name, 30_000 + each * 7_919 % 29_989),
                host=name,
                link_port=30_000 + each * 104_729 % 29_989,
            ),
        )
        for each, name in enumerate(names)
    }
    state = evolve(MANY, seats=seats)
    assert len(encode(state)) < 100_000
    assert decode(encode(state)) == state


def columns(**changes: object) -> bytes:
    """Return MANY with other columns, compressed."""
    told = json.loads(zlib.decompress(LARGE))
    told["seats"] |= changes
    return zlib.compress(json.dumps(told).encode())


def test_the_columns_of_a_compressed_register_are_checked() -> None:
    assert decode(columns()) == MANY
    wrong: tuple[dict[str, object], ...] = (
        {"order": [0]},
        {"slot": ["+"] * 99 + ["x"]},
        {"slot": ["=a"] * 100},
        {"slot": [""] * 100},
        {"slot": ["=" + "s" * 257] + [f"={each}" for each in range(99)]},
        {"slot": ["=\n"] + [f"={each}" for each in range(99)]},
        {"address": [""] * 100},
        {"port": [0] * 100},
        {"status": ["away"] * 100},
        {"colour": []},
    )
    for changes in wrong:
        with pytest.raises(Refused, match="no register state: "):
            decode(columns(**changes))


SEATS = json.loads(zlib.decompress(LARGE))["seats"]
NODES = 12
"""So many columns say which nodes they are, and what those say of themselves."""


@pytest.mark.parametrize("names", [*([name] for name in SEATS), [*SEATS][:NODES], [*SEATS][NODES:]], ids="-".join)
def test_columns_that_are_longer_than_the_others_are_refused(names: list[str]) -> None:
    with pytest.raises(Refused, match="no register state: "):
        decode(columns(**{name: [*SEATS[name], SEATS[name][-1]] for name in names}))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (LARGE[:-1], "cut, or others follow"),
        (LARGE + b"x", "cut, or others follow"),
        (LARGE[:2], "cut, or others follow"),
        (LARGE[:9] + b"\xff" * 9 + LARGE[18:], "no register state: Error -"),
        (b"x" * 99, "no register state: Error -"),
        (zlib.compress(b"garbage"), "no register state: "),
        (zlib.compress(LARGE), "no register state: "),
        (zlib.compress(b" " * (BYTES_MAX + 1)), f"more than the {BYTES_MAX} that a register may hold"),
        (zlib.compress(b'{"format": 11}'), "format 11, this version reads format 10"),
    ],
    ids=["cut", "longer", "nothing", "broken", "no zlib", "no JSON", "compressed twice", "huge inside", "newer"],
)
def test_compressed_bytes_that_are_no_state_are_refused(data: bytes, reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        decode(data)


def test_a_stream_that_inflates_without_end_is_read_as_far_as_a_register_may_be_long() -> None:
    """256 MiB of blanks in a quarter of one: nothing is unpacked beyond the bound."""
    packer = zlib.compressobj(9)
    bomb = b"".join([packer.compress(b" " * 2**20) for _ in range(256)]) + packer.flush()
    tracemalloc.start()
    try:
        with pytest.raises(Refused, match=f"{len(bomb)} compressed bytes, which are more than the {BYTES_MAX}"):
            decode(bomb)
        assert tracemalloc.get_traced_memory()[1] < 3 * BYTES_MAX
    finally:
        tracemalloc.stop()


def test_a_profile_that_stands_unchanged_in_the_next_version_is_not_built_again() -> None:
    for large in (False, True):
        before = decode(encode(MANY if large else running("a b", restarts=1)))
        ended = edited(before, next(iter(before.seats)).slot, End(before.round, Why.FAILED))
        after = decode(encode(ended))
        assert after == ended and after.seats != before.seats
        assert all(seat.profile is before.seats[node].profile for node, seat in after.seats.items())
        assert {id(each) for each in after.seats} == {id(each) for each in before.seats}


def test_a_profile_that_changes_is_built_again() -> None:
    first = decode(encode(running("a b")))
    other = evolve(first.seats[node("a")], profile=profile("a", 4711))
    second = evolve(first, seats={**first.seats, node("a"): other})
    assert decode(encode(second)) == second


def test_seats_that_stand_unchanged_in_the_next_version_are_not_built_again() -> None:
    before = decode(encode(running("a b")))
    after = decode(encode(edited(running("a b"), "b", Done(0))))
    a, b = node("a"), node("b")
    assert after.seats[a] is before.seats[a]
    assert after.seats[b] != before.seats[b]


@pytest.mark.parametrize("state", [register("2"), running("a b c"), MANY], ids=["nobody", "few", "many"])
def test_what_is_noted_beside_a_state_as_it_is_read_is_what_it_says_itself(state: RendezvousState) -> None:
    if state.seats:
        state = edited(state, "operator", Drain(list(state.seats)[1], Notice(60.0, "test")))
    read = decode(encode(state))
    noted = dict(read.memo)
    assert noted.keys() == ({"nodes", "profiles", "census", "orders", "noticed"} if state.seats else set())
    assert noted == {name: getattr(evolve(read), name) for name in noted}


@pytest.mark.parametrize("number", [0, 9, 11])
def test_another_format_is_refused_though_the_rest_can_be_read(number: int) -> None:
    with pytest.raises(Refused, match=f"format {number}, this version reads format 10"):
        decode(put(wire(), ("format",), number))


def test_a_register_of_the_first_format_is_refused_by_its_number() -> None:
    with pytest.raises(Refused, match="format 1, this version reads format 10"):
        decode(b'{"format": 1, "life": "life", "version": 3}')


def test_a_newer_format_is_refused_by_its_number_whatever_else_it_holds() -> None:
    with pytest.raises(Refused, match="format 11, this version reads format 10"):
        decode(b'{"format": 11, "seats": {"new": "shape"}}')


SEAT = ("seats", 0)
ENDED = {"round": 0, "why": "lost", "by": ["a", 1]}

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
    "a lost node of nothing": (("ended", "lost"), [""]),
    "a lost node that a terminal obeys": (("ended", "lost"), ["\x1b]0;title\x07"]),
    "more lost nodes than are named": (("ended", "lost"), ["a"] * (LOST_MAX + 1)),
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
    "a job that gives up after less than nothing": (("limits", "give_up_after"), -1),
    "a job that gives up after too many rounds": (("limits", "give_up_after"), FRUITLESS_MAX + 1),
    "more fruitless rounds than count": (("fruitless",), [ENDED] * (FRUITLESS_MAX + 1)),
    "a fruitless round without an end": (("fruitless",), [None]),
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
