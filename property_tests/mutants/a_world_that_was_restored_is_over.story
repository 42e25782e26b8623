# a world that was restored is over
# R12: round 0 was lost while a#1 was well; it fled from it
world nodes=1 max=1
start a
pass 1
older 1
