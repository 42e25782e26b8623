# a dropped seat is still waited for
# V7: 1 are waited for no longer, but the target went from 2 to 2
world nodes=6 min=2 last_call=0
start d
start e
pass 1
crash d
