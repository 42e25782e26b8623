"""Rank 1 fails in round 0 once rank 0, which ignores SIGTERM, is ready. In later rounds all succeed."""

from __future__ import annotations

import sys

import stage

if stage.round == 0 and stage.rank == 0:
    stage.tell_signals(and_end=False)
    stage.tell("stays")
    stage.wait_for_signal()
if stage.round == 0:
    stage.wait_for_gate()
    sys.exit(1)
