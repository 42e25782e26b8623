# a return that shows no register is not told
# L12: b#1 has 0 questions in a row without an answer, and tells otherwise
world nodes=2 max=1
start a
start b
pass 1
outage 1
pass 1
