# a hang that is over stays on record
# L18: a#1 hears Stands: it holds the hang of 0 to be on record, not of None
world nodes=5 max=5 hang=4
start a
start b
start c
start d
pass 1
start e
pass 1
hang e
pass 5
