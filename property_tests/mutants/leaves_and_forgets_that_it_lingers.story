# leaves and forgets that it lingers
# L18: a#1 hears Told: it does not stay until the store knows the verdict
world nodes=1 max=1
