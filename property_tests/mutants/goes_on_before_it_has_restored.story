# goes on before it has restored
# L11: a reads heartbeats 5 times in a round, in which it was shown 2 versions and prompted 0 times
world nodes=2 max=2
start a
start b
pass 1
empty
