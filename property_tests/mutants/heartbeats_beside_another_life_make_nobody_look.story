# heartbeats beside another life make nobody look
# L11: a reads heartbeats 5 times in a round, in which it was shown 2 versions and prompted 0 times
world nodes=2 max=1
start a
start b
pass 1
cut-in a 1
older 1
