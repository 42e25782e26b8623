# an agent lingers for ever
# L18: a#1 hears Told: it stays until the store knows the verdict
world nodes=1 max=1
