# every end begins a generation
# V21: a watch: generation 0 became 1 by an end because lost
world nodes=2 min=2 max=2 seed=4 drift=0.01 links=1
start a
pass 6
