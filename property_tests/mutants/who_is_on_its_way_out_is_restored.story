# who is on its way out is restored
# R7: who waits, or is on its way out, is restored, and only presence can attest that
world nodes=4 max=1 seed=5 links=1
start a
start b
start c
start d
pass 6.3
notice d 1
pass 0.01
older 1
