"""A program of its own that counts the devices of one kind which torch sees. The agent itself never imports torch.

    python count_by_torch.py gpu|xpu|auto|NAME        prints a number, or nothing if torch knows no such kind

NAME is what a vendor's plugin calls its devices (torch's PrivateUse1 backend).
"""

from __future__ import annotations

import sys
from typing import Any

import torch


def count(kind: str) -> int | None:
    modules: dict[str, Any] = {"gpu": torch.cuda, "xpu": torch.xpu, "auto": torch.accelerator}
    modules.setdefault(torch._C._get_privateuse1_backend_name(), getattr(torch, kind, None))
    module = modules.get(kind)
    if module is None:
        return None
    return int(module.device_count()) if module.is_available() else 0


if __name__ == "__main__":
    found = count(sys.argv[1])
    if found is not None:
        print(found)  # noqa: T201
