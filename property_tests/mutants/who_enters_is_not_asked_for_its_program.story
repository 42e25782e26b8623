# who enters is not asked for its program
# S19: d#1 is seated, and others of its role run another program
world nodes=4 max=4 named=1 unlike=2 helping=1
start a
pass 0.01
start b
start-stranger d
pass 3
