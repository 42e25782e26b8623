"""Times on record, and how people read them on another host."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime

import pytest
from attrs import evolve
from narration import FAULT

from elastic.adapters.clock import SystemClock, iso
from elastic.adapters.workers.messages.error_files import timestamp
from elastic.cli.render.text import time_of_day


@pytest.fixture(autouse=True)
def zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This host is an hour ahead of Greenwich."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "XXX-1")
        time.tzset()
        yield
    time.tzset()


def test_a_time_on_record_says_its_zone() -> None:
    assert iso(1_767_225_600.25) == "2026-01-01T01:00:00.250+01:00"
    now = datetime.fromisoformat(SystemClock().wall_text())
    assert now.tzinfo and abs(now.timestamp() - time.time()) < 3_600


def test_a_time_of_another_zone_is_read_on_this_host_s_clock_and_an_old_one_as_it_was_written() -> None:
    assert time_of_day("2026-01-01T01:00:00.250+01:00") == "01:00:00"
    assert time_of_day("2025-12-31T16:00:00.250-08:00", after_s=600.0) == "01:10:00"
    assert time_of_day("2025-01-01 13:05:40") == "13:05:40"
    assert [time_of_day(text) for text in ("", "\x1b[2J", "12:00:00 x")] == [""] * 3
    assert time_of_day("9999-12-31T23:59:59+00:00", after_s=1e6) == time_of_day("9999-12-31T23:59:59+00:00") == ""
    assert time_of_day("0001-01-01T00:00:00+14:00") == ""


def test_both_are_read_as_unix_seconds() -> None:
    assert timestamp(evolve(FAULT, when="2026-01-01T01:00:00.250+01:00")) == 1_767_225_600
    assert timestamp(evolve(FAULT, when="2026-01-01 01:00:00")) == 1_767_225_600
