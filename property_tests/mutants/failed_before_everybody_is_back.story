# failed before everybody is back
# B3: b join: closed as failed within the budget or before everybody was back (1 failures, 0 restarts allowed)
world nodes=2 max=2 restarts=0
start a
start b
pass 1
fail b
