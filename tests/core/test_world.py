"""The values that machines share refuse bad fields at birth."""

from __future__ import annotations

import pytest
from attrs import evolve
from worlds import LIFE, node, profile

from elastic.core.world import (
    CALLSTACK_MAX,
    MESSAGE_MAX,
    TAIL_MAX,
    Endpoint,
    Fault,
    Life,
    Member,
    Node,
    Profile,
    Verdict,
    WorldId,
    world_of,
)

HERE = Endpoint("h", 1)


def test_a_node_is_written_slot_and_incarnation() -> None:
    assert str(Node("gpu-01", 7)) == "gpu-01#7"


def test_nodes_are_ordered_by_slot_then_incarnation() -> None:
    assert sorted([Node("b", 1), Node("a", 2), Node("a", 1)]) == [Node("a", 1), Node("a", 2), Node("b", 1)]


@pytest.mark.parametrize("slot", ["", "x" * 257, "a\nb", "\x1b[2J", "\ud800"])
def test_a_name_is_short_and_can_be_printed(slot: str) -> None:
    with pytest.raises(ValueError, match="slot: 1 to 256 printable characters, not '"):
        Node(slot, 0)


@pytest.mark.parametrize("incarnation", [-1, 2**53 + 1])
def test_an_incarnation_is_a_number_that_every_reader_of_json_has(incarnation: int) -> None:
    with pytest.raises(ValueError, match=f"incarnation: 0 to {2**53}, not {incarnation}"):
        Node("a", incarnation)


def test_an_identity_a_verdict_and_a_place_are_checked_too() -> None:
    with pytest.raises(ValueError, match="nonce"):
        Life("")
    with pytest.raises(ValueError, match="round: at least 0, not -1"):
        WorldId(LIFE, -1)
    with pytest.raises(ValueError, match="port: 1 to 65535, not 0"):
        Endpoint("h", 0)
    with pytest.raises(ValueError, match="local_world_size: 1 to 65536, not 0"):
        Profile(HERE, 0)
    with pytest.raises(ValueError, match="round: at least 0"):
        Verdict(None, -1, node("a"), None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "labels",
    [
        (("k" * 257, ""),),
        (("k", "x" * 257),),
        (("k", "\ud800"),),
        (("k", "\x1b[2J"),),
        (("\ud800", ""),),
        tuple((f"{i:02}", "") for i in range(33)),
    ],
    ids=["long name", "long text", "no text of UTF-8", "moves the cursor", "no name of UTF-8", "too many"],
)
def test_labels_are_few_short_and_printable(labels: tuple[tuple[str, str], ...]) -> None:
    with pytest.raises(ValueError, match="labels: at most 32, each key and value at most 256 printable characters"):
        Profile(HERE, labels=labels)


@pytest.mark.parametrize("labels", [(("b", ""), ("a", "")), (("a", ""), ("a", "x"))], ids=["not sorted", "twice"])
def test_labels_are_sorted_and_unique(labels: tuple[tuple[str, str], ...]) -> None:
    with pytest.raises(ValueError, match="labels: keys must be unique and sorted"):
        Profile(HERE, labels=labels)


def test_a_label_has_a_name_and_may_have_no_text() -> None:
    assert Profile(HERE, labels=(("rack", ""), ("zone", "ü"))).labels[1] == ("zone", "ü")
    with pytest.raises(ValueError, match="labels: a key is not empty"):
        Profile(HERE, labels=(("", "x"),))


def test_a_world_says_its_round_and_its_members() -> None:
    members = Member(node("a"), profile("a")), Member(node("b"), profile("b"))
    world = world_of(WorldId(LIFE, 3), members)
    assert (world.round, world.members) == (3, members)


@pytest.mark.parametrize("at_s", [-1.0, 2.0**54, float("nan")])
def test_a_failure_record_has_a_time_of_its_host_s_clock(at_s: float) -> None:
    with pytest.raises(ValueError, match="at_s"):
        Fault(Node("a", 1), 0, 0, 0, 1, 1, 1.0, at_s=at_s)


def test_a_failure_record_is_bounded() -> None:
    fault = Fault(node("a"), 0, 0, 0, 1, 1, 0.0, message="m" * 9_999, tail=("x" * 9_999, *map(str, range(30))))
    assert (len(fault.message), len(fault.tail), fault.tail[-1]) == (MESSAGE_MAX, TAIL_MAX, "29")
    assert len(evolve(fault, tail=("x" * 9_999,)).tail[0]) == MESSAGE_MAX


def test_a_failure_record_escapes_what_no_store_takes() -> None:
    """A name that is no UTF-8 has surrogates in Python. The escapes count as characters."""
    name, long = "/data/\udcff.jpg", "\udcff" * CALLSTACK_MAX
    fault = Fault(node("a"), 0, 0, 0, 1, 1, 0.0, message=name, tail=(name, long), callstack=f"{name}é")
    assert (fault.message, fault.tail[0], fault.callstack) == (
        r"/data/\udcff.jpg",
        r"/data/\udcff.jpg",
        r"/data/\udcff.jpgé",
    )
    assert len(fault.tail[1]) == MESSAGE_MAX and fault.tail[1].startswith(r"\udcff\udcff")
    stack = evolve(fault, callstack=long).callstack
    assert len(stack) == CALLSTACK_MAX and stack.endswith(r"\udcff\udcff")


def test_a_long_call_stack_keeps_its_end() -> None:
    fault = Fault(node("a"), 0, 0, 0, 1, 1, 0.0, callstack="first" + "x" * CALLSTACK_MAX + "last")
    assert len(fault.callstack) == CALLSTACK_MAX
    assert fault.callstack.endswith("xlast")
