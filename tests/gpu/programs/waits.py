"""Wait in the driver for a kernel that does not end before the test does."""

from __future__ import annotations

import stage
import torch

CYCLES = 2**40
"""Some ten minutes of a GPU's clock."""


def main() -> None:
    torch.ones(1, device="cuda")
    stage.tell("begins")
    torch.cuda._sleep(CYCLES)  # type: ignore[no-untyped-call]
    torch.cuda.synchronize()


if __name__ == "__main__":
    main()
