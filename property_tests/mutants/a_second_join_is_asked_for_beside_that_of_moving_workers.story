# a second join is asked for beside that of moving workers
# L4: 2 rounds ended as fenced, and 1 may have: {'newcomers': 1, 'fencings': 1, 'evictions': 1, 'failures': 0}
world fence=3 alone=2
start a
start b
pass 5
pause-loop a 5
start c
pause-heart b 5
pass 10
crash b
