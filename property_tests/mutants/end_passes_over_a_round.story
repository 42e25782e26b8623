# end passes over a round
# S6: a#2 join: round 2 after round 0 (complete)
world nodes=1 max=1
start a
pass 1
crash a
