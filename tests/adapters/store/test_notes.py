"""Notes of standbys as bytes: what is read of them, and what is not."""

from __future__ import annotations

import pytest
from worlds import node

from elastic.adapters.store.note_codec import BYTES_MAX, decode_notes, encode_note
from elastic.adapters.store.notes import StandbyNote


@pytest.mark.parametrize("note", [StandbyNote(0, None), StandbyNote(65_536, 0.0), StandbyNote(2, 1.25)])
def test_a_note_is_read_as_it_was_written(note: StandbyNote) -> None:
    assert decode_notes({node("a"): encode_note(note)}) == {node("a"): note}


def test_a_note_of_a_later_version_is_read() -> None:
    assert decode_notes({node("a"): b'{"ready":1,"imports_s":2,"of":3}'}) == {node("a"): StandbyNote(1, 2.0)}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"[" * BYTES_MAX,
        b'{"ready":1}',
        b'{"ready":-1,"imports_s":1}',
        b'{"ready":65537,"imports_s":1}',
        b'{"ready":"1","imports_s":1}',
        b'{"ready":1,"imports_s":-1}',
        b'{"ready":1,"imports_s":1e7}',
        b'{"ready":1,"imports_s":NaN}',
        b'{"ready":1,"imports_s":1}' + b" " * BYTES_MAX,
    ],
    ids=lambda data: data[:30].decode("latin1"),
)
def test_what_is_no_note_is_left_out_and_hides_no_other(data: bytes) -> None:
    good = StandbyNote(1, 1.0)
    assert decode_notes({node("a"): data, node("b"): encode_note(good)}) == {node("b"): good}
