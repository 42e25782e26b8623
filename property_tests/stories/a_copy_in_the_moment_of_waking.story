# Found by R12, eight nodes (run 238 of its seed): the store came back as a copy in the moment in which a woke. Who has slept lets its memory count
# for nothing until it is answered, so it fled from its world. The judge took it for well.
world nodes=2 max=1
start a
start b
pass 1
pause a 7
pass 2
outage 1
pass 5
older 10
