# Found in the soak, 1 run of 11,000 (S2): a's late first write landed in a store that had forgotten, and gave the register the life that
# it had had: two worlds of one life and round.
world nodes=2 max=2
start a
late-write a 5
pass 5
empty
