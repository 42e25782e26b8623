# a query of any round is answered
# O20: a#1 knows round 0, and answers 1 times to a query of -1
world nodes=1 max=1
