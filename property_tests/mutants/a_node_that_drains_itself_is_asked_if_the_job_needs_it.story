# a node that drains itself is asked if the job needs it
# O2: b#1 may not drain itself, as if an operator had asked
world nodes=2 min=2 max=2
start a
start b
pass 1
notice b 5
