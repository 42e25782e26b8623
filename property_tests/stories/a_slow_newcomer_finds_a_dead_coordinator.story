# Found by seeds (L10), like the story of a slow coordinator on its way back: nobody had a seat who lives, until b had its own. The
# judge looks when something changes, and then saw only that b is there, and not that nobody had been.
world helping=1
start a
start b
slow b 0.6
pass 1
crash a
pass 13
