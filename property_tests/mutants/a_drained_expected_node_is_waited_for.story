# a drained expected node is waited for
# V7: 1 are waited for no longer, but the target went from 3 to 3
world nodes=4 min=2 max=4 seed=8 tail=3 last_call=0 upscale=0 helping=1
start a
start b
start c
start d
pass 1.3
notice d 1
