"""How long simulated worlds took to come to rest, by their faults: a table for people, the same for programs.

A recovery counts from the end of the last fault. Percentiles are of the recoveries that took any time, in worlds whose
heartbeats are a second apart; the rest came to rest before their last fault was over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ...core.sim.tally import MANY, Recovered, Tally
from ...core.values import frozen
from .text import table

PAIRS_MAX = 20
"""The most pairs of faults in a table: those that came closest to their bound."""
PERCENTILES = (50, 90, 99)


@frozen
class Row:
    """The recoveries from the same faults."""

    faults: tuple[str, ...]
    all: Sequence[Recovered]

    @property
    def lasting(self) -> list[Recovered]:
        return sorted((each for each in self.all if each.took_s > 0 and not each.patient), key=lambda each: each.took_s)

    @property
    def closest(self) -> Recovered:
        """Return the recovery that came closest to its bound."""
        return max(self.all, key=lambda each: each.share)

    def percentile(self, part: int) -> float:
        """Return the time within which this many of 100 recoveries were over."""
        lasting = self.lasting
        return lasting[min(len(lasting) * part // 100, len(lasting) - 1)].took_s if lasting else 0.0


def rows(tally: Tally) -> Iterator[Row]:
    """Yield the rows: each fault alone, then each pair, those first that came closest to their bound."""
    found = [Row(faults, all) for faults, all in tally.recoveries.items()]
    yield from sorted(found, key=lambda row: (row.faults == (MANY,), len(row.faults), -row.closest.share, row.faults))


def lines(tally: Tally, command: str) -> list[str]:
    """Return the table. `command` tells a run again."""
    all = list(rows(tally))
    pairs = [row for row in all if len(row.faults) == 2]
    shown = [row for row in all if len(row.faults) != 2 or row in pairs[:PAIRS_MAX]]
    head = ("after", "times", "lasting", *(f"{part} %" for part in PERCENTILES), "longest", "of its bound", "run")
    left = [f"  and {len(pairs) - PAIRS_MAX} pairs more: --json"] if len(pairs) > PAIRS_MAX else []
    return ["", *(f" {line}" for line in table(head, [_cells(row) for row in shown])), *left, f"  {command}"]


def _cells(row: Row) -> list[str]:
    closest = row.closest
    times = [f"{row.percentile(part):.2f} s" for part in PERCENTILES]
    longest = f"{row.lasting[-1].took_s:.2f} s" if row.lasting else "0.00 s"
    of_bound = f"{closest.share:.0%} of {closest.may_s:.1f} s"
    what = named(row.faults)
    return [what, f"{len(row.all):,}", f"{len(row.lasting):,}", *times, longest, of_bound, str(closest.run)]


def named(faults: Sequence[str]) -> str:
    return ", ".join(faults) if faults else "no fault"


def data(tally: Tally) -> list[Mapping[str, object]]:
    return [
        {
            "after": list(row.faults),
            "times": len(row.all),
            "lasting": len(row.lasting),
            "percentiles_s": {str(part): row.percentile(part) for part in PERCENTILES},
            "longest_s": row.lasting[-1].took_s if row.lasting else 0.0,
            "closest": {"took_s": row.closest.took_s, "may_s": row.closest.may_s, "run": row.closest.run},
        }
        for row in rows(tally)
    ]
