# a later notice puts a drain off
# L6: a asks without end
world nodes=1 max=1
start a
pass 1
notice a 5
