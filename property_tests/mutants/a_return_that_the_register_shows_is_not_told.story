# a return that the register shows is not told
# L12: a#1 has 0 questions in a row without an answer, and tells otherwise
world nodes=1 max=1
start a
full 1
pass 1
