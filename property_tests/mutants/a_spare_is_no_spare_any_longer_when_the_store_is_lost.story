# a spare is no spare any longer when the store is lost
# L7: b#1 has waited for 0 s, awake and no spare, and gives up
world nodes=2 max=1 join=15
start a
start b
pass 30
empty
