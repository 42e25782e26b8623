# nobody watches the later start of its slot
# L2: a#0 has found no world, but all has been well for long
world nodes=2 max=1
start a
start-back a
pass 10
start b
pause-loop b 10
