"""Traces of real agents and ranks, taken again: what differs, histories, timelines, lanes. `core/trace` has their lines.

from elastic.core import replay

chronicle = replay.told(traces)            # what came from outside, and how long things took
"""

from .chronicle import Checkpoints, Chronicle, Incident, Outside, Program, Spans, told, told_of

__all__ = ["Checkpoints", "Chronicle", "Incident", "Outside", "Program", "Spans", "told", "told_of"]
