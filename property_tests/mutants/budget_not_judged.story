# budget not judged
# B1: a join: complete after 1 failures with 0 restarts allowed
world nodes=1 max=1 restarts=0
start a
pass 1
fail a
