# running nodes do not watch
# L2: b has found no world, but all has been well for long
world nodes=2 max=2 last_call=0
start a
start b
