# a waiter that has told is not armed again
# R12: round 0 was lost, which a#1 ran: it does not stand again
world nodes=2 max=2
start a
pass 5
empty
