# nobody watches the later start of its slot
# O19: a#0 join waits until 60, and something is due at 0.004 (now 0.004)
world nodes=2 max=1
start a
start-back a
pass 10
start b
pause-loop b 10
