"""A world of simulated nodes: the same `turn` and `transition` as production, under faults, in virtual time.

Pure and seedable. The only chance is `choose(n)`; nothing sleeps, and no thread runs.
"""
