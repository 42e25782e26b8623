# a world of another life is never run if its round is earlier
# O6: a#1 ends a round as fenced whose workers it runs, or that it was never told of
world nodes=1 max=1
start a
pass 1
pause a 10
empty
