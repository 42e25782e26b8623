# what is pushed while a question is out is dropped
# R12: round 0 was lost, which a#1 ran: it does not stand again
world nodes=2 max=2
start a
pass 5
empty
