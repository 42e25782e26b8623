# a snapshot is edited as it is
# L6: a asks without end
world nodes=1 max=1
start a
pass 1
older 0.1
