# a node without a check is checked
# G7: is checked, and has no check: STOPPING + Reaped(at=92005.03) -> CHECKING: (Check(),)
world nodes=2 min=1 max=2 workers=3 seed=5
start a
start b
pass 5
fail a
pass 1
