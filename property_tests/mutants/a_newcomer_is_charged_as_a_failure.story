# a newcomer is charged as a failure
# B4: 1 failures, but workers failed in rounds []
world nodes=2 max=2 last_call=0
start a
start b
