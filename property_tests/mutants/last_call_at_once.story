# last call at once
# O4: a#1 ends the last call 0 s after it saw the quorum
world nodes=2 max=2
