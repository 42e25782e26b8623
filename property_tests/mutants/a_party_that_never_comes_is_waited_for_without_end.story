# a party that never comes is waited for without end
# O19: a#1 watch waits until 11.008, and something is due at 10.008 (now 10.01)
world max=2 last_call=0 party=3
start a
start b
