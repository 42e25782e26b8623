# an earlier incarnation stays
# S7: a#2 join: version 1 after 1
world nodes=1 max=1
start a
start a
