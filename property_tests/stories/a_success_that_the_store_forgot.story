# Found by an end-to-end test (tests/e2e/test_store.py), not by a seed: a succeeded and said so; the store forgot it, and b gave it back
# what it had known before. What a then restored over that had forgotten that b had succeeded meanwhile, and b waited for ever (L2).
world nodes=2 min=2 max=2 restarts=0
start a
start b
pass 2
gap b
succeed a
pass 0.1
cut a 0.6
empty
pass 0.2
succeed b
pass 3
