# what a sleeper waits for has lasted while it slept
# O4: a#1 ends the last call 0.002 s after it saw the quorum
world nodes=2 max=2
start a
pass 1
pause a 10
