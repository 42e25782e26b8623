"""The codec of stacks: a record comes back as it was, and other bytes are refused."""

from __future__ import annotations

import json

import pytest

from elastic.core.rendezvous import codec
from elastic.core.world import NAME_MAX, SEEN_MAX, Node, Stacks, Unfit

NODE = Node("gpu-02", 7)
STACKS = Stacks(NODE, 3, ((4, "in all_reduce (train.py:120 in step)"), (5, "at data.py:44 in __next__")))


def changed(**fields: object) -> bytes:
    return json.dumps({**json.loads(codec.encode_stacks(STACKS)), **fields}).encode()


def test_stacks_survive_the_journey() -> None:
    assert codec.decode_stacks(codec.encode_stacks(STACKS)) == STACKS


UNFIT = Unfit(NODE, "gpu-03", "12:00:00", "GPU 3 has lost its memory ☃")


def test_a_node_that_stays_out_survives_the_journey_and_what_is_no_such_record_is_refused() -> None:
    data = codec.encode_unfit(UNFIT)
    longest = codec.encode_unfit(Unfit(NODE, "☃" * 9_999, "x" * 9_999, "☃" * 9_999))
    foreign = json.dumps({**json.loads(data), "format": codec.FORMAT + 1}).encode()
    for other in (b"", b"{}", b"[" * 100_000, data[:-1], data + b" " * codec.FAULT_BYTES_MAX, foreign):
        with pytest.raises(codec.Refused):
            codec.decode_unfit(other)
    assert codec.decode_unfit(data) == UNFIT and codec.decode_unfit(longest).node == NODE
    spelled = Unfit(NODE, "\udcff", "\udcff", "\udcff")
    assert codec.decode_unfit(codec.encode_unfit(spelled)) == spelled and spelled.reason == r"\udcff"


def test_as_many_bytes_as_stacks_may_have_are_read_and_no_more() -> None:
    assert codec.STACKS_BYTES_MAX == 512 * 1024
    data = codec.encode_stacks(STACKS)
    assert codec.decode_stacks(data.ljust(codec.STACKS_BYTES_MAX)) == STACKS
    with pytest.raises(codec.Refused, match=f"{codec.STACKS_BYTES_MAX + 1} bytes, more than the"):
        codec.decode_stacks(data.ljust(codec.STACKS_BYTES_MAX + 1))


def test_the_longest_stacks_are_readable() -> None:
    longest = Stacks(NODE, 0, tuple((rank, "☃" * 2 * NAME_MAX) for rank in range(2 * SEEN_MAX)))
    assert len(longest.places) == SEEN_MAX and longest.places[0] == (0, "☃" * NAME_MAX)
    assert codec.decode_stacks(codec.encode_stacks(longest)) == longest


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[" * 10_000,
        b"x" * (codec.STACKS_BYTES_MAX + 1),
        changed(format=codec.FORMAT - 1),
        changed(slot=""),
        changed(round=-1),
        changed(more=1),
        changed(places=[[0, ""]]),
        changed(places=[[-1, "x"]]),
        changed(places=[[0, "\x1b[2J"]]),
        changed(places=[[0, "x" * (NAME_MAX + 1)]]),
        changed(places=[[0, "x"]] * (SEEN_MAX + 1)),
    ],
)
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(codec.Refused):
        codec.decode_stacks(data)


def test_a_place_is_printable_and_a_rank_is_a_number() -> None:
    with pytest.raises(ValueError, match="place"):
        Stacks(NODE, 0, ((0, "a\nb"),))
    with pytest.raises(ValueError, match="rank"):
        Stacks(NODE, 0, ((-1, "a"),))
