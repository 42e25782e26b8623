# an earlier incarnation is not told
# O2: a#2 is refused as superseded, but nobody has its slot
world nodes=1 max=1
start a
pass 1
crash a
