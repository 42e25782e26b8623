# the world of the workers is not kept
# L18: a#1 hears Told: it knows another world than that of its workers
world nodes=2 max=2 alone=2
start a
pass 5
start b
