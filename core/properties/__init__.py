"""The properties that must hold: the facts of a run, the laws by families, and the judge that asks them.

The same properties judge simulated runs (`core.sim`) and the traces of real agents (`core.replay`).
"""
