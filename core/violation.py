"""What a broken property is: its number in docs/protocol.md#properties, and what is wrong. The whole core uses this one."""

from __future__ import annotations

from collections.abc import Iterable

Finding = tuple[str, str]
"""The number of a broken property, and what is wrong."""


class Violation(Exception):
    """A property is broken; `number` names it."""

    def __init__(self, number: str, fact: str) -> None:
        super().__init__(f"{number}: {fact}")
        self.number = number
        self.finding: Finding = (number, fact)


def check(findings: Iterable[Finding]) -> None:
    """Raise a Violation for the first of these findings."""
    for number, fact in findings:
        raise Violation(number, fact)
