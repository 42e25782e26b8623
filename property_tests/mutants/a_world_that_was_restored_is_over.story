# a world that was restored is over
# R12: all were well when the store lost round 0; a#1 fled from it
world nodes=1 max=1
start a
pass 10
older 10
