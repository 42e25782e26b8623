# what is pushed while a question is out is dropped
# L11: a waits, and nothing waits for the next change
world nodes=2 max=2
start a
pass 5
empty
