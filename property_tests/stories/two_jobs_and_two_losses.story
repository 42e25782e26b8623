# Found in the soak, 1 run of 1,000 (R12): while a was cut off, the store was lost and another job began there; when it was lost again, both
# offered what they remembered, and a's counted more. That is no restart for nothing.
world nodes=2 max=1
start a
start b
pass 10
crash b
cut-in a 1
empty
start b
late-write b 1
pass 2
empty
