"""signalled.py end|stay: tell of the start and of every signal; end with the first signal, or stay until killed."""

from __future__ import annotations

import sys

import stage

stage.tell_signals(and_end=sys.argv[1] == "end")
stage.tell("runs")
stage.wait_for_signal()
