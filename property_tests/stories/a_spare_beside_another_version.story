# Found by seeds, 1 run of the first 600 with agents of other versions (L7): a spare had heard nothing once, and then could not read
# the register, in which another version had begun a job. It gave up as if nobody had answered.
world nodes=4 max=1 seed=2
start a
start b
start c
pass 1
empty
cut-in c 1
start-next d
pass 70
