# Found by seeds, run 718 of `elastic simulate --seed 21` (O2): a waiter that had stood still handed over a push from before the cut. The
# law took it for an answer of that moment, and the end that was given up 15 s after the last real one for given up too early.
world max=1 join=15 links=1
start a
start b
pass 1
pause-waiter a 5
start c
crash b
pass 1
fail a
cut a 30
pass 30
