# who cannot read the register says that nobody answered
# L7: c#1 is a spare, and gives up
world nodes=4 max=1 seed=2
start a
start b
start c
pass 1
empty
cut-in c 1
start-next d
pass 70
