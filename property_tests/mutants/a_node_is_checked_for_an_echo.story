# a node is checked for an echo
# G7: a#1 is checked again, and no failure of its own has ended a round
world nodes=2 max=2 seed=1 last_call=0.5 checks=1 echoes=1
start a
start b
pass 3
crash b
pass 9
