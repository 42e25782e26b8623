# a target below nothing
# V7: 1 are waited for no longer, but the target went from 0 to -1
world nodes=2 max=2
start a
pass 1
empty
drain a
