# heartbeats beside another life make nobody look
# L6: a asks without end
world nodes=2 max=1
start a
start b
pass 1
cut-in a 1
older 1
