# an operator is told of no job that is there
# O2: an operator is told of no job, and there is one
world nodes=1 max=1
start a
pass 1
cancel
