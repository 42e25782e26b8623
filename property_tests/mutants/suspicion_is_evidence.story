# suspicion is evidence
# L17: a#1 has another evidence against b#1 than its links told
world nodes=2 max=1 links=1
start a
start b
pass 1
unlink a
pass 1
