"""Put bugs into restarts inside the process, one at a time, and tell which simulated run finds each of them.

The mutants are rows of property_tests/call_mutants.toml. A row has the seed of a run that breaks a law, or, if no run does,
the directed test that fails.

  callmutants.py check            make the run of the recorded seed, or the directed test, for each
  callmutants.py search [NAME]…   look for the first seeds that find them, and tell the shortest run
"""

from __future__ import annotations

import argparse
import importlib
import json
import tomllib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from attrs import frozen
from mutation import CALLS, Answer, Edit, Mutant, in_a_mutant, tested, warm

CALLS_ALONE = "elastic.core.sim.calls.walk", "walked"
OVER_NODES = "elastic.core.sim.calls.nodes_walk", "walked_over_nodes"
RUNS = 6_000
FINDS = 3
TIMEOUT_S = 300


@frozen
class Known:
    """A mutant, the law that it breaks, and the seed of a run in which it does; or the mutant's directed test."""

    mutant: Mutant
    number: str
    seed: int
    nodes: bool
    """The run is one of ranks over nodes."""


def known() -> tuple[Known, ...]:
    return tuple(map(_known, tomllib.loads(CALLS.read_text())["mutant"]))


def _known(row: dict[str, object]) -> Known:
    rows = [row, row["also"]] if "also" in row else [row]
    edits = tuple(
        Edit(str(each["file"]), str(each["old"]), str(each["new"])) for each in rows if isinstance(each, dict)
    )
    return Known(
        Mutant(str(row["name"]), edits, str(row.get("test", ""))),
        str(row.get("number", "")),
        int(str(row.get("seed", 0))),
        bool(row.get("nodes")),
    )


def found(known: Known, seeds: Iterable[int], finds: int) -> Answer:
    """Return the shortest of the first `finds` runs that break a law, made in a process whose core is the mutant."""

    mutant = known.mutant

    def look() -> Answer:
        module, walked = OVER_NODES if known.nodes else CALLS_ALONE
        walk = getattr(importlib.import_module(module), walked)
        broken = [(run.steps, seed, *run.broken) for seed, run in _runs(walk, seeds, finds)]
        steps, seed, number, fact = min(broken, default=(0, 0, "", "survives"))
        return {"mutant": mutant.name, "number": number, "seed": seed, "steps": steps, "fact": fact}

    return in_a_mutant(mutant, look, TIMEOUT_S)


def failed(mutant: Mutant) -> Answer:
    """Return the directed test of this mutant if it fails."""

    def look() -> Answer:
        return {"mutant": mutant.name, **tested(mutant.test)}

    return in_a_mutant(mutant, look, TIMEOUT_S)


def _runs(walked: Callable[[int], Any], seeds: Iterable[int], finds: int) -> Iterator[tuple[int, Any]]:
    for seed in seeds:
        run = walked(seed)
        if run.broken:
            yield seed, run
            finds -= 1
            if not finds:
                return


def check() -> Iterator[Answer]:
    for each in known():
        yield failed(each.mutant) if each.mutant.test else found(each, [each.seed], 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("check", "search"))
    parser.add_argument("names", nargs="*")
    parser.add_argument("--runs", type=int, default=RUNS)
    asked = parser.parse_args()
    warm()
    if asked.what == "check":
        answers = check()
    else:
        by_run = [each for each in known() if not each.mutant.test]
        those = [each for each in by_run if not asked.names or each.mutant.name in asked.names]
        answers = (found(each, range(asked.runs), FINDS) for each in those)
    for answer in answers:
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
