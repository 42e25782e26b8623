# a look is always due
# L6: b asks without end
world nodes=2 min=2 max=2
