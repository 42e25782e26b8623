# Found by seeds (R12), run 188 of `--nodes=3 --backend=lease --seed 0x3002b845`: b leaves, and the store forgets that, and more. a is
# about to be shown that its world is over, and restores that. The judge asked for the world.
world seed=2389322800 last_call=0 helping=1
start a
start b
start c
pass 2.5
cut-out c 5
pass 1
succeed a
pass 2
notice b 1
pass 0.01
older 1
older 1
pass 2
