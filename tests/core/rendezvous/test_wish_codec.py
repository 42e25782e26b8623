"""A wish's bytes: what is not exactly one is refused, and hides no other."""

from __future__ import annotations

import json
from typing import Any

import pytest
from worlds import node, profile

from elastic.core.rendezvous import Arrive, Done, Token, Wish
from elastic.core.rendezvous.codec import FORMAT, WISH_BYTES_MAX, Refused, decode_wish, decode_wishes, encode_wish
from elastic.core.world import LABELS_MAX, NAME_MAX, Endpoint, Life, Profile

ERA = Token(Life("life", 3), 17)
BACK = Wish(ERA, Arrive(Profile(Endpoint("fe80::1", 65535), 8, "trainer", "gpu-01", (("rack", "r 7"), ("zone", "ü")))))
MARK = Wish(ERA, Done(4))


@pytest.mark.parametrize("wish", [BACK, MARK, Wish(Token(Life("x"), 0), Done(0))])
def test_a_wish_comes_back_as_it_was(wish: Wish) -> None:
    assert decode_wish(encode_wish(wish)) == wish


def test_the_longest_wish_is_read() -> None:
    long = "𝔸" * NAME_MAX
    labels = tuple((f"{number:02}{long[2:]}", long) for number in range(LABELS_MAX))
    wish = Wish(Token(Life(long), 1), Arrive(Profile(Endpoint(long, 1), 1, long, long, labels)))
    assert decode_wish(encode_wish(wish)) == wish


def told(**changes: Any) -> bytes:
    return json.dumps({**json.loads(encode_wish(BACK)), **changes}).encode()


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "no wish: "),
        (b"garbage", "no wish: JSON is malformed"),
        (b"[]", "no wish: Expected `object`"),
        (b'{"x":' + b"[" * 60_000, "no wish: "),
        (b" " * (WISH_BYTES_MAX + 1), "131073 bytes, more than the 131072 of a wish"),
        (told(done=4), "no wish: it is to arrive, or to be done"),
        (told(arrive=None), "no wish: it is to arrive, or to be done"),
        (told(arrive=None, done=-1), "no wish: "),
        (told(life=["life", 0]), "no wish: "),
        (told(life=["a\nb", 1]), "no wish: "),
        (told(stale_before="3"), "no wish: "),
        (told(colour="red"), "no wish: Object contains unknown field `colour`"),
        (told(format=1), f"no wish: format 1, this version reads format {FORMAT}"),
    ],
    ids=lambda value: f"{value[:24]!r}",
)
def test_what_is_no_wish_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(Refused) as refused:
        decode_wish(data)
    assert str(refused.value).startswith(why)


def test_one_that_nobody_can_read_hides_no_other() -> None:
    read = decode_wishes({node("a"): encode_wish(BACK), node("b"): b"garbage", node("c"): encode_wish(MARK)})
    assert dict(read) == {node("a"): BACK, node("c"): MARK}


def test_wishes_of_one_kind_and_era_have_a_name_in_common() -> None:
    assert BACK.like == Wish(ERA, Arrive(profile("b"))).like == "3-17-arrive"
    assert MARK.like == "3-17-done"
    assert Wish(Token(Life("life", 3), 18), Done(4)).like != MARK.like
