"""What the tests hear of the real command."""

from __future__ import annotations

import sys
from pathlib import Path

from launches import Ended, launcher

WRITES_WITHOUT_END = """
import os, stage, subprocess
for _ in range(512):
    os.write(2, bytes(65_536))
writers = [subprocess.Popen(["yes"], stdout=2) for _ in range(2)]
for number in range(9):
    stage.tell(number)
for writer in writers:
    writer.wait()
"""


def test_words_are_heard_though_somebody_else_never_stops_writing(tmp_path: Path) -> None:
    """Nor do they wait longer, the more was said before them."""
    with launcher(tmp_path) as start:
        running = start.command(sys.executable, "-c", WRITES_WITHOUT_END)
        assert [each.words for _ in range(9) for each in running.hears(1)] == [str(number) for number in range(9)]


def test_where_the_time_of_a_slow_job_went_is_not_among_the_lines() -> None:
    went_well, late = "all 2 workers succeeded · 1 restart, 104.0 s", "warning: no report"
    account = "  this node     93.5 % running of 1 min 46 s\n  all nodes     93.5 % running\n                too\n"
    told = f"00:37:51 elastic  begins\n00:38:18 elastic  {went_well}\n"
    assert Ended(0, "", f"{told}{account}00:38:19 elastic  {late}\n").lines == ["begins", went_well, late]
    assert Ended(0, "", told).lines == ["begins", went_well]
