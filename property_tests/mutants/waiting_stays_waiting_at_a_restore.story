# waiting stays waiting at a restore
# R7: a watch: b#1 is waiting, which nobody can attest
world nodes=2 max=1
start a
start b
pass 1
older 1
