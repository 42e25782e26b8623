"""Ask for more memory than the GPU has."""

from __future__ import annotations

import torch


def main() -> None:
    _, total = torch.cuda.mem_get_info(0)
    torch.ones(2 * total, dtype=torch.uint8, device="cuda")


if __name__ == "__main__":
    main()
