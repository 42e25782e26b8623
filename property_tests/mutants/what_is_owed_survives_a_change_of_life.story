# what is owed survives a change of life
# L11: c#1 writes 6 versions in round 3
world seed=1 last_call=0.5
start a
start b
pass 1
start c
pass 5
start b
pass 1
late-write c 2
drain c
older 10
start b
