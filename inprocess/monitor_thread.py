"""The exception by which user code asks for a restart. Any other Exception does the same."""

from __future__ import annotations


class RankShouldRestart(Exception):
    """Raised by the function to end the iteration. The wrapper itself raises another one, a BaseException."""
