"""The list of hosts that Slurm writes, `gpu[01-03,07],login`, read without scontrol, which a container seldom has.

list    ::= entry, entry, …
entry   ::= any number of texts and [ranges]; each combination is a host
ranges  ::= number or low-high, with commas between; a low with zeros in front tells the width
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice, product

from ..core.rendezvous.state import NODES_MAX

TEXT_MAX = 2**17
"""Most characters of a list. The environment gives a variable no more."""
PARTS_MAX = 16
"""Most texts and [ranges] of one entry. Slurm itself knows five dimensions."""
SHOWN_MAX = 40
ENTRY = re.compile(r"((?:[\w.-]++|\[[0-9,-]++\])++)(,|\Z)", re.ASCII)
PART = re.compile(r"[\w.-]+|\[[0-9,-]+\]", re.ASCII)
RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")


def hosts(text: str) -> tuple[str, ...]:
    """Return the hosts of a list, in its order. Raises ValueError."""
    if len(text) > TEXT_MAX:
        raise ValueError(f"a list of hosts has at most {TEXT_MAX} characters")
    found = tuple(islice(_hosts(text), NODES_MAX + 1))
    if len(found) > NODES_MAX:
        raise ValueError(f"a list of hosts has at most {NODES_MAX} hosts")
    return found


def _hosts(text: str) -> Iterator[str]:
    at, more = 0, ","
    while more:
        entry = ENTRY.match(text, at)
        parts = PART.findall(entry[1]) if entry else []
        if entry is None or len(parts) > PARTS_MAX:
            raise ValueError(f"{text[at : at + SHOWN_MAX]!r} is no host, and no hosts like gpu[01-03,07]")
        yield from map("".join, product(*(_numbers(part) if part[0] == "[" else (part,) for part in parts)))
        at, more = entry.end(), entry[2]


def _numbers(brackets: str) -> tuple[str, ...]:
    """Return what [ranges] stand for, no more than a list may have. Raises ValueError."""
    return tuple(islice((text for part in brackets[1:-1].split(",") for text in _range(part)), NODES_MAX + 1))


def _range(text: str) -> Iterator[str]:
    read = RANGE.fullmatch(text)
    if read is None or int(read[2] or read[1]) < int(read[1]):
        raise ValueError(f"{text!r} is no range of numbers, like 01-03")
    low, high = read[1], read[2] or read[1]
    return (str(number).zfill(len(low)) for number in range(int(low), int(high) + 1))
