"""What is said of a store that has no such job: which jobs are there."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from elastic.adapters.clock import SystemClock
from elastic.adapters.store.memory_store import MemoryBackend, MemoryStore
from elastic.adapters.store.port import OutOfReach
from elastic.adapters.store.runs import Runs
from elastic.cli.running_job import RunningJob, say_no_job


def _silent() -> Runs:
    raise OutOfReach("its torch is too old")


@pytest.mark.parametrize(
    ("runs", "said"),
    [
        (Runs, "its nodes' --rdzv-id says its name"),
        (_silent, "its nodes' --rdzv-id says its name"),
        (lambda: Runs({"trian42"}), "its nodes' --rdzv-id says its name"),
        (lambda: Runs({"eval", "train42", "apex"}), "it has train42, apex, eval"),
        (lambda: Runs({"eval", "train42"}, is_part=True), "it has train42, eval and more"),
        (lambda: Runs({f"{number:02}" for number in range(30)}), "it has 00, 01, 02, 03, 04, 05, 06, 07 and 22 more"),
        (lambda: Runs({"a\x1b[31m\nb", "x" * 300}), f"it has a\\x1b[31m\\nb, {'x' * 256}"),
    ],
)
def test_the_jobs_of_a_store_are_named_those_first_that_are_called_alike(
    runs: Callable[[], Runs], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    backend = MemoryBackend(MemoryStore(), SystemClock())
    say_no_job("status", RunningJob("trian42", "gpu-01:29400", backend, runs))
    assert capsys.readouterr().err == f"elastic status: store gpu-01:29400 has no job trian42; {said}\n"
