# a newcomer does not wait for its party
# O4: a#1 ends the round for a newcomer that it has not seen for 10 s
world max=2 last_call=0 party=3
start a
start b
