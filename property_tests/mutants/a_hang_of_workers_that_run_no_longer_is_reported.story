# a hang of workers that run no longer is reported
# O20: a#1 is barrier, and hears of a hang of round 0
world nodes=1 max=1
