world nodes=1 max=1
start a
pass 1
notice a 5
outage 5
older 1
pass 10
