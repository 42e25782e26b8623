"""The checks of examples/node_check: healthy hosts pass, and a bad node of a group is named."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from attrs import define
from launches import TIMEOUT_S, Launcher, launcher

FOLDER = Path(__file__).parents[2] / "examples/node_check"
BREAKS = """
import sys
sys.path.insert(0, {folder!r})
import os, quick_torch, pairs

def joins_and_breaks(store, name, me, pair, size, limit_s):
    pairs.joined(store, name, pair.index(me), limit_s, False)

if os.environ["RANK"] == "2":
    pairs.reduced = joins_and_breaks
raise SystemExit(pairs.main())
"""


def loaded(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"node_check_{name}", FOLDER / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Launcher]:
    with launcher(tmp_path) as start:
        yield start


def host(*options: str) -> subprocess.CompletedProcess[str]:
    command: list[str | Path] = [sys.executable, FOLDER / "host.py", "--max-load=1e9", *options]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=TIMEOUT_S)


def test_a_host_is_healthy_or_its_last_line_says_what_is_wrong(tmp_path: Path) -> None:
    well = host("--free-memory=0", f"--free-disk={tmp_path}:0", "--slow-disk=1e9")
    assert (well.returncode, well.stdout) == (0, "healthy\n")
    full = host("--free-memory=0", f"--free-disk={tmp_path}:1e9")
    assert full.returncode == 1 and "GB free, less than 1e+09" in full.stdout
    gone = host("--free-memory=1e9", f"--free-disk={tmp_path}/none:0")
    assert gone.returncode == 1 and gone.stdout.splitlines()[1] == f"disk {tmp_path}/none: no such file or directory"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("ranks", [2, 3, 4, 5, 8])
def test_the_second_round_has_other_pairs(ranks: int) -> None:
    first, second = (loaded("pairs").pairs(ranks, shift) for shift in (0, 1))
    assert len(first) == len(second) == ranks // 2
    assert ranks == 2 or not {frozenset(pair) for pair in first} & {frozenset(pair) for pair in second}


def test_who_fails_or_is_slow_with_both_partners_is_bad() -> None:
    bad_ranks = loaded("pairs").bad_ranks
    assert bad_ranks([{(0, 1): 0.1, (2, 3): None}, {(1, 2): 9.0, (3, 0): 0.2}], 1.0) == [2]
    assert bad_ranks([{(0, 1): 0.1, (2, 3): 0.2}, {(1, 2): 0.3, (3, 0): None}], 1.0) == []


@pytest.mark.long
def test_a_node_that_breaks_its_pairs_is_named(launch: Launcher, tmp_path: Path) -> None:
    script = tmp_path / "breaks.py"
    script.write_text(BREAKS.format(folder=str(FOLDER)))
    ended = launch("--nproc-per-node=4", script, f"--limit={TIMEOUT_S:g}", "--size=64").ends()
    assert ended.code == 1, ended
    assert next(line for line in ended.out.splitlines() if line.startswith("bad")).startswith("bad: rank 2 on ")
    assert ended.out.count("bad: ") == 1


@define
class Card:
    """A GPU as the fake driver shows it."""

    ecc: int = 0
    rows: tuple[int, int, int, int] = (0, 0, 0, 0)
    reasons: int = 0
    links: tuple[int, ...] = (1, 1)


class Driver:
    """What gpus.py asks of NVML."""

    NVML_MEMORY_ERROR_TYPE_UNCORRECTED = NVML_VOLATILE_ECC = 0
    NVML_NVLINK_MAX_LINKS = 18

    class NVMLError(Exception):
        pass

    class NVMLError_NotSupported(NVMLError):
        pass

    def __init__(self, *cards: Card | None) -> None:
        self.cards = cards

    def nvmlDeviceGetCount(self) -> int:
        return len(self.cards)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Card:
        if (card := self.cards[index]) is None:
            raise self.NVMLError("GPU is lost")
        return card

    def nvmlDeviceGetTotalEccErrors(self, card: Card, kind: int, counter: int) -> int:
        if card.ecc < 0:
            raise self.NVMLError_NotSupported
        return card.ecc

    def nvmlDeviceGetRemappedRows(self, card: Card) -> tuple[int, int, int, int]:
        return card.rows

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, card: Card) -> int:
        return card.reasons

    def nvmlDeviceGetNvLinkState(self, card: Card, link: int) -> int:
        if link >= len(card.links):
            raise self.NVMLError("no such link")
        return card.links[link]


@pytest.mark.parametrize(
    ("driver", "faults"),
    [
        (Driver(Card(), Card(ecc=-1, links=())), []),
        (Driver(Card(), None), ["GPU 1: GPU is lost"]),
        (Driver(Card(ecc=3)), ["GPU 0: 3 uncorrected ECC errors: reset it"]),
        (Driver(Card(rows=(0, 0, 0, 1))), ["GPU 0: a row of its memory could not be remapped: replace it"]),
        (Driver(Card(rows=(0, 0, 1, 0))), ["GPU 0: a row of its memory waits to be remapped: reset it"]),
        (Driver(Card(reasons=0x48)), ["GPU 0: its clocks are held down: hardware slowdown, hardware thermal slowdown"]),
        (Driver(Card(links=(1, 0, 0))), ["GPU 0: NVLinks 1, 2 are down"]),
    ],
)
def test_what_is_wrong_with_a_gpu_is_said(driver: Driver, faults: list[str]) -> None:
    nvml: Any = driver
    assert list(loaded("gpus").all_gpus(nvml, None)) == faults


def test_a_missing_gpu_and_a_fatal_xid_are_faults() -> None:
    gpus, nvml = loaded("gpus"), Driver(Card())
    assert list(gpus.all_gpus(nvml, 2)) == ["1 GPUs answer, not 2: has one fallen off the bus?"]
    log = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.\nNVRM: Xid (PCI:0000:3b:00): 13, pid=2"
    assert list(gpus.xids(log)) == ["GPU at 0000:3b:00: XID 79 in the kernel's log"]
