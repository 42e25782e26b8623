"""The codec of failure records: a record comes back as it was, and other bytes are refused."""

from __future__ import annotations

import json
import pickle

import pytest
from attrs import evolve

from elastic.core.rendezvous import codec
from elastic.core.world import CALLSTACK_MAX, MESSAGE_MAX, TAIL_MAX, Fault, Node, Origin

FAULT = Fault(
    Node("gpu-02", 7),
    3,
    5,
    1,
    8812,
    -9,
    12.4,
    8,
    "gpu-02",
    "2026-11-21 13:05:40",
    "out of memory",
    "train.py:88",
    "log",
    ("a",),
    "from outside",
    "Traceback …",
    "error.json",
)


def changed(**fields: object) -> bytes:
    return json.dumps({**json.loads(codec.encode_fault(FAULT)), **fields}).encode()


def test_a_fault_survives_the_journey() -> None:
    assert codec.decode_fault(codec.encode_fault(FAULT)) == FAULT


def test_a_raise_whose_worker_has_not_ended_survives_the_journey() -> None:
    raised = evolve(FAULT, exit_code=None, origin=Origin.RAISE, at_s=12.5)
    assert codec.decode_fault(codec.encode_fault(raised)) == raised


def test_the_record_of_an_older_agent_is_read() -> None:
    told = json.loads(codec.encode_fault(FAULT))
    del told["origin"], told["at_s"]
    assert codec.decode_fault(json.dumps(told).encode()) == FAULT
    assert (FAULT.origin, FAULT.at_s) == (Origin.END, 0.0)


def test_a_fault_with_text_that_is_no_unicode_survives_the_journey() -> None:
    fault = Fault(Node("n", 1), 0, 0, 0, 1, 1, 0.0, message="/data/\udcff.jpg", where="\ud800.py:1", tail=("\udcff",))
    assert codec.decode_fault(codec.encode_fault(fault)) == fault


def test_the_longest_fault_is_readable() -> None:
    longest = Fault(
        Node("n", 1), 0, 0, 0, 1, 1, 0.0, message="é" * 2 * MESSAGE_MAX, tail=("é" * MESSAGE_MAX,) * 2 * TAIL_MAX
    )
    assert codec.decode_fault(codec.encode_fault(longest)) == longest


def test_a_path_that_is_no_text_is_spelled_out() -> None:
    path, spelled = "/r\udcfcn", r"/r\udcfcn"
    texts = {"host": path, "when": path, "message": path, "where": path, "log": path, "tail": (path,)}
    texts |= {"remark": path, "callstack": path, "error_file": path}
    fault = Fault(Node("n", 1), 0, 0, 0, 1, 1, 0.0, **texts)  # type: ignore[arg-type]
    assert codec.decode_fault(codec.encode_fault(fault)) == fault
    assert (fault.log, fault.tail, fault.callstack) == (spelled, (spelled,), spelled)


def test_as_many_bytes_as_a_fault_may_have_are_read_and_no_more() -> None:
    assert codec.FAULT_BYTES_MAX == 1024 * 1024
    data = codec.encode_fault(FAULT)
    assert codec.decode_fault(data.ljust(codec.FAULT_BYTES_MAX)) == FAULT
    for length in (1, 1_000):
        with pytest.raises(codec.Refused, match=f"{codec.FAULT_BYTES_MAX + length} bytes, more than the"):
            codec.decode_fault(data.ljust(codec.FAULT_BYTES_MAX + length))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[" * 10_000,
        pickle.dumps(FAULT.message),
        b"x" * (codec.FAULT_BYTES_MAX + 1),
        changed(format=codec.FORMAT + 1),
        changed(rank=-1),
        changed(rank="5"),
        changed(slot=""),
        changed(message="x" * (MESSAGE_MAX + 1)),
        changed(tail=["x"] * (TAIL_MAX + 1)),
        changed(unknown=1),
        changed(world_size=0),
        changed(callstack="x" * (CALLSTACK_MAX + 1)),
        changed(origin="rumour"),
        changed(at_s=-1.0),
        changed(exit_code="1"),
    ],
    ids=range(17),
)
def test_anything_else_is_refused(data: bytes) -> None:
    with pytest.raises(codec.Refused):
        codec.decode_fault(data)
