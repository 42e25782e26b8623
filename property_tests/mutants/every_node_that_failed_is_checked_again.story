# every node that failed is checked again
# G7: d#1 is checked again, and no failure of its own has ended a round
world nodes=5 min=2 seed=3 last_call=0 checks=1
start a
start b
start c
start d
start e
pass 1.02
full 1
fail d
pass 0.01
