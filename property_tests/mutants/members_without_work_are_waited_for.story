# members without work are waited for
# L13: round 0 stands still since 2.000 s, and nobody is blamed
world nodes=2 max=2 hang=4
start a
start b
pass 1
succeed a
pass 1
hang b
pass 30
