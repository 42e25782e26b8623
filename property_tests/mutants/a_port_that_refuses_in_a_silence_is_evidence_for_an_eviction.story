# a port that refuses in a silence is evidence for an eviction
# L17: b#1 has another evidence against a#1 than its links told
world nodes=2 max=1 links=1
start a
start b
pass 1
outage 1
pass 1
