# Found by seeds (L10), run 4356 of elastic simulate --nodes=4 --backend=cas --seed 0x406a84b8. What was sent to b while it was slow was
# under way for 10 s, though b was slow no longer. So it heard of its world, and saw that a is dead, that much later. The judge
# counted from when b was slow no longer.
world nodes=2 max=2 last_call=0 barrier=2
start a
start b
pass 1
slow b 10
pass 1
crash a
