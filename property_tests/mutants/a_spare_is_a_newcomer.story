# a spare is a newcomer
# L6: a asks without end
world nodes=2 max=1 upscale=0
start a
start b
