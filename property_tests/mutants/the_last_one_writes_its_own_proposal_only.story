# the last one writes its own proposal only
# O16: b#1 does not write what the others and it propose, as it has read in this version
world nodes=2 min=2 max=2 helping=1
