# restores over whatever is there
# L6: a asks without end
world nodes=1 max=1
start a
pass 1
empty
