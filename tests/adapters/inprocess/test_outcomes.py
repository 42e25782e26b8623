"""The exceptions with which a call ends: what they say."""

from __future__ import annotations

from elastic.adapters.inprocess.outcomes import RestartAbort, raised
from elastic.core.inprocess.words import Raised, Reason


class Mute(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


def test_the_end_of_a_call_says_an_error_that_has_no_text() -> None:
    ended = raised(Raised(Reason.GAVE_UP), 0, None, Mute("x"), "here", "")
    assert str(ended).endswith("(last error here: Mute: Mute('x'))")
    assert str(RestartAbort("stop", Mute(1))) == "stop Mute(1)"
