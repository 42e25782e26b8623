# an operator need not insist
# O2: an operator drains a#1, which the job needs, and does not insist
world nodes=2 min=2 max=2 seed=2 tail=3
start a
start b
pass 5
notice a 1
