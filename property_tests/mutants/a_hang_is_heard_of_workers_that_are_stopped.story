# a hang is heard of workers that are stopped
# O20: a#1 is barrier, and hears of a hang of round 0
world nodes=1 max=1
