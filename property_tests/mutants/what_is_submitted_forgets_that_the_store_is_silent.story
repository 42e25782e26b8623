# what is submitted forgets that the store is silent
# L12: a#1 has 0 questions in a row without an answer, and tells otherwise
world nodes=1 max=1
start a
pass 1
outage 1
pass 1
