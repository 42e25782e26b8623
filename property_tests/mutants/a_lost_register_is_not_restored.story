# a lost register is not restored
# R12: round 0 was lost, which a#1, b#1 ran: it does not stand again
world nodes=2 min=1 max=2
start a
start b
pass 5
hang a
hang b
empty
fail a
fail b
pass 20
