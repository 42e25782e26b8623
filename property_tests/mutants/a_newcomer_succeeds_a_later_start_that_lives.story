# a newcomer succeeds a later start that lives
# O2: a#1 succeeds a#2, which may live
world nodes=1 max=1
start a
start a
