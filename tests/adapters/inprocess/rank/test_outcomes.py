"""The exceptions with which a call ends: what they say."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

import pytest

from elastic.adapters.inprocess.rank.outcomes import RestartAbort, raised, tell
from elastic.core.inprocess.words import Raised, Reason


class Mute(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


def test_the_end_of_a_call_says_an_error_that_has_no_text() -> None:
    ended = raised(Raised(Reason.GAVE_UP), True, 0, None, Mute("x"), "here", "")
    assert str(ended).endswith("(last error here: Mute: Mute('x'))")
    assert str(RestartAbort("stop", Mute(1))) == "stop Mute(1)"


class Unread(io.StringIO):
    """A pipe that nobody reads any more."""

    def write(self, text: str) -> int:
        raise BrokenPipeError


def closed() -> TextIO:
    made = io.StringIO()
    made.close()
    return made


@pytest.mark.parametrize("stderr", [Unread, closed, lambda: None])
def test_the_end_of_a_call_is_told_though_there_is_no_stderr(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, stderr: Callable[[], TextIO | None]
) -> None:
    file = tmp_path / "error.json"
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(file))
    monkeypatch.setattr(sys, "stderr", stderr())
    tell(RestartAbort("no more"))
    monkeypatch.undo()
    assert "no more" in file.read_text()
