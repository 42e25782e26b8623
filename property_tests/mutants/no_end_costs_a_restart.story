# no end costs a restart
# B2: a end: 0 failures became 0 by an end because failed
world nodes=1 max=1
start a
pass 1
fail a
