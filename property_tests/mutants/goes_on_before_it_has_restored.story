# goes on before it has restored
# L6: a asks without end
world nodes=2 max=2
start a
start b
pass 1
empty
