# a node that cannot start leaves a job that needs it
# O5: d#1 leaves, and nobody has asked it to
world nodes=4 min=4 max=4
start a
start b
start c
start d
unstartable d
pass 1
