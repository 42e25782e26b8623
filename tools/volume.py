"""Run the simulators with seeds that nobody chose, and write what that showed into docs/SAFETY.md.

The table says for which commit it holds. It names each seed, so that everybody can run it again.

  volume.py [--steps N] [--calls-steps N] [--jobs N]

It prints each campaign and writes the table anew when that is over: what is stopped early has told what it did.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
DOCUMENT = ROOT / "docs" / "SAFETY.md"
BEGIN, END = "<!-- volume: tools/volume.py writes this part -->", "<!-- end of volume -->"
SIZES = (2, 3, 4, 5, 8, 16)
LARGE = (32, 64)
"""Worlds of so many nodes take a hundredth of the steps each: their steps are thirty times slower."""
BACKENDS = ("cas", "lease")
Report = Mapping[str, Any]


def simulated(*options: str) -> Report:
    """Return the report of `elastic simulate` with these options. Exits where it says that they are a mistake."""
    command = [str(Path(sys.executable).with_name("elastic")), "simulate", "--json", *options]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode not in (0, 1):
        sys.exit(f"{' '.join(command)}: {ran.stderr.strip()}")
    report: Report = json.loads(ran.stdout)
    return report


def campaigns(steps: int, calls_steps: int, jobs: Sequence[str]) -> Iterator[tuple[str, Report]]:
    """Yield each command, without its seed, and its report."""
    for turn, nodes in enumerate((*SIZES, *LARGE)):
        share = steps // (100 if nodes in LARGE else len(SIZES))
        options = (f"--nodes={nodes}", f"--backend={BACKENDS[turn % 2]}", f"--steps={share}")
        yield " ".join(options), simulated(*options, *jobs)
    for calls in (("--calls",), ("--calls", "--nodes=4")):
        options = (*calls, f"--steps={calls_steps}")
        yield " ".join(options), simulated(*options, *jobs)


def table(commit: str, reports: Sequence[tuple[str, Report]]) -> str:
    """Return the part of the document: the campaigns, then each law with how often it was armed and excused."""
    rows = [
        f"| `elastic simulate {command} --seed {report['seed']}` | {report['steps']:,} | {report['runs']:,} "
        f"| {_seen(report)} | {_broken(report)} | {report['steps_per_s']:,.0f} |"
        for command, report in reports
    ]
    armed, excused = Counter[str](), Counter[str]()
    for _, report in reports:
        for law, times in report.get("laws", {}).items():
            armed[law] += times["armed"]
            excused[law] += times["excused"]
    laws = [f"| {law} | {armed[law]:,} | {excused[law]:,} |" for law in sorted(armed, key=lambda each: armed[each])]
    return "\n".join(
        [
            f"Of commit {commit}, {sum(report['steps'] for _, report in reports):,} steps:",
            "",
            "| command | steps | runs | seen of what must be seen | broken | steps/s |",
            "| --- | --- | --- | --- | --- | --- |",
            *rows,
            "",
            "How often each law was armed in these runs, the rarest first, and how often it was excused:",
            "",
            "| law | armed | excused |",
            "| --- | --- | --- |",
            *laws,
        ]
    )


def _seen(report: Report) -> str:
    never = len(report["never"])
    wanted = len(report["sometimes"])
    return f"{wanted - never} of {wanted}"


def _broken(report: Report) -> str:
    return ", ".join(f"{each['number']} (run {each['run']})" for each in report["violations"]) or "nothing"


def with_table(text: str, written: str) -> str:
    """Return the document with this part. Raises ValueError if the document has no place for it."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{DOCUMENT.relative_to(ROOT)} has no part between {BEGIN!r} and {END!r}")
    return f"{before}{BEGIN}\n\n{written}\n\n{END}{after}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=10**7, help="of nodes, over all sizes (default: 10^7)")
    parser.add_argument(
        "--calls-steps", type=int, default=10**6, help="of calls, and of calls over nodes (default: 10^6)"
    )
    parser.add_argument("--jobs", type=int, help="processes of each campaign (default: a processor each)")
    asked = parser.parse_args()
    jobs = () if asked.jobs is None else (f"--jobs={asked.jobs}",)
    commit = subprocess.run(
        ["git", "-C", ROOT, "rev-parse", "--short=8", "HEAD"], capture_output=True, text=True, check=True
    )
    reports = []
    for command, report in campaigns(asked.steps, asked.calls_steps, jobs):
        seed, steps = report["seed"], report["steps"]
        print(f"{command} --seed {seed}: {steps:,} steps, broken: {_broken(report)}", flush=True)
        reports.append((command, report))
        DOCUMENT.write_text(with_table(DOCUMENT.read_text(), table(commit.stdout.strip(), reports)))
    if any(report["violations"] for _, report in reports):
        sys.exit("something is broken: the table says which runs")


if __name__ == "__main__":
    main()
