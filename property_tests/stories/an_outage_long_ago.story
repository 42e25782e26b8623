# Found by L9, 1 run of 1,500: the store went away for a second. Nobody else was there whose heartbeats a would have read, so a asked
# nothing more, and took the store for silent ever after: the end of its work, minutes later, was given up without one try (O2).
world nodes=1 max=1
start a
pass 1
outage 1
pass 90
succeed a
