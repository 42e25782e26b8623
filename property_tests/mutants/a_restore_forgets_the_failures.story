# a restore forgets the failures
# R7: a watch: what is restored is not what was held
world nodes=1 max=1
start a
pass 1
fail a
pass 1
empty
