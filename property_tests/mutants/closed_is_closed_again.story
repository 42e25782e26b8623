# closed is closed again
# S10: operator close: a write after the verdict
world nodes=1 max=1
start a
pass 1
cancel
cancel
