"""What Slurm tells a task of a job in its environment, read as the launcher needs it. Nothing of it is trusted."""

from __future__ import annotations

import re
from collections.abc import Mapping

NUMBER = re.compile(r"[0-9]{1,15}")


def place(environment: Mapping[str, str]) -> tuple[int, ...]:
    """Return the place of this task among the agents: the number of its node, then its own; nothing outside of Slurm."""
    numbers = [_number(environment, name) for name in ("SLURM_NODEID", "SLURM_PROCID")]
    return () if None in numbers else tuple(each for each in numbers if each is not None)


def _number(environment: Mapping[str, str], name: str) -> int | None:
    text = environment.get(name, "")
    return int(text) if NUMBER.fullmatch(text) else None
