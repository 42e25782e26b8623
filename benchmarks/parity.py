"""The same command lines under torchrun and under `elastic launch`: every difference that is seen from outside is one of
docs/differences.toml, which docs/migrate.md shows with its reason, or a bug.

    .venv/bin/python benchmarks/parity.py             all lines of parity.toml: some minutes
    .venv/bin/python benchmarks/parity.py --quick     those that `make test` runs
    .venv/bin/python benchmarks/parity.py --only tee  those in which the word stands
    .venv/bin/python benchmarks/parity.py --verbose   also the differences that are meant

A line names those differences that are its own; those that are seen wherever workers run say `everywhere`. Exits with 1
when a difference has no reason, or a line names one that is not seen in it (`name?` may be seen, if chance will have it).
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

from attrs import frozen
from likened import Seen
from measuring import HERE, facts, kill_descendants, stop_on_signals
from watched import LAUNCHERS, Line, watch

LINES = HERE / "parity.toml"
DIFFERENCES = HERE.parent / "docs" / "differences.toml"
SHOWN = 300
"""Longest text of a difference that is printed, in characters."""


@frozen
class Difference:
    """One that is meant. `shows` are regular expressions of how it is seen: `aspect: torchrun's -> ours`."""

    topic: str
    shows: tuple[str, ...]
    everywhere: bool

    def explains(self, text: str) -> bool:
        return any(re.fullmatch(pattern, text, re.DOTALL) for pattern in self.shows)


@frozen
class Compared:
    """A line, what differs for a reason, what for none, and the reasons that it gives in vain."""

    line: Line
    meant: tuple[str, ...]
    unexplained: tuple[str, ...]
    vain: tuple[str, ...]

    @property
    def holds(self) -> bool:
        return not self.unexplained and not self.vain


def read_differences() -> Mapping[str, Difference]:
    rows = tomllib.loads(DIFFERENCES.read_text())["difference"]
    return {
        row["id"]: Difference(row["topic"], tuple(row.get("shows", ())), row.get("everywhere", False)) for row in rows
    }


def read_lines() -> list[Line]:
    return [Line(**row) for row in tomllib.loads(LINES.read_text())["line"]]


def differing(theirs: Seen, ours: Seen) -> list[str]:
    """`aspect: torchrun's -> ours`, where they are not the same; if only one has started workers, that alone."""
    one_started = bool(theirs["workers"]) != bool(ours["workers"])
    aspects = ("exit", "launcher's words", "workers") if one_started else dict.fromkeys((*theirs, *ours))
    pairs = ((aspect, theirs.get(aspect, "(none)"), ours.get(aspect, "(none)")) for aspect in aspects)
    return [f"{aspect}: {their} -> {our}" for aspect, their, our in pairs if their != our]


def compare(line: Line, differences: Mapping[str, Difference]) -> Compared:
    with TemporaryDirectory(prefix="parity-") as scratch:
        seen = {}
        for launcher in LAUNCHERS:
            folder = Path(scratch, launcher)
            folder.mkdir()
            seen[launcher] = watch(launcher, line, folder)
    found = differing(seen["torchrun"], seen["elastic"])
    own = {name: differences[name.removesuffix("?")] for name in line.because}
    reasons = [*own.values(), *(each for each in differences.values() if each.everywhere)]
    meant = [text for text in found if any(reason.explains(text) for reason in reasons)]
    vain = [name for name, reason in own.items() if name[-1] != "?" and not any(map(reason.explains, found))]
    return Compared(line, tuple(meant), tuple(text for text in found if text not in meant), tuple(vain))


def show(compared: Compared, verbose: bool) -> None:
    line = compared.line
    own = f"  [{', '.join(line.because)}]" if line.because else ""
    print(f"{'ok ' if compared.holds else 'BUG'}  {line.text}{own}", flush=True)
    texts = [f"       = {_short(text)}" for text in compared.meant if verbose]
    texts += [f"       ! {_short(text)}" for text in compared.unexplained]
    texts += [f"       ? {name}: not seen here" for name in compared.vain]
    for text in texts:
        print(text, flush=True)


def _short(text: str) -> str:
    return repr(text)[1:-1][:SHOWN]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="only the lines that `make test` runs")
    parser.add_argument("--only", default="", metavar="WORD", help="only lines in which this stands")
    parser.add_argument("--verbose", action="store_true", help="also show the differences that are meant")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="so many lines at a time")
    options = parser.parse_args(arguments)
    differences = read_differences()
    lines = [line for line in read_lines() if options.only in line.text and (line.quick or not options.quick)]
    stop_on_signals()
    compared = []
    try:
        with ThreadPoolExecutor(options.jobs) as threads:
            for each in threads.map(lambda line: compare(line, differences), lines):
                compared.append(each)
                show(each, options.verbose)
    finally:
        kill_descendants()
    bugs = sum(not each.holds for each in compared)
    agents = sum(len(each.line.agents) > 1 for each in compared)
    print(
        f"\n{len(compared)} command lines, {agents} with several agents · {bugs} with a difference that has no reason"
    )
    print(facts())
    return 1 if bugs or not compared else 0


if __name__ == "__main__":
    sys.exit(main())
