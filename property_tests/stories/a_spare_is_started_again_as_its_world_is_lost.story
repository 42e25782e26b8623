# Found by a search for a mutant, run 3,015 (R12): the law held a spare for well whose seat a later start of its slot had taken.
world nodes=2 max=1 seed=2
start a
start b
pass 30
start a
older 1
