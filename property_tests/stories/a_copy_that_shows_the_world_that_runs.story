# Found by L9, three nodes (run 190 of its seed): the store came back as a copy that shows the world that runs. The judge took it for at rest,
# until a node that was set aside restored it, and so lost its seat.
world max=2 node_failures=1 party=2
start b
start c
pass 1
fail b
pass 1
older 0.1
