"""What must hold: facts of a run, the predicates over them by number, the judge that remembers, the laws of calls.

The same properties judge simulated runs (`core.sim`) and the traces of real agents (`core.replay`).
"""
