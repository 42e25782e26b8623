# a second join is asked for beside that of moving workers
# L9: no rest 29.00 s after crash, pause-heart, start, at most 28.4 s: round 3 complete [c:in b#2:in]
world fence=3 alone=2
start a
start b
start c
pass 1
pause-heart c 5
crash a
start b
