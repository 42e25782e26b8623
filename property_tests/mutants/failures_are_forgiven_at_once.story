# failures are forgiven at once
# B6: a#1 forgives failures, 0 s after the last change
world nodes=1 max=1
start a
pass 1
fail a
