# evidence counts against a node that has returned
# L8: a is thrown out on evidence a second time, and lives
world nodes=5 max=1 seed=1 links=1
start a
start b
start c
start d
start e
pass 2
refuse a 1
pass 1
