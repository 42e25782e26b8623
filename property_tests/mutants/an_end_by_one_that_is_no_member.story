# an end by one that is no member
# V12: a end: a#1 ended a round (failed) of which it is no member
world nodes=1 max=1
start a
pass 1
lose-reply a
fail a
start a
pass 1
