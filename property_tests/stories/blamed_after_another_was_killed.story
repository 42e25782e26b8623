# Found by O11, two nodes (run 3536 of its seed): three ranks are left; the one that waits is alone at its place, and the two on record that hang
# are one at the moment: the other was just killed. The judge counted those that live.
world nodes=2 max=2 workers=2 alone=2 hang=4
start b
start a
pass 1
slow b 1
hang b
pass 30
