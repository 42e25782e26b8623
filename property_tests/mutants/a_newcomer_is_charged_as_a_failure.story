# a newcomer is charged as a failure
# B5: a#1 ends a round as failed, in which none of its workers failed
world nodes=2 max=2 last_call=0
start a
start b
