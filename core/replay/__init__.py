"""Traces of real agents and ranks, taken again: their lines and steps, what differs, histories, timelines, lanes.

An agent that writes a trace imports `steps`, `lines` and `plain` of this room and nothing else of it.
"""
