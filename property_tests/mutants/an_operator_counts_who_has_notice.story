# an operator counts who has notice
# O2: an operator drains b#1, which the job needs, and does not insist
world nodes=3 min=2 max=3 seed=5
start a
start b
start c
pass 9
notice a 100
pass 0.2
notice b 100
pass 0.2
notice c 100
pass 1
