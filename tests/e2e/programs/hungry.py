"""Rank 1 takes memory until it is stopped."""

from __future__ import annotations

import stage

if stage.rank != 1:
    stage.wait_for_signal()
taken = []
while True:
    taken.append(b"x" * (1 << 20))
