# Found by seeds (L10), run 7897 of elastic simulate --nodes=2 --backend=cas --seed 0x194d1563. b's messages take 0.6 s each way, so that it
# evicts a 14.0 s after its death. The judge's bound had no time for messages.
world nodes=2 max=2
start a
start b
slow b 0.6
pass 5
crash a
pass 10
