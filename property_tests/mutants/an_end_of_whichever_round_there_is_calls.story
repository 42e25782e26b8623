# an end of whichever round there is (calls)
# V12: b end: b#1 ended a round (failed) of which it is no member
world nodes=2 max=2
start a
start b
pass 1
cut-out b 5
fail b
pass 5
