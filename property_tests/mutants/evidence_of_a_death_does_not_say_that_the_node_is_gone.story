# evidence of a death does not say that the node is gone
# L17: b#1 has another evidence against a#1 than its links told
world nodes=2 max=1 links=1
start a
start b
pass 1
crash a
