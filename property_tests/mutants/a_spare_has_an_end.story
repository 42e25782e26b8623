# a spare has an end
# L6: b asks without end
world nodes=2 max=1 join=15
start a
start b
pass 30
