# room is one less
# V4: somebody waits, and only 0 of 1 seats are taken
world nodes=1 max=1
