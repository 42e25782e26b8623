# two programs enter at once
# S19: b#1 is seated, and others of its role run another program
world nodes=4 min=1 max=4 named=1 unlike=2 helping=1
start a
pass 0.01
start b
pass 0.0005
start-stranger d
pass 0.0005
start c
pass 0.0005
pass 3
