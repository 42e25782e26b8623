"""A proposal's bytes: what is not exactly one is refused, and hides no other."""

from __future__ import annotations

import json
from typing import Any

import pytest
from worlds import node, profile

from elastic.core.rendezvous import Arrive, Done, Proposal, Token
from elastic.core.rendezvous.codec import (
    FORMAT,
    PROPOSAL_BYTES_MAX,
    Refused,
    decode_proposal,
    decode_proposals,
    encode_proposal,
)
from elastic.core.world import LABELS_MAX, NAME_MAX, Endpoint, Life, Profile

ERA = Token(Life("life", 3), 17)
BACK = Proposal(
    ERA, Arrive(Profile(Endpoint("fe80::1", 65535), 8, "trainer", "gpu-01", (("rack", "r 7"), ("zone", "ü"))))
)
MARK = Proposal(ERA, Done(4))


@pytest.mark.parametrize("proposal", [BACK, MARK, Proposal(Token(Life("x"), 0), Done(0))])
def test_a_proposal_comes_back_as_it_was(proposal: Proposal) -> None:
    assert decode_proposal(encode_proposal(proposal)) == proposal


def test_the_longest_proposal_is_read() -> None:
    long = "𝔸" * NAME_MAX
    labels = tuple((f"{number:02}{long[2:]}", long) for number in range(LABELS_MAX))
    proposal = Proposal(Token(Life(long), 1), Arrive(Profile(Endpoint(long, 1), 1, long, long, labels)))
    assert decode_proposal(encode_proposal(proposal)) == proposal


def told(**changes: Any) -> bytes:
    return json.dumps({**json.loads(encode_proposal(BACK)), **changes}).encode()


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "no proposal: "),
        (b"garbage", "no proposal: JSON is malformed"),
        (b"[]", "no proposal: Expected `object`"),
        (b'{"x":' + b"[" * 60_000, "no proposal: "),
        (b" " * (PROPOSAL_BYTES_MAX + 1), "131073 bytes, more than the 131072 of a proposal"),
        (told(done=4), "no proposal: it is to arrive, or to be done"),
        (told(arrive=None), "no proposal: it is to arrive, or to be done"),
        (told(arrive=None, done=-1), "no proposal: "),
        (told(life=["life", 0]), "no proposal: "),
        (told(life=["a\nb", 1]), "no proposal: "),
        (told(stale_before="3"), "no proposal: "),
        (told(colour="red"), "no proposal: Object contains unknown field `colour`"),
        (told(format=1), f"no proposal: format 1, this version reads format {FORMAT}"),
    ],
    ids=lambda value: f"{value[:24]!r}",
)
def test_what_is_no_proposal_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(Refused) as refused:
        decode_proposal(data)
    assert str(refused.value).startswith(why)


def test_one_that_nobody_can_read_hides_no_other() -> None:
    read = decode_proposals({node("a"): encode_proposal(BACK), node("b"): b"garbage", node("c"): encode_proposal(MARK)})
    assert dict(read) == {node("a"): BACK, node("c"): MARK}


def test_proposals_of_one_kind_and_era_have_a_name_in_common() -> None:
    assert BACK.like == Proposal(ERA, Arrive(profile("b"))).like == "3-17-arrive"
    assert MARK.like == "3-17-done"
    assert Proposal(Token(Life("life", 3), 18), Done(4)).like != MARK.like
