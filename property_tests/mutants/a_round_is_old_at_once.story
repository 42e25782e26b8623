# a round is old at once
# O4: a#1 says that a round has grown old, 0 s after it saw it
world attempts=3 min=2 max=2 give_up=4
start a
start b
pass 3
crash b
start b
pass 3
