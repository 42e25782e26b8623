# Found in the soak, 1 run of 12,000 (R10, the judge's): while a was cut off, b#2, who knew nothing, restored an older copy and completed
# a world in a life of its own; when that too came back as a copy, a saw what was restored of it, and was asked for failures of the life before.
world nodes=2 max=1
start b
start a
pass 1
fail b
pass 1
crash b
cut a 1
start b
older 1
pass 0.1
older 1
