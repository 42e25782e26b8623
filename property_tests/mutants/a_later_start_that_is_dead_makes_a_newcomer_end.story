# a later start that is dead makes a newcomer end
# O2: a#0 is refused as superseded by a#1, which is dead
world nodes=1 max=1
start a
pass 1
crash a
start-back a
