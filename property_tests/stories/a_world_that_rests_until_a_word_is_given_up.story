# Found by L9, two nodes (run 74 of 0xe3ace711): an outage was under way when the last worker of b said that another one had ended the job, and b
# waited for that one's word. The judge looked at the world when b gave that up, 30 s later, and had not seen that it rested in between.
world nodes=2 max=2 seed=2 alone=1 codes=1
start b
pass 6.3
outage 1
fail b
pass 32
