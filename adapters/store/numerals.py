"""Numbers as text that anybody may have written: in a store, in the environment."""

from __future__ import annotations


def counter(answer: bytes) -> int | None:
    """A heartbeat's; one that cannot be read stands still, because only one that is gone says that its node is."""
    return (number(answer) or 0) if answer else None


def number(text: bytes) -> int | None:
    """A whole number in ASCII, of a length that one can have; None for anything else."""
    return int(text) if text.isdigit() and len(text) <= 16 else None
