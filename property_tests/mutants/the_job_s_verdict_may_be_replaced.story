# the job's verdict may be replaced
# L6: c asks without end
world max=2 restarts=0 seed=6
start a
start b
pass 0.1
fail b
start c
late-write c 5
pass 2.02
older 1
