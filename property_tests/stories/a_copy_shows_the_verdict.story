# Found by R12 in a soak: b never heard that the job had succeeded, and ran a world after a loss. Then the store came back as a copy with the
# verdict. A verdict is never replaced (R5), so b stops for it.
world nodes=2 max=1 seed=1061425288
start a
start b
pass 0.01
cut-out b 1
succeed a
pass 1
older 1
pass 10
older 10
pass 5
