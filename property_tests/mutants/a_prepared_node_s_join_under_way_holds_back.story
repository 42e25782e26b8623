# a prepared node's join under way holds back
# L9: no rest 60.00 s after start, at most 17.7 s: round 0 complete [a:in]
world standbys=1
start a
pass 3
start b
pass 60
