# survivors take their time to restore
# R12: round 0 was lost, which a#1 ran: it does not stand again
world nodes=1 max=1 seed=1
start a
pass 1
older 1
