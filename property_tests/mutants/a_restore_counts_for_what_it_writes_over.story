# a restore counts for what it writes over
# L6: a asks without end
world nodes=2 max=2
start a
pass 2.02
older 1
