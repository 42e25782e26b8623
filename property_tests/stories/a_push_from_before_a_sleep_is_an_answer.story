# Found by seeds of calls over nodes, run 2,770 of `elastic simulate --calls --nodes 4 --seed 0x5258902b` (L7): b, a spare, slept, and its
# questions were lost when it woke. The push of a wait from before its sleep told it nothing, rightly; but it still took the store for
# silent, and gave up 15 s after its first lost question, though the store had spoken since.
world max=1 join=15
start a
start b
pass 1
crash a
pause b 7
pass 6
cut-out b 40
pass 5
start c
pass 30
