"""Read numbers from text that anybody may have written: in a store, in the environment."""

from __future__ import annotations


def counter(answer: bytes) -> int | None:
    """Return a heartbeat's counter, or None if there is no heartbeat. Text that is not a number counts as 0: it is still,
    because only a heartbeat that is gone says that its node is gone."""
    return (number(answer) or 0) if answer else None


def number(text: bytes) -> int | None:
    """Return the whole number that is spelled in ASCII with at most 16 digits, or None."""
    return int(text) if text.isdigit() and len(text) <= 16 else None
