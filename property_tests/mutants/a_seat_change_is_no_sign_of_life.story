# a seat change is no sign of life
# L6: b asks without end
world nodes=2 max=1
start a
start b
pass 1
cut b 5
pass 10
