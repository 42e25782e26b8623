# Found by L11, sixteen nodes (run 239 of its seed): b was not told that the job was over. It read the heartbeats of the coordinator, then of those
# who stand in for it, then of all, one read after the other, as a round of it began.
world nodes=13 max=2 restarts=0 backend=lease seed=4034082546 drift=0.01 tail=3 attempts=3 checks=1
start a
start b
start c
start d
start e
start f
start g
start h
start i
start j
start k
pass 0.06
pause-heart e 30
pass 0.06
gap d
pass 7.5
pause-heart h 30
pass 7.5
start l
pass 0.003
late-reply a 2
pass 0.06
unfit l
pass 3
start-stranger e
pass 0.06
gap d
pass 0.003
start m
pass 3
pause-heart j 5
pass 3
fail f
