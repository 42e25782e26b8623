# end passes over a round
# S6: b watch: round 2 after round 0 (complete)
world nodes=2 max=2 seed=2
start a
start b
pass 0.02
