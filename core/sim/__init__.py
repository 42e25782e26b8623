"""Runs of the core that can be looked at again: traces of real agents, replayed."""
