"""Makes the bytes of a note on standbys for a store, and reads them.

A store's bytes are not trusted: a note that is not exactly of this schema is no note. A later version may add fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec
from attrs import asdict
from msgspec import Meta, Struct

from ...core.world import LOCAL_WORLD_SIZE_MAX, Node
from .notes import StandbyNote

BYTES_MAX = 1024
IMPORTS_S_MAX = 1e6


class _Wire(Struct):
    ready: Annotated[int, Meta(ge=0, le=LOCAL_WORLD_SIZE_MAX)]
    imports_s: Annotated[float, Meta(ge=0, le=IMPORTS_S_MAX)] | None


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(_Wire)


def encode_note(note: StandbyNote) -> bytes:
    return _encoder.encode(asdict(note))


def decode_notes(data: Mapping[Node, bytes]) -> Mapping[Node, StandbyNote]:
    """Return the notes that can be read."""
    notes = {node: _decoded(each) for node, each in data.items()}
    return {node: note for node, note in notes.items() if note}


def _decoded(data: bytes) -> StandbyNote | None:
    if len(data) > BYTES_MAX:
        return None
    try:
        wire = _decoder.decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return StandbyNote(wire.ready, wire.imports_s)
