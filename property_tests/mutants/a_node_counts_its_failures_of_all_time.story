# a node counts its failures of all time
# O15: a#1 tells Failing(failures=2, cooldown_s=8.0), and has failed 1 times within 8 s: []
world nodes=1 max=1 node_failures=1 hang=4
start-stranger a
pass 1
hang a
pass 30
kill-worker a
