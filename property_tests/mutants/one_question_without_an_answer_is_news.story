# one question without an answer is news
# L12: a#1 has 1 questions in a row without an answer, and tells otherwise
world nodes=1 max=1
start a
cut-out a 5
pass 5
