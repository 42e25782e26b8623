# Found by G4, two nodes (run 270 of seed 61): b stood still while a worker of it heard the end of a, and another one began to end after that. b put
# that on record as one more echo, as it must. The judge asked for the end of the round.
world nodes=2 min=2 max=2 unlike=3 echoes=1
start a
start b
pass 1
pause b 1
crash a
pass 0.01
fail b
