world nodes=2 max=1
start b
start a
pass 1
fail b
pass 1
crash b
cut a 1
start b
older 1
pass 0.1
older 1
