# Found by L9, two nodes (run 1390 of 0xe3ace711): an agent of another version began a job in the place of a's, and that was cancelled. a cannot
# read the verdict, and nobody ended a: a healed world ended agents of other versions only while the job ran.
world nodes=2 max=1 seed=1
start a
pass 1
start-next b
older 1
pass 1
cancel
pass 1
