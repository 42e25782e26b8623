# a node remembers a failure that was refunded
# O15: a#1 leaves for its failures, at [], without a cause or too soon
world nodes=2 max=2 node_failures=1 leaves=1
start a
start b
pass 1
cut b 5
fail a
pass 5
