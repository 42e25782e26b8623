# what begins forgets that the store is silent
# L12: b#1 has 0 questions in a row without an answer, and tells otherwise
world nodes=2 max=2 helping=1
start a
start b
pass 1
cut-out b 5
pass 6
