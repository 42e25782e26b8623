# Found in the soak, 1 run of 24,000 (R9): a's restore landed, and its answer came late; a slept meanwhile, and what had been sent before
# counted for nothing when it woke, not even that the life had begun. The next one that it began had the same name.
world nodes=1 max=1 attempts=3
start a
pass 1
late-reply a 1
empty
pass 1
pause a 5
older 1
