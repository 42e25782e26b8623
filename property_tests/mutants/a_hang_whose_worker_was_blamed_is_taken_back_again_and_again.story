# a hang whose worker was blamed is taken back again and again
# O13: b says twice: Withdraw()
world nodes=3 max=3 hang=4 alone=1
start a
start b
start c
pass 1
hang b
pass 40
