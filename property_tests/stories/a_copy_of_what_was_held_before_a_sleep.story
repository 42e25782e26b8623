# Found in 1 run of 2,300 (R14): a slept, began anew at an empty store, and the store was given back a copy of what a had held before. To
# restore a copy over itself is no memory of a sleeper.
world nodes=1 max=1
start a
pass 1
pause a 7
pass 5
empty
pass 5
older 5
