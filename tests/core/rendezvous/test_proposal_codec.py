"""A proposal's bytes: what is not exactly one is refused."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from worlds import node, profile

from elastic.core.rendezvous import Arrive, Done, Proposal, Token
from elastic.core.rendezvous.actions import entering_in
from elastic.core.rendezvous.codec import (
    FORMAT,
    PROPOSAL_BYTES_MAX,
    Refused,
    decode_entrant,
    decode_proposal,
    encode_entrant,
    encode_proposal,
)
from elastic.core.world import LABELS_MAX, NAME_MAX, Endpoint, Life, Profile

ERA = Token(Life("life", 3), 17)
BACK = Proposal(
    ERA, Arrive(Profile(Endpoint("fe80::1", 65535), 8, "trainer", "gpu-01", (("rack", "r 7"), ("zone", "ü"))))
)
MARK = Proposal(ERA, Done(4))


ENTER = Proposal(ERA, BACK.edit, enters=True)


@pytest.mark.parametrize("proposal", [BACK, MARK, ENTER, Proposal(Token(Life("x"), 0), Done(0))])
def test_a_proposal_comes_back_as_it_was(proposal: Proposal) -> None:
    assert decode_proposal(encode_proposal(proposal)) == proposal


def test_the_longest_proposal_is_read() -> None:
    long = "𝔸" * NAME_MAX
    labels = tuple((f"{number:02}{long[2:]}", long) for number in range(LABELS_MAX))
    proposal = Proposal(Token(Life(long), 1), Arrive(Profile(Endpoint(long, 1), 1, long, long, labels)))
    assert decode_proposal(encode_proposal(proposal)) == proposal


PLACES = ("format", "life", "stale_before", "arrive", "done", "enters")


def told(further: Sequence[object] = (), **changes: object) -> bytes:
    fields = dict(zip(PLACES, json.loads(encode_proposal(BACK)), strict=True))
    return json.dumps([*{**fields, **changes}.values(), *further]).encode()


def test_a_proposal_names_no_fields() -> None:
    where, told = ["fe80::1", 65535, 8, "trainer", "gpu-01"], [[["rack", "r 7"], ["zone", "ü"]], "", "", "", 0, None]
    assert json.loads(encode_proposal(BACK)) == [FORMAT, ["life", 3], 17, [*where, *told, False], None, False]
    older = [FORMAT, ["life", 3], 17, [*where, *told], None, False]
    assert decode_proposal(json.dumps(older).encode()) == BACK
    assert json.loads(encode_entrant(node("a"), MARK)) == [["a", 1], [FORMAT, ["life", 3], 17, None, 4, False]]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "no proposal: "),
        (b"garbage", "no proposal: JSON is malformed"),
        (b"[]", "no proposal: Expected `array` of at least length 6, got 0"),
        (b"{}", "no proposal: Expected `array`, got `object`"),
        (b'{"x":' + b"[" * 60_000, "no proposal: "),
        (b" " * (PROPOSAL_BYTES_MAX + 1), "131073 bytes, more than the 131072 of a proposal"),
        (told(done=4), "no proposal: it is to arrive, or to be done"),
        (told(arrive=None), "no proposal: it is to arrive, or to be done"),
        (told(arrive=None, done=-1), "no proposal: "),
        (told(arrive=None, done=4, enters=True), "no proposal: it is to arrive, or to be done"),
        (told(enters=1), "no proposal: "),
        (told(life=["life", 0]), "no proposal: "),
        (told(life=["a\nb", 1]), "no proposal: "),
        (told(stale_before="3"), "no proposal: "),
        (told(["red"]), "no proposal: Expected `array` of at most length 6"),
        (told(arrive=[*json.loads(told())[3], "red"]), "no proposal: Expected `array` of at most length 12"),
        (told(format=1), f"no proposal: format 1, this version reads format {FORMAT}"),
    ],
    ids=lambda value: f"{value[:24]!r}",
)
def test_what_is_no_proposal_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(Refused) as refused:
        decode_proposal(data)
    assert str(refused.value).startswith(why)


def test_proposals_of_one_kind_and_era_have_a_name_in_common() -> None:
    assert BACK.like == Proposal(ERA, Arrive(profile("b"))).like == "3-17-arrive"
    assert MARK.like == "3-17-done"
    assert ENTER.like == entering_in(ERA) == "3-17-enter"
    assert Proposal(Token(Life("life", 3), 18), Done(4)).like != MARK.like


# --- who proposes to enter


def entrant(*further: object, **changes: object) -> bytes:
    fields = dict(zip(("node", "proposal"), json.loads(encode_entrant(node("a"), ENTER)), strict=True))
    return json.dumps([*{**fields, **changes}.values(), *further]).encode()


def test_a_proposal_to_enter_says_whose_it_is() -> None:
    assert decode_entrant(encode_entrant(node("b#2"), ENTER)) == (node("b#2"), ENTER)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"garbage",
        b" " * (PROPOSAL_BYTES_MAX + 1),
        entrant(node=["a", -1]),
        entrant(node=["a\nb", 1]),
        entrant(node="a"),
        entrant(proposal=None),
        entrant("red"),
    ],
    ids=lambda data: repr(data[:24]),
)
def test_what_is_no_proposal_to_enter_is_refused(data: bytes) -> None:
    with pytest.raises(Refused):
        decode_entrant(data)
