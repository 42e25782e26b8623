"""Survive an error, a hang, a loss that is not a number and a SIGKILL inside the processes: `make demo-inprocess`.

The demo trains twice with `resilient.py`, once undisturbed. The exit code is 0 if the final weights of both runs are the
same, bit for bit, every fault happened, and only the killed rank has another process than at the start.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

PROGRAM = Path(__file__).with_name("resilient.py")
FAULTS = ("2:1:error", "3:0:hang", "5:1:nan", "6:1:kill")
LIMIT_S = 150
ENTERED = re.compile(r"rank (\d) of 2, pid (\d+), iteration (\d+)")


def train(directory: Path, *faults: str) -> tuple[dict[str, torch.Tensor], str]:
    """Train, and return the final weights and the output."""
    final = directory / "final.pt"
    launch = ["launch", "--standalone", "--nproc-per-node=2", "--restart-scope=rank", "--max-restarts=3"]
    own = [f"--checkpoint-dir={directory}", f"--save-final={final}", *(f"--fault={fault}" for fault in faults)]
    print(f"$ elastic {' '.join(launch)} {PROGRAM.name} {' '.join(own)}", flush=True)
    command = [sys.executable, "-m", "elastic", *launch, str(PROGRAM), *own]
    ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=LIMIT_S, check=False)
    print(ended.stdout, end="", flush=True)
    if ended.returncode:
        sys.exit(f"the job ended with {ended.returncode}")
    return torch.load(final, weights_only=True), ended.stdout


def complaints(undisturbed: dict[str, torch.Tensor], weights: dict[str, torch.Tensor], said: str) -> list[str]:
    """Print each claim with yes or NO, and return those that do not hold."""
    pids = {rank: [pid for who, pid, _ in ENTERED.findall(said) if who == rank] for rank in "01"}
    claims = {
        "the final weights are those of the undisturbed run": all(
            torch.equal(weights[name], undisturbed[name]) for name in undisturbed
        ),
        "every fault happened": said.count("fault ") == len(FAULTS),
        "rank 0 kept its process": len(set(pids["0"])) == 1,
        "rank 1 was started again once": len(set(pids["1"])) == 2,
    }
    for claim, holds in claims.items():
        print(f"  {'yes' if holds else 'NO '}  {claim}")
    return [claim for claim, holds in claims.items() if not holds]


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="elastic-digits-") as directory:
        undisturbed, _ = train(Path(directory) / "undisturbed")
        weights, said = train(Path(directory) / "disturbed", *FAULTS)
    return 1 if complaints(undisturbed, weights, said) else 0


if __name__ == "__main__":
    sys.exit(main())
