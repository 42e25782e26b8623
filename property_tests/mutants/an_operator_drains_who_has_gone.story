# an operator drains who has gone
# S7: operator drain: version 4 after 4
world nodes=2 max=2 reserves=2
start a
start b
pass 1
drain b
drain-seat 1
