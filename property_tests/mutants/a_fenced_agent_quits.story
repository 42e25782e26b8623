# a fenced agent quits
# O1: a#1 ends without cause: Refused(why=<Why.UNCONFIRMED: 'unconfirmed'>, text='', at=3.004000003)
world nodes=1 max=1 fence=3
start a
pass 1
cut-in a 1
pass 5
