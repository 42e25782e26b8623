world nodes=4 min=2 max=4 unit=2
start a
start b
pass 5
start c
start d
pass 20
