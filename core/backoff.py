"""How long to wait between tries: one rule for whoever asks again."""

DOUBLINGS_MAX = 30
"""Keeps the number finite; any pause was as long as it may be long before."""


def pause_s(tries: int, first_s: float, longest_s: float) -> float:
    """Return the pause after this many tries (the last included): `first_s` after one, then twice as long each time, never
    more than `longest_s`."""
    return min(first_s * 2.0 ** min(tries - 1, DOUBLINGS_MAX), longest_s)
