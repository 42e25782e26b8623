# Found by seeds (L10), run 1,538 of `--nodes=5 --backend=lease --steps=1000000 --seed 0xe2929037`: the coordinator is slow, and on
# its way back to the round. It begins to watch the dead node when it is back. The judge counted from the death.
world helping=1
start a
start b
start c
pass 1
slow b 0.6
start a
pass 1
crash a
pass 13
