"""Traces of real agents and ranks, taken again: what differs, histories, timelines, lanes. `core/trace` has their lines."""
