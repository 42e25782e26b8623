# a restore counts as pinned
# R2: a watch: restored, but it does not count for what it was made from
world nodes=1 max=1
start a
pass 1
empty
