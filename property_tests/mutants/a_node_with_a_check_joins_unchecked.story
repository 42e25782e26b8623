# a node with a check joins unchecked
# G7: a#1 joins, and no check has found it fit since a failure of its own
world nodes=2 max=2 last_call=0 checks=1
start a
start b
